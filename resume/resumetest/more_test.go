package resumetest_test

import (
	"errors"
	"testing"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// Orders that no public report names, where two parts of the engine meet.

// An undone bind takes back what went along, unless a run was faster.
func TestUndoAgainstWorker(t *testing.T) {
	t.Parallel()
	first := func(w *world) string {
		for _, e := range w.Provider().Events() {
			if e.Type == efatest.MessageReceived {
				return e.ID
			}
		}
		return ""
	}
	explore(t, scenario{
		Name: "undo-against-worker", Step: acks,
		Setup: do(ask("w1"), ask("w2"), twoOnAThread, settle, func(w *world) error {
			return w.Engine().Bind(w.Context(), first(w), "w1", "ann")
		}),
		Actors: []actor{
			{"bob", func(w *world) error { return refusable(w.Engine().Undo(w.Context(), first(w), "bob")) }},
			{"worker", do(func(w *world) error { return refusable(w.Engine().RunNow(w.Context(), "w1", "ann")) }, work)},
		},
		Check: either(do(acked, places("w1 w1")), do(unanswered, places("queue queue"))),
	})
}

func TestRebindAgainstWorker(t *testing.T) {
	t.Parallel()
	mail := func(w *world) string { ev := w.Provider().Events(); return ev[len(ev)-1].ID }
	explore(t, scenario{
		Name: "rebind-against-worker", Step: waits,
		Setup: do(ask("w1"), ask("w2"), fresh(supplier, "about which?"), settle, func(w *world) error {
			return w.Engine().Bind(w.Context(), mail(w), "w1", "ann")
		}),
		Actors: []actor{
			{"bob", func(w *world) error { return refusable(w.Engine().Rebind(w.Context(), mail(w), "w2", "bob")) }},
			{"worker", do(jump(afterHold), work)},
		},
		Check: places("w1", "w2"),
	})
}

// A person gives the thread of a finished workflow to another while one sweep
// brings mail for both.
func TestThreadMovesAgainstSweep(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "thread-moves-against-sweep", Step: waits,
		Setup: do(ask("w1"), func(w *world) error { return w.Engine().Cancel(w.Context(), "w1", "ann") },
			reply("w1", "100 EUR"), settle, ask("w2"), func(w *world) error {
				for _, send := range w.Provider().Sends() {
					w.Inbound(efatest.Mail{From: supplier, Thread: send.ThreadID, Text: "more"})
				}
				return nil
			}),
		Actors: []actor{{"ann", func(w *world) error {
			return w.Engine().Bind(w.Context(), received(w, 0), "w2", "ann")
		}}, {"sweeper", sweep}},
		Check: places("w2 w2 w2"),
	})
}

// A signal comes as the workflow ends: it is an input or refused.
func TestSignalAgainstDone(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "signal-against-done", Step: ends,
		Setup: do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"user", func(w *world) error {
			return refusable(w.Signal("w1", "payment-1", []byte("paid")))
		}}},
		Check: status("w1", resume.StatusDone),
	})
}

// A finished workflow is opened again while mail is matched by its sender.
func TestReopenAgainstSenderRule(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "reopen-against-sender-rule", Step: endsOne,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle, ask("w2"), fresh(supplier, "about which?")),
		Actors: []actor{{"matcher", match}, {"ann", func(w *world) error {
			return refusable(w.Engine().Reopen(w.Context(), "w1", "ann"))
		}}},
		Check: either(do(places("w1 w2"), queue(0, "")), do(places("w1 queue"), queue(1, resume.ReasonSeveralCandidates))),
	})
}

// A workflow is canceled while mail is matched by its sender, or a person at
// the provider refuses its send.
func TestCancelAgainstMatcher(t *testing.T) {
	t.Parallel()
	cancel := func(w *world) error { return w.Engine().Cancel(w.Context(), "w1", "ann") }
	explore(t, scenario{
		Name: "cancel-against-matcher", Step: acks,
		Setup:  do(ask("w1"), fresh(supplier, "100 EUR")),
		Actors: []actor{{"matcher", match}, {"ann", cancel}, {"worker", work}},
		Check:  status("w1", resume.StatusCanceled),
	})
}

func TestCancelAgainstRejection(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "cancel-against-rejection", Step: acks,
		Setup: do(holdQuestions, start(question("w1")), send),
		Actors: []actor{{"person", do(rejectAll, sweep)}, {"ann", func(w *world) error {
			return w.Engine().Cancel(w.Context(), "w1", "ann")
		}}, {"worker", work}},
		Check: status("w1", resume.StatusCanceled),
	})
}

// The ID of a finished workflow begins a new life while mail comes on a thread
// of the old one.
func TestRestartAgainstReply(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "restart-against-reply", Step: ends,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle),
		Actors: []actor{{"starter", func(w *world) error {
			if err := w.Start(question("w1")); !errors.Is(err, resume.ErrExists) {
				return err
			}
			return nil
		}}, {"mail", func(w *world) error {
			thread := w.Provider().Sends()[0].ThreadID
			return w.InboundAndPush(efatest.Mail{From: supplier, Thread: thread, Text: "one more thing"})
		}}, {"sender", send}},
		Check: do(askedAnew, sent(2), places("settled queue"), queue(1, resume.ReasonLateReply)),
	})
}
