package resume_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// beside is a second engine with a project of its own on the rig's store. Its
// provider names everything as the first one does.
func (r *rig) beside(step resume.Step, cfg resume.Config) *rig {
	r.t.Helper()
	other := bareRig(r.t, r.store, step, efatest.Config{Project: "prj_other"})
	other.pool, other.db = r.pool, r.db
	cfg.Schema = r.cfg.Schema
	other.open(cfg)
	return other
}

// Two projects whose IDs are the same share a schema.
func TestEnginesAndStreamsShareASchema(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		a := open(listens, resume.Config{})
		b := a.beside(listens, resume.Config{Name: "other"})
		sentA, sentB := a.ask("w1", supplier), b.ask("w1", supplier)
		require.Equal(t, sentA.ThreadID, sentB.ThreadID, "the fakes name alike")

		in := a.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sentA.MessageID, Text: "to a"})
		a.rest()
		b.rest()
		require.Equal(t, []string{in.MessageID}, messages(a.last(1)))
		require.Empty(t, b.runs())

		inB := b.srv.Inbound(efatest.Mail{From: "who@example.com", Text: "to b"})
		b.rest()
		require.Empty(t, a.queue())
		require.Equal(t, inB.EventID, b.queued().EventID)
		require.ErrorIs(t, a.eng.Dismiss(t.Context(), b.queued().EventID+"x", "x", "ann"), resume.ErrNotFound)
		require.NoError(t, b.eng.Cancel(t.Context(), "w1", "ann"))
		require.Equal(t, resume.StatusWaiting, a.status("w1"))
		tl, err := a.eng.Timeline(t.Context(), "w1")
		require.NoError(t, err)
		for _, m := range tl {
			require.NotEqual(t, "canceled", m.What)
		}
	})
}

// A second engine of the same project sees the same events: one inbox hands
// them to both.
func TestTwoEnginesOfOneStreamKeepTheirInboxes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		two := efatest.Config{Inboxes: map[string]string{"ibx_a": "a@agents.example", "ibx_b": "b@agents.example"}}
		a := open(listens, resume.Config{}, two)
		cfg := a.cfg
		cfg.Name, cfg.Inboxes = "sales", map[string][]string{"ibx_b": {"b@agents.example"}}
		pg, lite, sales, _ := a.engine(a.mail, cfg)
		start := resume.Start{ID: "s1", Inbox: "ibx_b", Counterparty: supplier, First: question(supplier)}
		var err error
		if pg != nil {
			a.inbox, err = dedupe.NewPostgres(a.pool, dedupe.Config{Stream: a.mail.Stream(), Schema: cfg.Schema},
				func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
					return errors.Join(a.pg.Route(ctx, tx, fresh), pg.Route(ctx, tx, fresh))
				})
			require.NoError(t, err)
			_, err = pg.Start(ctx, nil, start)
		} else {
			a.inbox, err = dedupe.NewSQLite(a.db, dedupe.Config{Stream: a.mail.Stream()},
				func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
					return errors.Join(a.lite.Route(ctx, tx, fresh), lite.Route(ctx, tx, fresh))
				})
			require.NoError(t, err)
			_, err = lite.Start(ctx, nil, start)
		}
		require.NoError(t, err)
		did := func(job resume.Job) bool {
			did, err := sales.Once(ctx, job)
			require.NoError(t, err)
			return did
		}
		require.True(t, did(resume.JobSend))
		sent := a.srv.Sends()[0]

		a.ask("w1", supplier)
		require.False(t, did(resume.JobWork))
		_, err = sales.Workflow(ctx, "w1")
		require.ErrorIs(t, err, resume.ErrNotFound)

		in := a.srv.Inbound(efatest.Mail{Inbox: "ibx_b", From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		fresh := a.srv.Inbound(efatest.Mail{Inbox: "ibx_b", From: supplier, Text: "2"})
		a.rest()
		require.Empty(t, a.runs(), "mail of the other engine's inbox is not this one's")
		for busy := true; busy; {
			busy = did(resume.JobMatch) || did(resume.JobWork)
		}
		var got []string
		for _, run := range a.runs() {
			require.Equal(t, "s1", run.ID)
			got = append(got, messages(run)...)
		}
		require.ElementsMatch(t, []string{in.MessageID, fresh.MessageID}, got)
	})
}

