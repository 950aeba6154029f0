package resume_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// B7: two workflows wait for one address, so only the thread can tell. The
// reply is handled before the thread is known.
func TestThreadBindsMailThatCameBeforeIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("other", supplier)
		var in efatest.Received
		r.srv.OnSend(func(s efatest.Send) {
			in = r.srv.Inbound(efatest.Mail{From: "colleague@example.com", ReplyTo: s.MessageID, Text: "I answer for them"})
			r.feed()
			r.once(resume.JobMatch)
			require.Empty(t, r.queue(), "the send may yet say whose thread it is")
		})
		r.ask("w1", supplier)
		r.jump(time.Second)
		r.rest()
		run := r.last(1)
		require.Equal(t, "w1", run.ID)
		require.Equal(t, []string{in.MessageID}, messages(run))
		require.Equal(t, resume.ProofThread, run.Inputs[0].Proof)
		require.Empty(t, r.queue())
	})
}

// The outcome of the send comes so late that the reply is before a person.
func TestThreadTakesUndecidedMailFromTheQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		fault := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer, When: efatest.When{Always: true}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.once(resume.JobSend)
		fault.Disarm()
		thread := r.srv.Sends()[0].ThreadID
		waits := r.srv.Inbound(efatest.Mail{From: "colleague@example.com", Thread: thread, Text: "1"})
		gone := r.srv.Inbound(efatest.Mail{From: "spam@example.com", Thread: thread, Text: "2"})
		r.feed()
		for r.once(resume.JobMatch) {
		}
		require.Empty(t, r.queue())

		r.jump(61 * time.Minute)
		for r.once(resume.JobMatch) {
		}
		require.Len(t, r.queue(), 2, "after an hour a person looks")
		require.Equal(t, resume.ReasonNoCandidate, r.queue()[0].Reason)
		require.NoError(t, r.eng.Dismiss(t.Context(), gone.EventID, "spam", "ann"))

		r.rest() // the same key again tells the thread
		require.Equal(t, []string{waits.MessageID}, messages(r.last(1)), "what a person dismissed stays dismissed")
		require.Empty(t, r.queue())
		require.Len(t, r.srv.Sends(), 1)
		require.Positive(t, r.srv.Sends()[0].Replays)
	})
}

// B9
func TestTwoMailsOnAFreshThread(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		first := r.srv.Inbound(efatest.Mail{From: supplier, Text: "1"})
		second := r.srv.Inbound(efatest.Mail{From: supplier, Thread: first.ThreadID, Text: "2"})
		colleague := r.srv.Inbound(efatest.Mail{From: "colleague@example.com", Thread: first.ThreadID, Text: "3"})
		r.rest()
		run := r.last(1)
		require.Equal(t, []string{first.MessageID, second.MessageID, colleague.MessageID}, messages(run))
		require.Equal(t, "sender", run.Inputs[0].MatchedBy)
		require.Equal(t, resume.ProofSender, run.Inputs[0].Proof)
		require.Equal(t, "thread", run.Inputs[1].MatchedBy)

		third := r.srv.Inbound(efatest.Mail{From: supplier, Thread: first.ThreadID, Text: "4"})
		r.rest()
		require.Equal(t, []string{third.MessageID}, messages(r.last(2)))
		require.Empty(t, r.queue())
	})
}

