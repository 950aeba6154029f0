package resumetest_test

import (
	"testing"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// The corpus: each defect of a first design of such an engine, as a test of
// what is right. B1 to B6 are wake-ups that were lost.

var correction = scenario{
	Name: "correction-while-answering", Step: acks,
	Setup:  do(ask("w1"), reply("w1", "100 EUR")),
	Actors: []actor{{"worker", work}, {"correction", reply("w1", "sorry, 90 EUR")}},
	Check:  do(status("w1", resume.StatusWaiting), acked),
}

// A correction arrives while the agent answers, and the process ends there.
func TestB1CorrectionWhileAnswering(t *testing.T) {
	t.Parallel()
	o := bounded(t)
	o.Preemptions = -1
	exploreWithin(t, correction, o)
}

// The answer is there before we know that the question left.
func TestB2ReplyWhileSending(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "reply-while-sending", Step: acks,
		Setup:  start(question("w1")),
		Actors: []actor{{"sender", send}, {"reply", replyOnceSent("w1", "100 EUR")}, {"matcher", match}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// What is pending is looked at under the lock.
func TestB3CorrectionBesideTheWorker(t *testing.T) {
	t.Parallel()
	o := bounded(t)
	o.Stride = -1
	exploreWithin(t, correction, o)
}

// A worker that goes back to waiting decides by columns of the row it locks,
// not by what its statement saw before it had to wait.
func TestB4WaitAgainstReply(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "wait-against-reply", Step: waits,
		Setup:  do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"correction", reply("w1", "sorry, 90 EUR")}},
		Check:  status("w1", resume.StatusWaiting),
	})
}

// A reply on a known thread arrives while the workflow's next mail is held, or
// while the workflow is before a person.
func TestB5ReplyWhileHeld(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "reply-while-held", Step: acks,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), work, func(w *world) error {
			w.Provider().HoldSends(efatest.All)
			if err := w.Send(); err != nil {
				return err
			}
			w.Provider().HoldSends(nil)
			return nil
		}),
		Actors: []actor{{"reply", reply("w1", "sorry, 90 EUR")}, {"person", do(approveAll, sweep)}, {"matcher", match}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

func TestB5ReplyWhileInReview(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "reply-while-in-review", Step: reviewsFirst,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle),
		Actors: []actor{{"reply", reply("w1", "sorry, 90 EUR")}, {"person", func(w *world) error {
			return w.Engine().RunNow(w.Context(), "w1", "ann")
		}}, {"worker", work}},
		Check: status("w1", resume.StatusWaiting),
	})
}

// Mail is matched by its sender while that workflow ends.
func TestB6DoneAgainstMatcher(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "done-against-matcher", Step: ends,
		Setup:  do(ask("w1"), reply("w1", "100 EUR"), fresh(supplier, "and one more thing")),
		Actors: []actor{{"worker", work}, {"matcher", match}},
		Check:  status("w1", resume.StatusDone),
	})
}
