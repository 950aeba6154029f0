package resumetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// B19 to B23: who is not the owner any more.

// The lease runs out under a worker that is still at it.
func TestB19LeaseRunsOut(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "lease-runs-out", Step: acks,
		Setup:  do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"other worker", do(jump(time.Minute), work)}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// A sender stalls after the provider took its mail, and all goes on without it
// up to the next send.
func TestB20SenderStalls(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "sender-stalls", Step: acks,
		Setup: start(question("w1")),
		Actors: []actor{
			{"sender", send},
			{"others", do(jump(2*time.Minute), send, replyOnceSent("w1", "100 EUR"), work)},
		},
		Check: do(status("w1", resume.StatusWaiting), acked),
	})
}

// The same with a send that is held, and approved before the sender wakes.
func TestB21HeldSenderStalls(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "held-sender-stalls", Step: acks,
		Setup: do(holdQuestions, start(question("w1"))),
		Actors: []actor{
			{"sender", send},
			{"others", do(jump(2*time.Minute), send, approveAll, sweep, match, match, replyOnceSent("w1", "100 EUR"), work)},
		},
		// The approval may have come before the send.
		Check: do(approveAll, settle, status("w1", resume.StatusWaiting), acked),
	})
}

// A workflow that lives is not begun again, over whatever it was doing.
func TestB22StartOverALiveWorkflow(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "start-over-a-live-workflow", Step: acks,
		Setup: do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"starter", func(w *world) error {
			if err := w.Start(question("w1")); !errors.Is(err, resume.ErrExists) {
				return errors.Join(errors.New("began a workflow that lives"), err)
			}
			return nil
		}}},
		Check: do(status("w1", resume.StatusWaiting), acked),
	})
}

// Two senders at once, the second when the first's lease is over: the provider
// says "in progress" while it is at it.
func TestB23TwoSenders(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "two-senders", Step: acks,
		Setup:  start(question("w1")),
		Actors: []actor{{"sender", send}, {"other sender", do(send, jump(2*time.Minute), send)}},
		Check:  do(status("w1", resume.StatusWaiting), sent(1)),
	})
}

// A person cancels while the program is at work.
func TestCancel(t *testing.T) {
	t.Parallel()
	cancel := func(w *world) error { return w.Engine().Cancel(w.Context(), "w1", "ann") }
	reopen := func(w *world) error {
		if err := w.Engine().Reopen(w.Context(), "w1", "ann"); !errors.Is(err, resume.ErrNotOver) {
			return err
		}
		return nil
	}
	t.Run("against-sender", func(t *testing.T) {
		t.Parallel()
		explore(t, scenario{
			Name: "cancel-against-sender", Step: acks,
			Setup:  start(question("w1")),
			Actors: []actor{{"sender", send}, {"ann", cancel}, {"reply", replyOnceSent("w1", "100 EUR")}},
			Check:  do(status("w1", resume.StatusCanceled), unanswered, places("", "queue")),
		})
	})
	t.Run("against-worker", func(t *testing.T) {
		t.Parallel()
		explore(t, scenario{
			Name: "cancel-against-worker", Step: acks,
			Setup:  do(ask("w1"), reply("w1", "100 EUR")),
			Actors: []actor{{"worker", work}, {"ann", cancel}},
			Check: do(status("w1", resume.StatusCanceled), either(
				do(places("queue"), unanswered),
				do(places("w1"), either(acked, unanswered)), // its answer may be dropped
			)),
		})
	})
	t.Run("and-reopen", func(t *testing.T) {
		t.Parallel()
		explore(t, scenario{
			Name: "cancel-and-reopen", Step: acks,
			Setup:  start(question("w1")),
			Actors: []actor{{"sender", send}, {"ann", do(cancel, reopen)}},
			Check:  do(status("w1", resume.StatusWaiting), either(sent(0), sent(1))),
		})
	})
	t.Run("reopen-against-late-reply", func(t *testing.T) {
		t.Parallel()
		explore(t, scenario{
			Name: "reopen-against-late-reply", Step: ends,
			Setup:  do(ask("w1"), reply("w1", "100 EUR"), settle),
			Actors: []actor{{"ann", reopen}, {"reply", reply("w1", "one more thing")}, {"worker", work}},
			Check: either(
				do(status("w1", resume.StatusDone), places("w1 w1")),
				do(status("w1", resume.StatusWaiting), places("w1 queue"), queue(1, resume.ReasonLateReply)),
			),
		})
	})
}

// What a person at the provider decides about a held send, against the answer
// that says it is held (B26, B27).
func TestB26ApprovedBeforeWeKnowItIsHeld(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "held-send-approved", Step: acks,
		Setup:  do(holdQuestions, start(question("w1"))),
		Actors: []actor{{"sender", send}, {"person", do(approveAll, sweep)}, {"matcher", match}},
		// The approval may have come before the send.
		Check: do(approveAll, settle, status("w1", resume.StatusWaiting), sent(1), queue(0, "")),
	})
}

func TestB27RejectedBeforeWeKnowItIsHeld(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "held-send-rejected", Step: endsRejected,
		Setup:  do(holdQuestions, start(question("w1"))),
		Actors: []actor{{"sender", send}, {"person", do(rejectAll, sweep)}, {"matcher", match}},
		Check:  do(rejectAll, settle, status("w1", resume.StatusDone), sent(0), queue(0, "")),
	})
}

// Two held drafts that look the same: a person says which was approved.
func TestB27TwoHeldDraftsAlike(t *testing.T) {
	t.Parallel()
	alike := func(id string) resume.Start {
		s := question(id)
		s.First = resume.Send(mailTo(supplier, "Quote request"))
		return s
	}
	play(t, scenario{
		Name: "two-held-drafts-alike", Step: acks,
		Setup: do(holdQuestions, start(alike("w1")), start(alike("w2")), send, send),
		Actors: []actor{{"person", func(w *world) error {
			_, err := w.Provider().Approve(w.Provider().Sends()[1].ApprovalID)
			return err
		}}},
		Check: do(status("w1", resume.StatusAwaitingApproval), status("w2", resume.StatusAwaitingApproval), queue(1, resume.ReasonSeveralCandidates)),
	})
}

func holdQuestions(w *world) error {
	w.Provider().HoldSends(func(s efatest.Send) bool { return s.Subject != "ack" })
	return nil
}

func held(w *world) (ids []string) {
	for _, s := range w.Provider().Sends() {
		if s.ApprovalID != "" && s.MessageID == "" && !s.Rejected {
			ids = append(ids, s.ApprovalID)
		}
	}
	return ids
}

func approveAll(w *world) error {
	for _, id := range held(w) {
		if _, err := w.Provider().Approve(id); err != nil {
			return err
		}
	}
	return nil
}

func rejectAll(w *world) error {
	for _, id := range held(w) {
		if err := w.Provider().Reject(id); err != nil {
			return err
		}
	}
	return nil
}
