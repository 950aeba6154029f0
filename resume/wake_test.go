package resume_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

// alone is a rig on a whole database.
func alone(t *testing.T, url string, step resume.Step, cfg resume.Config, conns int32) *rig {
	t.Helper()
	pc, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	pc.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(t.Context(), pc)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	r := bareRig(t, "postgres", step)
	r.pool = pool
	cfg.Schema = "replywake"
	r.open(cfg)
	return r
}

// listeners is how many connections of the database listen.
func (r *rig) listeners() (n int) {
	r.t.Helper()
	err := r.pool.QueryRow(r.t.Context(),
		"select count(*) from pg_catalog.pg_stat_activity where datname = current_database() and query ilike 'listen %'").Scan(&n)
	require.NoError(r.t, err)
	return n
}

// With an hour between two looks, only the hint of the other process explains
// that this one works.
func TestHintOfAnotherProcessWakesThisOne(t *testing.T) {
	t.Parallel()
	r := alone(t, testdb.Database(t), nil, resume.Config{Poll: time.Hour, Workers: 1}, 8)
	working, release := make(chan string), make(chan struct{})
	r.do(func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		working <- run.ID
		<-release // this process has no worker left
		return resume.Done(), ctx.Err()
	})
	r.run()
	r.runEngine(r.another())
	t.Cleanup(func() { close(release) }) // before they are stopped
	r.until("both listen", func() bool { return r.listeners() == 2 })
	r.start(resume.Start{ID: "w1", Counterparty: supplier}) // rings here, or by hint there
	require.Equal(t, "w1", <-working)
	r.start(resume.Start{ID: "w2", Counterparty: supplier})
	require.Equal(t, "w2", <-working, "the other process")
}

// The web process only starts workflows; another one works.
func TestHintOfAProcessThatDoesNotRun(t *testing.T) {
	t.Parallel()
	r := alone(t, testdb.Database(t), nil, resume.Config{Poll: time.Hour}, 8)
	worked := make(chan struct{})
	r.do(func(context.Context, *resume.Run) (resume.Next, error) {
		close(worked)
		return resume.Done(), nil
	})
	r.runEngine(r.another())
	r.until("it listens", func() bool { return r.listeners() == 1 })
	r.jump(0)
	r.start(resume.Start{ID: "w1", Counterparty: supplier})
	select {
	case <-worked:
	case <-time.After(20 * time.Second):
		t.Fatal("no hint came")
	}
}

// Behind a pooler in transaction mode: nothing of ours stays on a connection.
func TestPoolerModePollsOnly(t *testing.T) {
	t.Parallel()
	r := alone(t, testdb.Database(t), acks(1), resume.Config{Pooler: true}, 2)
	r.run()
	r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
	r.until("sent", func() bool { return len(r.srv.Sends()) == 1 })
	r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: r.srv.Sends()[0].MessageID, Text: "1"})
	r.until("done", func() bool { return r.status("w1") == resume.StatusDone })
	require.Zero(t, r.listeners())
	require.Empty(t, r.prepared("and statement not like '%migration%'"), "no statement outlives its transaction")
}

// prepared are the statements on the tables of ours that a connection of the
// pool has prepared for longer than a transaction.
func (r *rig) prepared(and string) []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(),
		"select statement from pg_catalog.pg_prepared_statements where statement like '%replywake%' "+and, pgx.QueryExecModeSimpleProtocol)
	require.NoError(r.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	return out
}

func TestMigratingInPoolerModePreparesNothing(t *testing.T) {
	t.Parallel()
	r := alone(t, testdb.Database(t), listens, resume.Config{Pooler: true}, 2)
	require.NoError(t, r.eng.Ready(t.Context()))
	require.Empty(t, r.prepared(""))
}

// A program with a pool of one connection waits for nobody.
func TestMigrateOnAPoolOfOne(t *testing.T) {
	t.Parallel()
	url := testdb.Database(t)
	pc, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	pc.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), pc)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	r := bareRig(t, "postgres", listens)
	r.pool = pool
	_, _, e, _ := r.engine(r.mail, resume.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, e.Migrate(ctx))
}

// The database goes away in the middle: the engine waits it out and nothing is
// lost or done twice.
func TestDatabaseRestart(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t, testdb.ServerConfig{})
	r := alone(t, server.URL(), acks(1), impatient(), 8)
	r.run()
	const n = 4
	to := []string{"a@example.com", "b@example.com", "c@example.com", "d@example.com"}
	for i := range n {
		r.start(resume.Start{ID: to[i], Counterparty: to[i], First: question(to[i])})
	}
	r.until("one is sent", func() bool { return len(r.srv.Sends()) > 0 })
	require.NoError(t, server.Restart(t.Context()))
	replied := map[string]bool{}
	r.untilUp("all done", func() bool {
		for _, s := range r.srv.Sends() {
			if s.Subject == "Quote request" && !replied[s.MessageID] {
				replied[s.MessageID] = true
				r.srv.Inbound(efatest.Mail{From: s.To[0], ReplyTo: s.MessageID, Text: "1"})
				if len(replied) == 2 {
					require.NoError(t, server.Restart(t.Context()))
				}
			}
		}
		ws, err := r.eng.Workflows(t.Context(), resume.StatusDone, "", 0)
		return err == nil && len(ws) == n
	})
	require.Len(t, r.srv.Sends(), 2*n)
	for id, times := range acked(r.srv) {
		require.Equal(t, 1, times, id)
	}
	require.Empty(t, r.queue())
	r.srv.Check(t)
}

// untilUp is until where the database may be away.
func (r *rig) untilUp(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			r.dump()
			r.t.Fatalf("never came: %s", what)
		}
		r.tryFeed()
		time.Sleep(5 * time.Millisecond)
	}
}

// The whole of the tests runs in sessions that are not in UTC; that is what
// makes every comparison of moments in them worth something.
func TestSessionsAreNotInUTC(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	var zone string
	require.NoError(t, db.Pool.QueryRow(t.Context(), "show timezone").Scan(&zone))
	require.NotEqual(t, "UTC", zone)
}
