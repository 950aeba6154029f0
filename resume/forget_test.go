package resume_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// found are the columns of every table, dedupe's too, that hold a text.
func (r *rig) found(text string) (out []string) {
	r.t.Helper()
	columns := "select m.name, p.name from sqlite_master as m, pragma_table_info(m.name) as p where m.type = 'table' and m.name like 'replywake%'"
	holds := "select count(*) from %t where instr(cast(%c as text), '" + text + "') > 0"
	if r.store == "postgres" {
		columns = "select table_name, column_name from information_schema.columns where table_schema = '" + r.cfg.Schema + "'"
		holds = "select count(*) from {s}%t where position('" + text + "' in case when pg_typeof(%c)::text = 'bytea' then encode(%c::text::bytea, 'escape') else %c::text end) > 0"
	}
	for _, c := range r.pairs(columns) {
		if r.count(replaced(holds, "%t", c[0], "%c", c[1])) > 0 {
			out = append(out, c[0]+"."+c[1])
		}
	}
	return out
}

// reviewed leaves the secret wherever a step, a person or the engine can.
func (r *rig) reviewed(id, to string) {
	r.t.Helper()
	ctx := r.t.Context()
	sent := r.ask(id, to)
	r.do(func(context.Context, *resume.Run) (resume.Next, error) {
		return resume.Review("she says " + secret), nil
	})
	r.srv.Inbound(efatest.Mail{From: to, ReplyTo: sent.MessageID, Text: "?"})
	r.rest()
	require.Equal(r.t, resume.StatusNeedsReview, r.status(id))
	r.do(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0).Save(secret), nil })
	require.NoError(r.t, r.eng.RunNow(ctx, id, "ann"))
	r.rest()
	require.NoError(r.t, r.signal(id, "s", secret))
	r.rest()
	require.NoError(r.t, r.eng.Cancel(ctx, id, "ann"))
	late := r.srv.Inbound(efatest.Mail{From: to, ReplyTo: sent.MessageID, Text: "?"})
	r.rest()
	require.Equal(r.t, late.EventID, r.queued().EventID)
	require.NoError(r.t, r.eng.Dismiss(ctx, late.EventID, "about "+secret, "ann"))
	require.NoError(r.t, r.eng.Undo(ctx, late.EventID, "ann"))
	require.NoError(r.t, r.eng.Dismiss(ctx, late.EventID, "again "+secret, "ann"))
	r.do(listens)
}

func TestForgetErasesWhatStepsAndPeopleSaid(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		r.reviewed("w1", supplier)
		r.reviewed("w1", supplier) // an ID's earlier run
		r.ask("a", supplier)       // two that an unknown thread may belong to
		r.ask("b", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, Text: "which?"})
		r.rest()
		require.Equal(t, resume.ReasonSeveralCandidates, r.queued().Reason)
		require.NoError(t, r.eng.Dismiss(ctx, in.EventID, "no "+secret, "ann"))
		r.do(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Review(secret), nil })
		for _, id := range []string{"a", "b"} {
			require.NoError(t, r.signal(id, "s", secret))
			r.rest()
			require.NoError(t, r.eng.Cancel(ctx, id, "ann"))
		}
		r.do(listens)
		r.ask("other", "buyer@example.com")
		require.NoError(t, r.signal("other", "s", "the buyer's"))
		r.rest()
		stranger := r.srv.Inbound(efatest.Mail{From: "stranger@example.com", Text: "?"})
		r.rest()
		require.NoError(t, r.eng.Dismiss(ctx, stranger.EventID, "a stranger's", "ann"))

		require.Subset(t, r.found(secret), []string{r.table("workflows.error"), r.table("history.detail"), r.table("mail.data")})
		require.NoError(t, r.eng.Forget(ctx, supplier))
		require.Empty(t, r.found(secret))
		require.Empty(t, r.found(supplier))
		require.NotEmpty(t, r.found("buyer@example.com"), "nobody else is forgotten")
		require.NotEmpty(t, r.found("the buyer"))
		require.Equal(t, []string{"dismissed by ann: a stranger's"}, decisions(t, r, stranger.EventID))
		require.Equal(t, []string{"dismissed "}, decisions(t, r, in.EventID), "that it was decided stays")
	})
}
