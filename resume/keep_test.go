package resume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// secret is a text of the user's that must be gone where it is forgotten.
const secret = "an-account-number"

// private starts, answers and ends a workflow that holds the secret.
func (r *rig) private(id, to string) efatest.Send {
	r.t.Helper()
	mail := quote(to)
	mail.Subject, mail.Text = "About "+secret, "Is "+secret+" right?"
	before := len(r.srv.Sends())
	r.start(resume.Start{ID: id, Counterparty: to, State: secret, First: resume.Send(mail)})
	r.rest()
	require.NoError(r.t, r.signal(id, "s", secret))
	r.rest()
	require.NoError(r.t, r.eng.Cancel(r.t.Context(), id, "ann"))
	return r.srv.Sends()[before]
}

// holds is how many rows of the engine's tables hold a text.
func (r *rig) holds(text string) (n int) {
	r.t.Helper()
	for table, columns := range map[string][]string{
		"workflows": {"counterparty", "error", "state"}, "sends": {"body", "recipients", "subject", "error"},
		"mail": {"data", "reason", "candidates"}, "history": {"detail"},
	} {
		for _, c := range columns {
			c = map[bool]string{true: "cast(" + c + " as text)", false: c}[r.store == "sqlite"]
			if r.store == "postgres" && (c == "state" || c == "body" || c == "data") {
				c = "encode(" + c + ", 'escape')"
			}
			n += r.count("select count(*) from {s}" + table + " where " + c + " like '%" + text + "%'")
		}
	}
	return n
}

func TestForgetErasesWhatIsStored(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		sent := r.private("w1", supplier)
		r.ask("other", "buyer@example.com")
		require.Positive(t, r.holds(secret))
		require.NoError(t, r.eng.Forget(ctx, "Supplier@Example.com"))
		require.Zero(t, r.holds(secret))
		require.Zero(t, r.holds(supplier))
		require.Positive(t, r.holds("buyer@example.com"), "nobody else is forgotten")
		require.NoError(t, r.eng.Forget(ctx, supplier), "again is fine")
		require.ErrorIs(t, r.eng.Forget(ctx, "nonsense"), resume.Err)

		r.fed = 0 // a replay still finds its events handled
		r.exec("delete from {s}seen")
		r.rest()
		require.Len(t, r.runs(), 1)
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "?"})
		r.rest()
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason)
	})
}

func TestForgetRefusesALiveWorkflow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.private("w1", supplier)
		r.ask("w2", supplier)
		require.ErrorIs(t, r.eng.Forget(t.Context(), supplier), resume.ErrNotOver)
		require.Positive(t, r.holds(secret), "all or nothing")
	})
}

// An ID that another counterparty uses now held the person's mail before.
func TestForgetReachesEarlierRunsOfAnID(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.private("w1", supplier)
		r.ask("w1", "buyer@example.com")
		require.NoError(t, r.eng.Forget(t.Context(), supplier))
		require.Zero(t, r.holds(secret))
		require.Zero(t, r.holds(supplier))
		require.Positive(t, r.holds("buyer@example.com"))
	})
}

// tidied runs the engine until something is so.
func (r *rig) tidied(what string, ok func() bool) {
	r.t.Helper()
	stop := r.run()
	r.until(what, ok)
	stop()
}

func TestFinishedWorkflowsArePruned(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.private("w1", supplier)
		r.ask("w2", "buyer@example.com")
		r.jump(91 * day)
		r.tidied("w1 is gone", func() bool {
			ws, err := r.eng.Workflows(t.Context(), "", "", 0)
			require.NoError(t, err)
			return len(ws) == 1 && ws[0].ID == "w2"
		})
		late := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "still there?"})
		r.rest()
		require.Equal(t, late.EventID, r.queued().EventID)
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason, "the thread's row outlives its workflow")
		require.Equal(t, resume.StatusWaiting, r.status("w2"), "what is not over stays, however old")
	})
}

// What is kept for good are IDs.
func TestPruningLeavesOnlyIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.private("w1", supplier)
		r.jump(91 * day)
		r.tidied("w1 is gone", func() bool {
			ws, err := r.eng.Workflows(t.Context(), "", "", 0)
			require.NoError(t, err)
			return len(ws) == 0
		})
		require.Zero(t, r.holds(secret))
		require.Zero(t, r.holds(supplier))
	})
}

func TestSendBytesAreDroppedAfterTheReplayWindow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		require.Equal(t, 1, r.count("select count(*) from {s}sends where body is not null"))
		r.jump(30 * day)
		r.tidied("the bytes are gone", func() bool { return r.count("select count(*) from {s}sends where body is not null") == 0 })
		require.Equal(t, 1, r.count("select count(*) from {s}sends where hash <> ''"))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// A person has a month for mail of strangers; what has candidates stays.
func TestUnclaimedMailExpires(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r, in := ambiguous(t, open, resume.Config{})
		r.srv.Inbound(efatest.Mail{From: "spam@example.com", Text: "buy"})
		r.rest()
		require.Len(t, r.queue(), 2)
		r.jump(31 * day)
		r.tidied("the stranger's is gone", func() bool { return len(r.queue()) == 1 })
		require.Equal(t, in.EventID, r.queued().EventID)
		require.WithinDuration(t, time.Now().Add(-31*day), r.queued().At, time.Hour)
	})
}
