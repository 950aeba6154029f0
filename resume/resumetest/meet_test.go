package resumetest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// Where more than two parts of the engine meet, and those that only a running
// engine has.

// The deadline passes, a sweep sees that nothing came before it, and a reply
// comes, in every order. After a crash the clock jumps again: two deadlines in a
// row, before the reply, end it.
func TestDeadlineJumpAgainstReply(t *testing.T) {
	t.Parallel()
	q := question("w1")
	q.First = q.First.Wait(24 * time.Hour)
	explore(t, scenario{
		Name: "deadline-jump-against-reply", Step: reminds,
		Setup:  do(start(q), settle),
		Actors: []actor{{"clock", do(jump(25*time.Hour), sweep)}, {"worker", work}, {"reply", reply("w1", "100 EUR")}},
		Check: either(do(status("w1", resume.StatusWaiting), acked),
			do(status("w1", resume.StatusDone), queue(1, resume.ReasonLateReply), unanswered)),
	})
}

// Two workers, both doors, a matcher, a sender and the clock: by chance, for
// all orders are too many.
func TestEverybodyMeets(t *testing.T) {
	t.Parallel()
	o := bounded(t)
	o.Preemptions, o.Runs, o.Random = 0, 1, o.Random*4
	exploreWithin(t, scenario{
		Name: "everybody-meets", Step: acks,
		Setup: do(ask("w1"), ask("w2"), reply("w1", "100 EUR"), answeredAtOnce(colleague), start(question("w3"))),
		Actors: []actor{
			{"worker", work},
			{"other worker", do(work, work)},
			{"push", do(reply("w1", "sorry, 90 EUR"), fresh(supplier, "about which?"))},
			{"sweeper", do(sweep, sweep)},
			{"matcher", do(match, match)},
			{"sender", do(send, send)},
			{"clock", jump(time.Minute)},
		},
		Check: do(status("w1", resume.StatusWaiting), status("w2", resume.StatusWaiting), status("w3", resume.StatusWaiting),
			places("w1 w1 queue w3", "w1 w1 w3 queue", "w1 queue w1 w3", "w1 queue w3 w1", "w1 w3 w1 queue", "w1 w3 queue w1"),
			queue(1, resume.ReasonSeveralCandidates)),
	}, o)
}

// A person binds mail on a new thread while more of it is looked at, which
// nobody could place without the thread.
func TestB8MatcherAgainstBind(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "matcher-against-bind", Step: waits,
		Setup: do(ask("w1"), ask("w2"), fresh(supplier, "about which?"), settle),
		Actors: []actor{{"ann", func(w *world) error {
			return refusable(w.Engine().Bind(w.Context(), received(w, 0), "w1", "ann"))
		}}, {"door", do(func(w *world) error {
			first := w.Provider().Messages("")
			return w.InboundAndPush(efatest.Mail{From: supplier, Thread: first[len(first)-1].Thread, Text: "hello?"})
		}, match)}},
		Check: do(places("w1 w1"), queue(0, "")),
	})
}

// Somebody is forgotten while a workflow of theirs begins.
func TestForgetAgainstStart(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "forget-against-start", Step: ends,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle),
		Actors: []actor{
			{"ann", func(w *world) error { return refusable(w.Engine().Forget(w.Context(), supplier)) }},
			{"starter", do(start(question("w2")), send)},
			{"reply", reply("w1", "one more thing")},
		},
		Check: do(status("w1", resume.StatusDone), status("w2", resume.StatusWaiting), sent(2), places("w1 queue"), func(w *world) error {
			row, err := w.Engine().Workflow(w.Context(), "w2")
			if err == nil && row.Counterparty.Text() != supplier {
				err = errors.New("the new workflow has forgotten its counterparty")
			}
			return err
		}),
	})
}

// A finished workflow is old enough to be dropped when its ID is used again
// and late mail comes.
func TestTidyAgainstStart(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "tidy-against-start", Step: ends,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle, jump(100*24*time.Hour), sweep),
		Actors: []actor{
			{"tidy", tidy},
			{"starter", do(start(question("w1")), send)},
			{"reply", func(w *world) error {
				return w.InboundAndPush(efatest.Mail{From: supplier, Thread: w.Provider().Sends()[0].ThreadID, Text: "one more thing"})
			}},
		},
		Check: do(askedAnew, sent(2), queue(1, resume.ReasonLateReply)),
	})
}

// tidy is one round of what a running engine drops, and nothing else that it
// does.
func tidy(w *world) error {
	hook := sqldb.HookOf(w.Context())
	ctx, stop := context.WithTimeout(w.Context(), time.Minute)
	defer stop()
	var mu sync.Mutex
	var ended error
	last := false
	err := w.Engine().Run(sqldb.WithHook(ctx, func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ended != nil:
			return ended
		case strings.Contains(point, "due <= "): // who looks for work
			return errElsewhere
		}
		last = last || strings.Contains(point, "delete from") && strings.Contains(point, "workflows where")
		err := hook(point)
		switch {
		case err != nil:
			ended = err
			stop()
		case last && point == "after commit":
			ended = errElsewhere
			stop()
		}
		return err
	}))
	mu.Lock()
	defer mu.Unlock()
	switch {
	case err != nil:
		return err
	case ended == nil:
		return errors.New("the tidying does not come to its end")
	case !errors.Is(ended, errElsewhere):
		return ended
	}
	return nil
}

// errElsewhere is what a part of a running engine meets that is not to act.
var errElsewhere = errors.New("the database is elsewhere")