// B10: a second workflow of the same address makes mail ambiguous whatever it
// is doing, unless it is over.
func TestAmbiguityCountsEveryStatus(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := context.Background()
		r := open(listens, resume.Config{})
		address := func(s resume.Status) string { return string(s) + "@example.com" }
		statuses := []resume.Status{
			resume.StatusWaiting, resume.StatusNeedsReview, resume.StatusAwaitingApproval, resume.StatusDone,
			resume.StatusCanceled, resume.StatusRunning, resume.StatusRunnable, resume.StatusSending,
		}
		for _, s := range statuses {
			r.ask("first-"+string(s), address(s))
		}
		second := func(s resume.Status) string { return "second-" + string(s) }
		begin := func(s resume.Status) { r.ask(second(s), address(s)) }

		begin(resume.StatusWaiting)
		r.do(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Review("why"), nil })
		begin(resume.StatusNeedsReview)
		require.NoError(t, r.signal(second(resume.StatusNeedsReview), "s", ""))
		r.rest()
		r.srv.HoldSends(efatest.All)
		begin(resume.StatusAwaitingApproval)
		r.srv.HoldSends(nil)
		r.do(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil })
		begin(resume.StatusDone)
		require.NoError(t, r.signal(second(resume.StatusDone), "s", ""))
		begin(resume.StatusCanceled)
		require.NoError(t, r.eng.Cancel(ctx, second(resume.StatusCanceled), "ann"))
		begin(resume.StatusRunnable)
		begin(resume.StatusRunning)
		r.rest()
		working, release := make(chan struct{}), make(chan struct{})
		r.do(func(context.Context, *resume.Run) (resume.Next, error) {
			close(working)
			<-release
			return resume.Wait(0), nil
		})
		require.NoError(t, r.signal(second(resume.StatusRunning), "s", ""))
		over := make(chan error, 1)
		go func() {
			_, err := r.eng.Once(ctx, resume.JobWork)
			over <- err
		}()
		<-working
		require.NoError(t, r.signal(second(resume.StatusRunnable), "s", ""))
		r.start(resume.Start{ID: second(resume.StatusSending), Counterparty: address(resume.StatusSending), First: question(supplier)})

		for _, s := range statuses {
			require.Equal(t, s, r.status(second(s)))
			r.srv.Inbound(efatest.Mail{From: address(s), Text: "yes, go ahead"})
		}
		r.feed()
		for r.once(resume.JobMatch) {
		}
		items := r.queue()
		close(release)
		require.NoError(t, <-over)
		require.Len(t, items, len(statuses)-2)
		for _, it := range items {
			require.Equal(t, resume.ReasonSeveralCandidates, it.Reason)
			require.Len(t, it.Candidates, 2)
		}
		for _, s := range []resume.Status{resume.StatusDone, resume.StatusCanceled} {
			require.Equal(t, int64(1), r.workflow("first-"+string(s)).Pending, "the only live one: %s", s)
		}
	})
}

func TestMailOlderThanTheFirstSendCannotAnswerIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		in := r.srv.Inbound(efatest.Mail{From: supplier, Text: "an offer of our own"})
		r.feed()
		r.jump(time.Second)
		r.ask("w1", supplier)
		r.rest()
		it := r.queued()
		require.Equal(t, in.MessageID, it.Message)
		require.Equal(t, resume.ReasonNoCandidate, it.Reason)
		require.Empty(t, r.runs())
	})
}

// Addresses: case and IDNA are the same, dots and plus tags are not.
func TestSenderIsMatchedExactly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", "jane.doe@bücher.example")
		for _, from := range []string{"janedoe@bücher.example", "jane.doe+quotes@bücher.example", "jane.doe@example.com"} {
			r.srv.Inbound(efatest.Mail{From: from, Text: "not me"})
		}
		in := r.srv.Inbound(efatest.Mail{From: "Jane.Doe@XN--BCHER-KVA.example", Text: "me"})
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
		require.Len(t, r.queue(), 3)
	})
}

// Never by subject, never across inboxes.
func TestSubjectAndOtherInboxMatchNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		two := efatest.Config{Inboxes: map[string]string{"ibx_a": "a@agents.example", "ibx_b": "b@agents.example"}}
		r := open(listens, resume.Config{Inboxes: map[string][]string{"ibx_a": {"a@agents.example"}, "ibx_b": {"b@agents.example"}}}, two)
		r.ask("w1", supplier)
		r.srv.Inbound(efatest.Mail{Inbox: "ibx_a", From: "someone@example.com", Subject: "Re: Quote request", Text: "1"})
		r.srv.Inbound(efatest.Mail{Inbox: "ibx_b", From: supplier, Subject: "Re: Quote request", Text: "2"})
		r.rest()
		require.Empty(t, r.runs())
		items := r.queue()
		require.Len(t, items, 2)
		for _, it := range items {
			require.Equal(t, resume.ReasonNoCandidate, it.Reason)
			require.Empty(t, it.Candidates)
		}
	})
}

// dated is mail of a provider that says of what came in how long ago that was.
type dated struct {
	resume.Mail
	ago time.Duration
}

func (d dated) Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error] {
	return func(yield func(client.Message, error) bool) {
		for m, err := range d.Mail.Messages(ctx, inbox, thread) {
			if !m.Outbound {
				m.At = time.Now().Add(-d.ago)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// A webhook from before the program began comes again: its mail was there
// before the question that it would answer.
func TestOldMailIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago     time.Duration
		queued  int
		running int
	}{
		"an hour old":           {time.Hour, 1, 0},
		"by another clock only": {30 * time.Second, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, _ opener) {
				r := bareRig(t, storeOf(t), listens)
				r.wrap = func(m resume.Mail) resume.Mail { return dated{m, c.ago} }
				r.open(resume.Config{})
				r.ask("w1", supplier)
				r.srv.Inbound(efatest.Mail{From: supplier, Text: "on a thread of its own"})
				r.rest()
				require.Len(t, r.queue(), c.queued)
				require.Len(t, r.runs(), c.running)
			})
		})
	}
}
