package resume_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// thanks answers whatever arrived and is done.
func thanks(_ context.Context, run *resume.Run) (resume.Next, error) {
	return answer(run, "thanks").Done(), nil
}

// B12
func TestLateReplyIsBeforeAPersonAndCanReopen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(thanks, resume.Config{})
		sent := r.ask("w1", supplier)
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, resume.StatusDone, r.status("w1"))

		late := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "one more thing"})
		r.rest()
		it := r.queued()
		require.Equal(t, resume.ReasonLateReply, it.Reason)
		require.Equal(t, late.EventID, it.EventID)
		require.Len(t, r.runs(), 1)
		require.ErrorIs(t, r.eng.Bind(ctx, late.EventID, "w1", "ann"), resume.ErrTerminal)

		require.NoError(t, r.eng.Reopen(ctx, "w1", "ann"))
		require.ErrorIs(t, r.eng.Reopen(ctx, "w1", "ann"), resume.ErrNotOver)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.NoError(t, r.eng.Bind(ctx, late.EventID, "w1", "ann"))
		require.NoError(t, r.eng.RunNow(ctx, "w1", "ann"))
		r.rest()
		run := r.last(2)
		require.Equal(t, []string{late.MessageID}, messages(run))
		require.Equal(t, resume.ProofPerson, run.Inputs[0].Proof)
		require.Equal(t, resume.StatusDone, r.status("w1"))
		require.Empty(t, r.queue())
	})
}

func TestReopenedWorkflowTakesTheNextReplyByItself(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		require.NoError(t, r.eng.Reopen(t.Context(), "w1", "ann"))
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
	})
}

// A thread of a finished workflow moves with what a person binds.
func TestThreadOfAFinishedWorkflowMoves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(thanks, resume.Config{})
		sent := r.ask("old", supplier)
		require.NoError(t, r.eng.Cancel(ctx, "old", "ann"))
		r.ask("new", "buyer@example.com")
		r.do(listens)
		late := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.NoError(t, r.eng.Bind(ctx, late.EventID, "new", "ann"))
		require.NoError(t, r.eng.RunNow(ctx, "new", "ann"))
		next := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "2"})
		r.rest()
		require.Equal(t, []string{late.MessageID, next.MessageID}, messages(r.last(1)))
		require.Equal(t, "new", r.runs()[0].ID)
		require.Empty(t, r.queue())
		moved := false
		tl, err := r.eng.Timeline(ctx, "old")
		require.NoError(t, err)
		for _, m := range tl {
			moved = moved || m.What == "thread" && m.Detail == sent.ThreadID+" moved to new"
		}
		require.True(t, moved, "it is recorded with the old owner: %v", tl)
	})
}

// B11: a person gave w2 mail of a thread that w1 still lives in.
func TestReplyIntoAnotherWorkflowsThreadIsToldBeforeItLeaves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		policy := func(in resume.Input, _ string) resume.Verdict {
			if in.Message.From.Text() == "colleague@example.com" {
				return resume.ToPerson
			}
			return resume.Accept
		}
		r := open(listens, resume.Config{Policy: policy})
		sent := r.ask("w1", supplier)
		r.ask("w2", "buyer@example.com")
		in := r.srv.Inbound(efatest.Mail{From: "colleague@example.com", ReplyTo: sent.MessageID, Text: "for w2"})
		r.rest()
		require.Equal(t, resume.ReasonPolicy, r.queued().Reason)
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w2", "ann"))
		require.NoError(t, r.eng.RunNow(ctx, "w2", "ann"))

		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			for _, in := range run.Inputs {
				if in.Kind == resume.InputSendError {
					require.Contains(t, in.Reason, "w1")
					return resume.Send(client.Outgoing{To: []string{run.Counterparty}, Subject: "on its own thread", Text: "x"}), nil
				}
			}
			return answer(run, "into w1's thread"), nil
		})
		r.rest()
		runs := r.runs()
		require.Len(t, runs, 2)
		require.Equal(t, []string{in.MessageID}, messages(runs[0]))
		require.Equal(t, []string{in.MessageID}, messages(runs[1]), "the mail is shown again, beside the reason")
		require.Len(t, r.srv.Sends(), 3)
		require.Equal(t, "on its own thread", r.srv.Sends()[2].Subject)
		require.Equal(t, resume.StatusWaiting, r.status("w2"))

		next := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "for w1"})
		r.do(listens)
		r.rest()
		require.Equal(t, "w1", r.last(3).ID, "the thread stays with its owner")
		require.Equal(t, []string{next.MessageID}, messages(r.runs()[2]))
	})
}

// Only the provider's answer shows that the thread is another workflow's.
func TestForeignThreadFoundInTheAnswerIsForAPerson(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(resume.Next) resume.Next{
		"send":          func(n resume.Next) resume.Next { return n },
		"send and done": resume.Next.Done,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				sent := r.ask("w1", supplier)
				r.start(resume.Start{ID: "w2", Counterparty: "buyer@example.com", First: end(resume.Send(client.Outgoing{
					To: []string{"buyer@example.com"}, Subject: "x", Text: "y", ReplyTo: sent.MessageID,
				}))})
				r.rest()
				w := r.workflow("w2")
				require.Equal(t, resume.StatusNeedsReview, w.Status)
				require.Contains(t, w.Error, "w1")
				in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
				r.rest()
				require.Equal(t, "w1", r.last(1).ID)
				require.Equal(t, []string{in.MessageID}, messages(r.runs()[0]))
			})
		})
	}
}

// A cancel that meets the answer hides nothing: the timeline has the conflict.
func TestForeignThreadOfACanceledWorkflowIsRecorded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 503})
		r.start(resume.Start{ID: "w2", Counterparty: "buyer@example.com", First: resume.Send(client.Outgoing{
			To: []string{"buyer@example.com"}, Subject: "x", Text: "y", ReplyTo: sent.MessageID,
		})})
		r.rest()
		require.NoError(t, r.eng.Cancel(t.Context(), "w2", "ann"))
		r.jump(time.Hour)
		r.rest()
		require.Equal(t, resume.StatusCanceled, r.status("w2"))
		tl, err := r.eng.Timeline(t.Context(), "w2")
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(tl, func(m resume.Moment) bool { return m.What == "conflict" }), "%v", tl)
	})
}
