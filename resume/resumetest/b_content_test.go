package resumetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// B14 to B18: what was read, and what should be answered at all.

// A message that its thread does not list yet is kept, and goes to a person in
// the end; one behind the first hundred is found.
func TestB14NotListed(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "not-listed", Step: acks, Config: resume.Config{UnreadableUntil: 10 * time.Minute},
		Setup: ask("w1"),
		Actors: []actor{{"mail", do(
			func(w *world) error {
				return w.InboundAndPush(efatest.Mail{From: supplier, Text: "late", ListedAfter: 40 * 24 * time.Hour})
			},
			settle,
		)}},
		Check: do(sent(1), queue(1, resume.ReasonUnreadable)),
	})
}

func TestB14LongThread(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "long-thread", Step: acks,
		Setup: do(ask("w1"), func(w *world) error {
			thread, err := w.Thread("w1")
			for range 150 {
				w.Provider().Hide(w.Provider().Inbound(efatest.Mail{Thread: thread, From: colleague, Text: "noise"}).MessageID)
			}
			for _, m := range w.Provider().Messages(thread) {
				w.Provider().Reveal(m.ID)
			}
			return err
		}),
		Actors: []actor{{"reply", reply("w1", "the 151st")}, {"worker", do(work, given("w1", 1))}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// An input is consumed by a run that was shown its content, or not at all.
func TestB15UnreadableIsNotConsumed(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "unreadable-is-not-consumed", Step: acks,
		Setup: ask("w1"),
		Actors: []actor{{"reply", func(w *world) error {
			thread, err := w.Thread("w1")
			if err != nil {
				return err
			}
			return w.InboundAndPush(efatest.Mail{From: supplier, Thread: thread, Text: "100 EUR", BodyAfter: 3 * time.Minute})
		}}, {"worker", do(work, jump(10*time.Second), work)}},
		Check: do(status("w1", resume.StatusWaiting), acked),
	})
}

// The same message by every door, and under a second event ID.
func TestB16SameMessageAgain(t *testing.T) {
	t.Parallel()
	last := func(n int) func(*world) error {
		return func(w *world) error { ev := w.Provider().Events(); return w.Push(ev[len(ev)-n].ID) }
	}
	explore(t, scenario{
		Name: "same-message-again", Step: acks,
		Setup: do(ask("w1"), func(w *world) error {
			in, err := w.Reply("w1", "100 EUR")
			w.Provider().Announce(in.MessageID)
			return err
		}),
		Actors: []actor{{"push", last(1)}, {"sweep", sweep}, {"other push", last(2)}},
		Check:  do(acked, sent(2)),
	})
}

// Somebody else in the thread: the step is told so, or a policy asks a person.
func TestB17AnyoneInTheThread(t *testing.T) {
	t.Parallel()
	byColleague := func(w *world) error {
		thread, err := w.Thread("w1")
		if err != nil {
			return err
		}
		return w.InboundAndPush(efatest.Mail{From: colleague, Thread: thread, Text: "100 EUR"})
	}
	t.Run("told", func(t *testing.T) {
		t.Parallel()
		play(t, scenario{
			Name: "told", Setup: ask("w1"), Actors: []actor{{"colleague", byColleague}},
			Step: func(_ context.Context, run *resume.Run) (resume.Next, error) {
				if run.Inputs[0].Proof != resume.ProofThread {
					return resume.Next{}, fmt.Errorf("proof %q", run.Inputs[0].Proof)
				}
				return resume.Done(), nil
			},
			Check: status("w1", resume.StatusDone),
		})
	})
	t.Run("policy", func(t *testing.T) {
		t.Parallel()
		play(t, scenario{
			Name: "policy", Step: ends, Config: resume.Config{Policy: resume.CounterpartyOnly},
			Setup: ask("w1"), Actors: []actor{{"colleague", byColleague}},
			Check: do(status("w1", resume.StatusWaiting), queue(1, resume.ReasonPolicy)),
		})
	})
}

// The own echo and delivery notices wake nobody, and two robots do not talk
// for ever.
func TestB18Echo(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "echo", Step: acks,
		Setup: func(w *world) error {
			w.Provider().Echo(efatest.All)
			return w.Start(question("w1"))
		},
		Actors: []actor{{"notice", fresh("mailer-daemon@example.com", "undeliverable")}},
		Check:  do(sent(1), status("w1", resume.StatusWaiting), queue(0, "")),
	})
}

func TestB18Loop(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "loop", Step: acks, Config: resume.Config{MaxSendsPerHour: 3},
		Setup: func(w *world) error {
			w.Provider().OnSend(func(s efatest.Send) {
				w.Provider().Inbound(efatest.Mail{From: supplier, ReplyTo: s.MessageID, Text: "I am out of office"})
			})
			return w.Start(question("w1"))
		},
		Actors: []actor{{"rest", settle}},
		Check:  do(sent(4), status("w1", resume.StatusWaiting), queue(1, resume.ReasonLoop)),
	})
}

// Two people decide about one mail at the same time.
func TestTwoPeople(t *testing.T) {
	t.Parallel()
	item := func(w *world) string {
		items, err := w.Engine().Queue(w.Context(), "", 0)
		if err != nil || len(items) == 0 {
			return "nothing"
		}
		return items[0].EventID
	}
	bind := func(id string) func(*world) error {
		return func(w *world) error { return refusable(w.Engine().Bind(w.Context(), item(w), id, "ann")) }
	}
	dismiss := func(w *world) error { return refusable(w.Engine().Dismiss(w.Context(), item(w), "spam", "bob")) }
	undo := func(w *world) error {
		ev := w.Provider().Events()
		return refusable(w.Engine().Undo(w.Context(), ev[len(ev)-1].ID, "bob"))
	}
	cancel := func(w *world) error { return refusable(w.Engine().Cancel(w.Context(), "w1", "bob")) }
	several := queue(1, resume.ReasonSeveralCandidates)
	for name, c := range map[string]struct {
		actors []actor
		check  func(*world) error
	}{
		"bind-against-dismiss": {
			[]actor{{"ann", bind("w1")}, {"bob", dismiss}},
			either(do(acked, places("w1"), decided(0, "bound")), do(unanswered, places("settled"), decided(0, "dismissed"))),
		},
		"bind-against-other-bind": {
			[]actor{{"ann", bind("w1")}, {"bob", bind("w2")}},
			do(acked, places("w1", "w2"), decided(0, "bound")),
		},
		"bind-against-undo": {
			[]actor{{"ann", bind("w1")}, {"bob", undo}, {"worker", do(jump(afterHold), work)}},
			either(do(acked, places("w1"), decided(0, "bound")), do(unanswered, several, decided(0, "bound unbound"))),
		},
		"bind-against-cancel": {
			[]actor{{"ann", bind("w1")}, {"bob", cancel}},
			do(status("w1", resume.StatusCanceled), either(
				do(unanswered, places("queue")),
				do(acked, places("w1")), // it was canceled after its hold
			)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore(t, scenario{
				Name: name, Step: acks, Setup: do(ask("w1"), ask("w2"), fresh(supplier, "about which?"), settle), Actors: c.actors, Check: c.check,
			})
		})
	}
}

// refusable takes the engine's own refusal for an answer.
func refusable(err error) error {
	if errors.Is(err, resume.Err) {
		return nil
	}
	return err
}