func TestWorkflowsArePaged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		for i := range 5 {
			r.start(resume.Start{ID: fmt.Sprintf("w%d", i), Kind: "quote", Counterparty: supplier, First: resume.Wait(0)})
		}
		require.NoError(t, r.eng.Cancel(ctx, "w3", "ann"))
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			ws, err := r.eng.Workflows(ctx, resume.StatusWaiting, after, 2)
			require.NoError(t, err)
			if len(ws) == 0 {
				break
			}
			for _, w := range ws {
				require.Equal(t, "quote", w.Kind)
				require.Equal(t, supplier, w.Counterparty.Text())
				got = append(got, w.ID)
			}
		}
		require.Equal(t, []string{"w0", "w1", "w2", "w4"}, got)
		all, err := r.eng.Workflows(ctx, "", "", 0)
		require.NoError(t, err)
		require.Len(t, all, 5)
		require.False(t, all[3].Finished.IsZero())
		require.True(t, all[4].Finished.IsZero())
		_, err = r.eng.Timeline(ctx, "w9")
		require.ErrorIs(t, err, resume.ErrNotFound)
	})
}

// A name is an engine's once that is committed.
func TestANameIsTakenWhenThatIsCommitted(t *testing.T) {
	t.Parallel()
	a := newRig(t, "postgres", listens, resume.Config{})
	b := bareRig(t, "postgres", listens, efatest.Config{Project: "prj_other"})
	cfg := resume.Config{Schema: a.cfg.Schema, Inboxes: a.cfg.Inboxes, Name: "new"}
	first, err := resume.NewPostgres(a.pool, a.mail, listens, cfg)
	require.NoError(t, err)
	second, err := resume.NewPostgres(a.pool, b.mail, listens, cfg)
	require.NoError(t, err)
	cut := errors.New("cut off")
	_, err = first.Once(sqldb.WithHook(t.Context(), func(point string) error {
		if point == "before commit" {
			return cut
		}
		return nil
	}), resume.JobWork)
	require.ErrorIs(t, err, cut)
	_, err = second.Once(t.Context(), resume.JobWork)
	require.NoError(t, err)
	_, err = first.Once(t.Context(), resume.JobWork)
	require.ErrorIs(t, err, resume.ErrStream)
}

// A name belongs to one stream: an engine of another project takes nothing, and
// sends nothing, of its workflows.
func TestANameBelongsToOneStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		a := open(listens, resume.Config{})
		a.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})

		b := bareRig(t, a.store, listens, efatest.Config{Project: "prj_other"})
		b.pool, b.db = a.pool, a.db
		cfg := resume.Config{Schema: a.cfg.Schema, Inboxes: a.cfg.Inboxes}
		if a.store == "sqlite" {
			_, err := resume.NewSQLite(a.db, b.mail, listens, cfg)
			require.ErrorIs(t, err, resume.ErrStream)
			return
		}
		other, err := resume.NewPostgres(a.pool, b.mail, listens, cfg)
		require.NoError(t, err)
		for _, job := range []resume.Job{resume.JobSend, resume.JobWork, resume.JobMatch} {
			_, err = other.Once(ctx, job)
			require.ErrorIs(t, err, resume.ErrStream)
		}
		require.ErrorIs(t, other.Migrate(ctx), resume.ErrStream)
		require.ErrorIs(t, other.Run(ctx), resume.ErrStream)
		_, err = other.Start(ctx, nil, resume.Start{Inbox: a.srv.Inbox(), Counterparty: supplier})
		require.ErrorIs(t, err, resume.ErrStream)
		require.Empty(t, b.srv.Sends())
	})
}
