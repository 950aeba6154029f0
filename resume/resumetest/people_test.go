package resumetest_test

import (
	"testing"

	"github.com/replywake/replywake/client/efa/efatest"
)

// received is the n-th message that came, counted from 0.
func received(w *world, n int) string {
	for _, e := range w.Provider().Events() {
		if e.Type != efatest.MessageReceived {
			continue
		}
		if n == 0 {
			return e.ID
		}
		n--
	}
	return ""
}

// Two people decide about two late mails on the thread of a workflow that is
// over, which moves with a bind and back with its undo.
func TestTwoPeopleAndAMovedThread(t *testing.T) {
	t.Parallel()
	bind := func(n int, id string) func(*world) error {
		return func(w *world) error { return refusable(w.Engine().Bind(w.Context(), received(w, n), id, "ann")) }
	}
	rebind := func(id string) func(*world) error {
		return func(w *world) error { return refusable(w.Engine().Rebind(w.Context(), received(w, 1), id, "ann")) }
	}
	undo := func(n int) func(*world) error {
		return func(w *world) error { return refusable(w.Engine().Undo(w.Context(), received(w, n), "bob")) }
	}
	inTime := func(w *world) error { return w.Engine().Undo(w.Context(), received(w, 1), "bob") }
	reopen := func(w *world) error { return refusable(w.Engine().Reopen(w.Context(), "w1", "bob")) }
	cancel := func(w *world) error { return refusable(w.Engine().Cancel(w.Context(), "w2", "bob")) }
	work := do(func(w *world) error { return refusable(w.Engine().RunNow(w.Context(), "w2", "ann")) }, work)
	mail := reply("w1", "anybody?")

	late := do(ask("w1"), reply("w1", "100 EUR"), settle, reply("w1", "new business"), reply("w1", "hello?"), ask("w2"), ask("w3"), settle)
	bound := do(late, bind(1, "w2"))
	for name, c := range map[string]struct {
		setup  func(*world) error
		actors []actor
		places []string // where the mails may end, of which w1 was given the first before; nil: wherever people decided
	}{
		"bind-against-undo":         {late, []actor{{"ann", bind(1, "w2")}, {"bob", inTime}}, []string{"w1 queue queue", "w1 w2 w2"}},
		"bind-against-bind-of-next": {late, []actor{{"ann", bind(1, "w2")}, {"bob", bind(2, "w3")}}, []string{"w1 w2 w2", "w1 w3 w3"}},
		"bind-against-reopen":       {late, []actor{{"ann", bind(1, "w2")}, {"bob", reopen}, {"door", mail}}, []string{"w1 w2 w2 w2", "w1 w2 queue w1", "w1 w2 queue queue"}},
		"back-and-forth":            {late, []actor{{"ann", do(bind(1, "w2"), undo(1), bind(1, "w3"))}, {"bob", do(bind(2, "w2"), undo(2))}}, nil},
		"rebind-against-rebind":     {bound, []actor{{"ann", rebind("w3")}, {"bob", rebind("w2")}}, []string{"w1 w2 w2", "w1 w3 w3"}},
		"rebind-against-undo":       {bound, []actor{{"ann", rebind("w3")}, {"bob", inTime}}, []string{"w1 queue queue", "w1 w2 w2", "w1 w3 w3"}},
		"rebind-against-reply":      {bound, []actor{{"ann", rebind("w3")}, {"door", mail}, {"worker", work}}, []string{"w1 w2 w2 w2", "w1 w3 w3 w3"}},
		"undo-against-reply":        {bound, []actor{{"bob", undo(1)}, {"door", mail}, {"worker", work}}, []string{"w1 queue queue queue", "w1 w2 w2 w2"}},
		"undo-against-cancel":       {bound, []actor{{"bob", undo(1)}, {"ann", cancel}, {"door", mail}}, []string{"w1 queue queue queue", "w1 w2 w2 queue"}},
		"undo-against-reopen":       {bound, []actor{{"bob", undo(1)}, {"ann", reopen}, {"door", mail}}, []string{"w1 queue queue queue", "w1 queue queue w1", "w1 w2 w2 w2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := places(c.places...)
			if c.places == nil {
				check = whereDecided(1, 2)
			}
			explore(t, scenario{Name: name, Step: endsOne, Setup: c.setup, Actors: c.actors, Check: check})
		})
	}
}
