package resume_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// ledger makes a table of the user's own.
func (r *rig) ledger() {
	r.exec("create table {s}orders (note text)")
}

// orders are its rows.
func (r *rig) orders() int { return r.count("select count(*) from {s}orders") }

// join writes a row in the transaction that commits the run.
func (r *rig) join(run *resume.Run, fail error) {
	insert := r.sql("insert into {s}orders values ('x')")
	if r.store == "postgres" {
		run.InPostgres(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert)
			return errors.Join(err, fail)
		})
		return
	}
	run.InSQL(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert)
		return errors.Join(err, fail)
	})
}

func TestJoinedWritesCommitWithTheRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.ledger()
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			r.join(run, nil)
			r.join(run, nil)
			return resume.Done(), nil
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier})
		r.rest()
		require.Equal(t, 2, r.orders())
		require.Equal(t, resume.StatusDone, r.status("w1"))
	})
}

func TestJoinedWritesRollBackWithTheRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.ledger()
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			r.join(run, nil)
			return resume.Send(client.Outgoing{To: []string{"no address"}, Subject: "x", Text: "y"}), nil // cannot be planned
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier})
		r.once(resume.JobWork)
		require.Zero(t, r.orders())
		require.Equal(t, int64(1), r.workflow("w1").Attempts)

		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			r.join(run, errors.New("out of stock"))
			return resume.Send(client.Outgoing{To: []string{supplier}, Subject: "x", Text: "y"}).Save("sold"), nil
		})
		r.jump(time.Hour)
		r.once(resume.JobWork)
		require.Zero(t, r.orders())
		w := r.workflow("w1")
		require.Equal(t, int64(2), w.Attempts, "its error is the run's")
		require.Equal(t, "out of stock", w.Error)
		require.Empty(t, w.State)
		require.Empty(t, r.srv.Sends(), "nothing was planned")
	})
}

func TestJoinedWritesOfARunThatLostItsLeaseRollBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.ledger()
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			r.join(run, nil)
			return resume.Done(), nil
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier})
		r.wrapStep(func() {
			r.jump(time.Minute)
			did, err := r.another().Once(t.Context(), resume.JobWork)
			require.NoError(t, err)
			require.True(t, did)
		})
		r.rest()
		require.Len(t, r.runs(), 2)
		require.Equal(t, 1, r.orders())
	})
}

// The reply wins over the deadline's run, and over what it wrote.
func TestJoinedWritesOfAnOutrunRunRollBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.ledger()
		sent := r.waits("w1")
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			if run.TimedOut {
				r.join(run, nil)
				r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "here"})
				r.feed()
			}
			return resume.Done(), nil
		})
		r.jump(3 * day)
		r.rest()
		r.last(2)
		require.Zero(t, r.orders())
	})
}

// A run that is only told about a conflict did not happen.
func TestJoinedWritesOfAConflictRollBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{Policy: func(in resume.Input, _ string) resume.Verdict {
			if in.Proof == resume.ProofThread {
				return resume.ToPerson
			}
			return resume.Accept
		}})
		r.ledger()
		sent := r.ask("w1", supplier)
		r.ask("w2", "buyer@example.com")
		in := r.srv.Inbound(efatest.Mail{From: "colleague@example.com", ReplyTo: sent.MessageID, Text: "for w2"})
		r.rest()
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w2", "ann"))
		require.NoError(t, r.eng.RunNow(ctx, "w2", "ann"))
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			r.join(run, nil)
			if len(run.Inputs) == 2 {
				return resume.Done(), nil
			}
			return answer(run, "into w1's thread"), nil
		})
		r.rest()
		r.last(2)
		require.Equal(t, 1, r.orders())
	})
}

// Start and Signal stand or fall with the caller's transaction.
func TestStartAndSignalJoinTheCallersTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		r.ledger()
		for _, commit := range []bool{false, true} {
			insert := r.sql("insert into {s}orders values ('x')")
			s := resume.Start{ID: "w1", Inbox: r.srv.Inbox(), Counterparty: supplier, First: question(supplier)}
			if r.pg != nil {
				tx, err := r.pool.Begin(ctx)
				require.NoError(t, err)
				_, err = tx.Exec(ctx, insert)
				require.NoError(t, err)
				id, err := r.pg.Start(ctx, tx, s)
				require.NoError(t, err)
				require.Equal(t, "w1", id)
				require.NoError(t, r.pg.Signal(ctx, tx, "w1", "s", nil))
				if commit {
					require.NoError(t, tx.Commit(ctx))
				} else {
					require.NoError(t, tx.Rollback(ctx))
				}
			} else {
				tx, err := r.db.BeginTx(ctx, nil)
				require.NoError(t, err)
				_, err = tx.ExecContext(ctx, insert)
				require.NoError(t, err)
				_, err = r.lite.Start(ctx, tx, s)
				require.NoError(t, err)
				require.NoError(t, r.lite.Signal(ctx, tx, "w1", "s", nil))
				if commit {
					require.NoError(t, tx.Commit())
				} else {
					require.NoError(t, tx.Rollback())
				}
			}
			if !commit {
				_, err := r.eng.Workflow(ctx, "w1")
				require.ErrorIs(t, err, resume.ErrNotFound)
				r.rest()
				require.Empty(t, r.srv.Sends())
			}
		}
		r.rest()
		require.Equal(t, 1, r.orders())
		require.Len(t, r.srv.Sends(), 1)
		require.Equal(t, resume.InputSignal, r.last(1).Inputs[0].Kind)
	})
}

func TestJoinOfTheOtherStoreIsAnError(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			if r.pg != nil {
				run.InSQL(func(context.Context, *sql.Tx) error { return nil })
			} else {
				run.InPostgres(func(context.Context, pgx.Tx) error { return nil })
			}
			return resume.Done(), nil
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier})
		r.rest()
		require.Contains(t, r.workflow("w1").Error, "use In")
		require.Equal(t, resume.StatusRunnable, r.status("w1"))
	})
}
