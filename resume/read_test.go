package resume_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// B14: the message is not on the first page of its thread.
func TestMessageBeyondTheFirstPage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		ours := r.ask("w1", supplier)
		other := r.srv.Inbound(efatest.Mail{From: "list@example.com", Text: "0"})
		for i := range 120 { // history that never was the engine's
			r.srv.Inbound(efatest.Mail{From: "list@example.com", ReplyTo: ours.MessageID, Text: fmt.Sprint(i)})
			r.srv.Inbound(efatest.Mail{From: "list@example.com", ReplyTo: other.MessageID, Text: fmt.Sprint(i)})
		}
		r.skip()
		onThread := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: ours.MessageID, Text: "far down"})
		elsewhere := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: other.MessageID, Text: "far down on a thread of nobody"})
		r.rest()
		require.ElementsMatch(t, []string{onThread.MessageID, elsewhere.MessageID}, messages(r.last(1)))
		require.Empty(t, r.queue())
	})
}

// B15: listed late, or its body late: it is waited for, and shown.
func TestLaggingMessageIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, lag := range map[string]efatest.Mail{
		"listed later":    {ListedAfter: 30 * time.Second},
		"body later":      {BodyAfter: 30 * time.Second},
		"on a new thread": {ListedAfter: 30 * time.Second, From: supplier},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				sent := r.ask("w1", supplier)
				m := lag
				if m.From == "" {
					m.From, m.ReplyTo = supplier, sent.MessageID
				}
				m.Text = "slow"
				in := r.srv.Inbound(m)
				r.rest()
				require.Empty(t, r.runs())
				require.Empty(t, r.queue())
				r.jump(31 * time.Second)
				r.rest()
				run := r.last(1)
				require.Equal(t, []string{in.MessageID}, messages(run))
				require.Equal(t, "slow", run.Inputs[0].Body.Text.Text())
			})
		})
	}
}

func TestUnreadableMessageHoldsBackTwoMinutes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		lost := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "lost"})
		r.srv.Hide(lost.MessageID)
		good := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "good"})
		r.rest()
		for range 11 {
			r.jump(10 * time.Second)
			r.rest()
		}
		require.Empty(t, r.runs(), "both are held back")

		r.jump(20 * time.Second)
		r.rest()
		require.Equal(t, []string{good.MessageID}, messages(r.last(1)), "after two minutes it goes on without")
		require.Equal(t, int64(1), r.workflow("w1").Pending, "the other is not consumed")

		r.srv.Reveal(lost.MessageID)
		r.jump(10 * time.Minute)
		r.rest()
		require.Equal(t, []string{lost.MessageID}, messages(r.last(2)))
		require.Zero(t, r.workflow("w1").Pending)
	})
}

// The rest of the conversation does not wait two minutes again and again.
func TestUnreadableMessageHoldsBackOthersThatComeLater(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		first := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "100 EUR"})
		r.srv.Hide(first.MessageID)
		r.rest() // its next try is a second away
		second := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "sorry, 90 EUR"})
		r.rest()
		require.Empty(t, r.runs(), "the correction is not shown before what it corrects")
		r.srv.Reveal(first.MessageID)
		r.jump(30 * time.Second)
		r.rest()
		require.Equal(t, []string{first.MessageID, second.MessageID}, messages(r.last(1)))
	})
}

func TestUnreadableMessageIsBeforeAPersonAfterADay(t *testing.T) {
	t.Parallel()
	for _, onThread := range []bool{true, false} {
		t.Run(map[bool]string{true: "on its thread", false: "on a new thread"}[onThread], func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				sent := r.ask("w1", supplier)
				m := efatest.Mail{From: supplier, Text: "lost"}
				if onThread {
					m.ReplyTo = sent.MessageID
				}
				lost := r.srv.Inbound(m)
				r.srv.Hide(lost.MessageID)
				r.rest()
				r.jump(23 * time.Hour)
				r.rest()
				require.Empty(t, r.queue())
				r.jump(61 * time.Minute)
				r.rest()
				it := r.queued()
				require.Equal(t, lost.EventID, it.EventID)
				require.Equal(t, resume.ReasonUnreadable, it.Reason)
				require.Empty(t, r.runs())
				require.Equal(t, resume.StatusWaiting, r.status("w1"))
				require.Zero(t, r.workflow("w1").Pending)

				r.srv.Reveal(lost.MessageID)
				require.NoError(t, r.eng.Bind(t.Context(), lost.EventID, "w1", "ann"))
				require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
				r.rest()
				require.Equal(t, []string{lost.MessageID}, messages(r.last(1)), "and it can still be bound")
			})
		})
	}
}

// A message without text is a message that was read.
func TestEmptyMessageIsAReply(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID})
		r.rest()
		run := r.last(1)
		require.Equal(t, []string{in.MessageID}, messages(run))
		require.True(t, run.Inputs[0].Body.Available)
		require.Empty(t, run.Inputs[0].Body.Text.Text())
	})
}

// An outage of the provider is nobody's fault: no attempt is counted, and
// nothing is lost however long it takes.
func TestReadingWaitsOutAnOutage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Attempts: 2})
		sent := r.ask("w1", supplier)
		outage := r.srv.Fault(efatest.Fault{Op: efatest.OpThread, Status: 503, When: efatest.When{Always: true}})
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()
		for range 4 {
			require.True(t, r.once(resume.JobWork))
			w := r.workflow("w1")
			require.Equal(t, resume.StatusRunnable, w.Status)
			require.Zero(t, w.Attempts)
			require.NotContains(t, w.Error, "please quote")
			r.jump(11 * time.Minute)
		}
		outage.Disarm()
		r.rest()
		run := r.last(1)
		require.Equal(t, []string{in.MessageID}, messages(run))
		require.Equal(t, int64(1), run.Attempt)
		require.Empty(t, r.workflow("w1").Error)
	})
}

// A body may be requested that no longer is there, while the workflow is
// canceled: it must not come to life.
func TestCanceledWorkflowDoesNotWakeFromABackOff(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil }, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "lost"})
		r.srv.Hide(in.MessageID)
		r.rest()
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		r.jump(time.Hour)
		r.rest()
		require.Empty(t, r.runs())
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		require.Equal(t, resume.ReasonLateReply, r.queued().Reason)
	})
}
