package resume_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// held starts a workflow whose question a person at the provider must approve.
func (r *rig) held(id, to string) efatest.Send {
	r.t.Helper()
	r.srv.HoldSends(efatest.All)
	defer r.srv.HoldSends(nil)
	before := len(r.srv.Sends())
	r.start(resume.Start{ID: id, Counterparty: to, First: question(to).Wait(2 * day)})
	r.rest()
	require.Equal(r.t, resume.StatusAwaitingApproval, r.status(id))
	return r.srv.Sends()[before]
}

// approve lets a held send go.
func (r *rig) approve(s efatest.Send) efatest.Send {
	r.t.Helper()
	out, err := r.srv.Approve(s.ApprovalID)
	require.NoError(r.t, err)
	return out
}

func TestApprovedSendWaitsForItsReply(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		draft := r.held("w1", supplier)
		require.Equal(t, "approval of its mail at the provider", r.workflow("w1").WaitingFor())
		r.jump(5 * day)
		r.rest()
		require.Empty(t, r.runs(), "nothing times out while it is held")

		sent := r.approve(draft)
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.WithinDuration(t, time.Now().Add(2*day), r.workflow("w1").Deadline, time.Minute)
		in := r.srv.Inbound(efatest.Mail{From: "colleague@example.com", ReplyTo: sent.MessageID, Text: "ok"})
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)), "by its thread, which only message.queued told")
		require.Empty(t, r.queue())
		require.Equal(t, 1, r.srv.Count(efatest.OpSend))
	})
}

// B27: approved before our commit says that it is held.
func TestApprovalThatOvertakesTheAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.HoldSends(efatest.All)
		r.srv.OnRequest(func(op efatest.Op, at efatest.Point, _ *http.Request) {
			if op == efatest.OpSend && at == efatest.AfterEffect {
				r.approve(r.srv.Sends()[0])
				r.feed()
				r.once(resume.JobMatch)
			}
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		r.jump(time.Second)
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Empty(t, r.queue())
	})
}

func TestRejectedSendIsToldToTheStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		require.NoError(t, r.srv.Reject(r.held("w1", supplier).ApprovalID))
		r.rest()
		run := r.last(1)
		require.Len(t, run.Inputs, 1)
		require.Equal(t, resume.InputRejected, run.Inputs[0].Kind)
		require.Equal(t, "send", run.Inputs[0].MatchedBy)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.True(t, r.workflow("w1").Deadline.IsZero())
	})
}

// rejectedEarly is a send that was refused before our commit said it is held.
func rejectedEarly(t *testing.T, open opener) *rig {
	t.Helper()
	r := open(listens, resume.Config{})
	r.srv.OnRequest(func(op efatest.Op, at efatest.Point, _ *http.Request) {
		if op == efatest.OpSend && at == efatest.AfterEffect {
			require.NoError(t, r.srv.Reject(r.srv.Sends()[0].ApprovalID))
			r.feed()
			r.once(resume.JobMatch)
		}
	})
	r.srv.HoldSends(efatest.All)
	r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
	r.rest()
	return r
}

func TestRejectionThatOvertakesTheAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := rejectedEarly(t, open)
		for range 2 {
			r.jump(time.Minute)
			r.rest()
		}
		require.Equal(t, resume.InputRejected, r.last(1).Inputs[0].Kind)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Empty(t, r.queue())
	})
}

// What the matcher finds to be an input wakes its workflow at once.
func TestWhatTheMatcherPlacesIsDueAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := rejectedEarly(t, open)
		r.jump(time.Second)
		r.rest()
		require.Equal(t, resume.InputRejected, r.last(1).Inputs[0].Kind)
	})
}

// B27: two drafts that look the same.
func TestTwoHeldSendsThatLookTheSameAreForAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		first := r.held("w1", supplier)
		r.held("w2", supplier)
		unlike := r.held("w3", "buyer@example.com")
		r.approve(unlike)
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w3"), "another recipient is another mail")

		sent := r.approve(first)
		r.rest()
		it := r.queued()
		require.Equal(t, resume.ReasonSeveralCandidates, it.Reason)
		require.Equal(t, "queued", it.Kind)
		require.Equal(t, sent.MessageID, it.Message)
		require.Len(t, it.Candidates, 2)
		require.Equal(t, "Quote request", it.Candidates[0].Subject)
		require.Equal(t, resume.StatusAwaitingApproval, r.status("w1"))
	})
}

// A person who knows which draft it was binds the queued message to it.
func TestPersonTellsWhichHeldSendLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		first := r.held("w1", supplier)
		r.held("w2", supplier)
		sent := r.approve(first)
		r.rest()
		require.NoError(t, r.eng.Bind(ctx, r.queued().EventID, "w1", "ann"))
		r.jump(time.Minute)
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Equal(t, resume.StatusAwaitingApproval, r.status("w2"))
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "ok"})
		r.rest()
		run := r.last(1)
		require.Equal(t, "w1", run.ID)
		require.Equal(t, []string{in.MessageID}, messages(run), "the queued message is no input of its own")
	})
}

// What comes while a send is held waits, visibly, for its outcome.
func TestReplyWhileHeldWaitsForTheOutcome(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		sent := r.ask("w1", supplier)
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			return answer(run, "counter-offer"), nil
		})
		r.srv.HoldSends(efatest.All)
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, resume.StatusAwaitingApproval, r.status("w1"))

		second := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "2"})
		r.rest()
		r.jump(time.Hour)
		r.rest()
		r.last(1)
		require.Equal(t, resume.StatusAwaitingApproval, r.status("w1"))
		require.Equal(t, int64(1), r.workflow("w1").Pending)

		r.do(listens)
		r.approve(r.srv.Sends()[1]) // a reply: its thread is known
		r.rest()
		require.Equal(t, []string{second.MessageID}, messages(r.last(2)))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// Mail that a person sends from the dashboard is not an approved draft.
func TestQueuedMessageOfSomebodyElseIsNotOurs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.held("w1", supplier)
		_, err := r.mail.Send(t.Context(), "by-hand", seal(t, r, "Another subject"))
		require.NoError(t, err)
		r.rest()
		require.Equal(t, resume.StatusAwaitingApproval, r.status("w1"))
		require.Empty(t, r.queue())
		require.Equal(t, 1, r.count("select count(*) from {s}mail where kind = 'queued' and place = 'settled' and reason = 'not_ours'"))
	})
}

// A workflow canceled while its mail is held: the mail may still leave, and
// what answers it is late.
func TestCanceledWhileHeldThenApproved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		draft := r.held("w1", supplier)
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		sent := r.approve(draft)
		r.rest()
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason)
		require.Empty(t, r.runs())
	})
}
