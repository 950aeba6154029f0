package resume_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
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

// A second engine of the same project sees the same events.
func TestTwoEnginesOfOneStreamKeepTheirInboxes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		two := efatest.Config{Inboxes: map[string]string{"ibx_a": "a@agents.example", "ibx_b": "b@agents.example"}}
		a := open(listens, resume.Config{}, two)
		cfg := a.cfg
		cfg.Name, cfg.Inboxes = "sales", map[string][]string{"ibx_b": {"b@agents.example"}}
		_, _, sales, _ := a.engine(a.mail, cfg)
		a.ask("w1", supplier)
		for range 3 {
			did, err := sales.Once(t.Context(), resume.JobWork)
			require.NoError(t, err)
			require.False(t, did)
		}
		_, err := sales.Workflow(t.Context(), "w1")
		require.ErrorIs(t, err, resume.ErrNotFound)
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
