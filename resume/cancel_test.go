package resume_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

func seal(t *testing.T, r *rig, subject string) client.Sealed {
	t.Helper()
	s, err := r.mail.Seal(r.srv.Inbox(), client.Outgoing{To: []string{supplier}, Subject: subject, Text: "x"})
	require.NoError(t, err)
	return s
}

func TestCancelDropsASendThatWasNeverAttempted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"))
		require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"), "the same again is fine")
		r.jump(time.Hour)
		r.rest()
		require.Empty(t, r.srv.Sends())
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		require.Equal(t, "nothing", r.workflow("w1").WaitingFor())
		require.ErrorIs(t, r.eng.Cancel(ctx, "w2", "ann"), resume.ErrNotFound)
		require.ErrorIs(t, r.eng.RunNow(ctx, "w1", "ann"), resume.ErrTerminal)
		require.ErrorIs(t, r.signal("w1", "s", ""), resume.ErrTerminal)
	})
}

// A send under way is driven to its outcome; what answers it is late.
func TestCancelWhileASendIsUnderWay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.OnRequest(func(op efatest.Op, at efatest.Point, _ *http.Request) {
			if op == efatest.OpSend && at == efatest.AfterEffect {
				require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
			}
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		sent := r.srv.Sends()[0]
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason, "its thread is known")
		require.Empty(t, r.runs())
	})
}

func TestCancelPutsPendingRepliesBeforeAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()
		require.NoError(t, r.signal("w1", "s", ""))
		require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"))
		r.rest()
		it := r.queued()
		require.Equal(t, in.EventID, it.EventID)
		require.Equal(t, resume.ReasonLateReply, it.Reason)
		require.Equal(t, "w1", it.Candidates[0].Workflow)
		require.Empty(t, r.runs())
	})
}

// A person cancels while the step works: its result is dropped.
func TestCancelWhileTheStepWorks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		sent := r.ask("w1", supplier)
		r.do(thanks)
		r.wrapStep(func() { require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann")) })
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		require.Len(t, r.srv.Sends(), 1)
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason)
	})
}

// The send was under way when its workflow was canceled and opened again.
func TestReopenWithASendUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   efatest.Fault
		check func(*testing.T, *rig)
	}{
		"accepted": {efatest.Fault{Status: 503}, func(t *testing.T, r *rig) {
			require.Equal(t, resume.StatusWaiting, r.status("w1"))
			in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: r.srv.Sends()[0].MessageID, Text: "1"})
			r.rest()
			require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
		}},
		"refused": {efatest.Fault{Status: 422, Code: "recipient_suppressed"}, func(t *testing.T, r *rig) {
			require.Equal(t, resume.InputSendError, r.last(1).Inputs[0].Kind)
		}},
		"in doubt": {efatest.Fault{Status: 409, Code: "idempotency_conflict"}, func(t *testing.T, r *rig) {
			require.Equal(t, resume.StatusNeedsReview, r.status("w1"), "nobody will answer mail that may never have left")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.end.Op = efatest.OpSend
			onBoth(t, func(t *testing.T, open opener) {
				ctx := t.Context()
				r := open(listens, resume.Config{})
				r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 503})
				r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
				r.rest()
				require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"))
				require.NoError(t, r.eng.Reopen(ctx, "w1", "ann"))
				r.srv.Fault(c.end)
				for range 2 {
					r.jump(11 * time.Minute)
					r.rest()
				}
				c.check(t, r)
			})
		})
	}
}

// B33: the same ID anew is another life: another key, another mail.
func TestSameIDAnewSendsAnew(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		first := r.ask("w1", supplier)
		run := r.workflow("w1").Run
		require.ErrorIs(t, r.tryStart(resume.Start{ID: "w1", Counterparty: supplier}), resume.ErrExists)
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		second := r.ask("w1", supplier)
		require.NotEqual(t, run, r.workflow("w1").Run)
		require.NotEqual(t, first.Key, second.Key)
		require.Equal(t, first.Body, second.Body)
		require.NotEqual(t, first.ThreadID, second.ThreadID)

		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: first.MessageID, Text: "to the first life"})
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: second.MessageID, Text: "to the second"})
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason)
		r.srv.Check(t)
	})
}

// The first life's mail was still under way.
func TestSameIDAnewWhileTheOldSendIsUnderWay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 503})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		r.ask("w1", supplier)
		r.jump(11 * time.Minute)
		r.rest()
		sends := r.srv.Sends()
		require.Len(t, sends, 2)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sends[1].MessageID, Text: "to the first life"})
		r.rest()
		require.Empty(t, r.runs())
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason)
	})
}
