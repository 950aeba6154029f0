package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// crashing returns a context in which everything fails from the k-th boundary
// on, as in a process that ended there, and whether it came that far.
func crashing(ctx context.Context, k int) (_ context.Context, crashed func() bool) {
	n := 0
	return sqldb.WithHook(ctx, func(string) error {
		if n++; n >= k {
			return errCrash
		}
		return nil
	}), func() bool { return n >= k }
}

const last = 6

// life is what a process does between its start and its end, of a stream of
// its own so that many lives fit into one database.
type life struct {
	s      *store
	name   string
	well   bool // the handler takes event 4, too
	pruned bool // IDs are forgotten: the provider has long stopped to push
}

func (l *life) id(n int) events.Event {
	ev := event(n)
	ev.ID = l.name + "/" + ev.ID
	return ev
}

func (l *life) page(from, to int) events.Batch {
	b := page(from, to)
	for i := range b.Events {
		b.Events[i].ID = l.name + "/" + b.Events[i].ID
	}
	return b
}

func (l *life) start() *dedupe.Inbox {
	return l.s.inbox(dedupe.Config{Stream: events.Stream{Name: l.name}, Retain: time.Microsecond, RetryAfter: time.Microsecond},
		func(_ context.Context, _ exec, fresh []events.Event) error {
			for _, ev := range fresh {
				if ev.ID == l.id(4).ID && !l.well {
					return errPoison
				}
			}
			return nil
		})
}

// run does a bit of everything, and stops at the first error that is not an
// answer.
func (l *life) run(ctx context.Context) error {
	in := l.start()
	if _, err := in.Position(ctx); err != nil {
		return err
	}
	if err := in.Attach(ctx, 0); err != nil {
		return err
	}
	for _, n := range []int{2, 4} {
		if l.pruned {
			break
		}
		ev := l.id(n)
		ev.Sequence = 0
		if _, err := in.Push(ctx, ev); err != nil && !errors.Is(err, events.ErrParked) {
			return err
		}
	}
	if _, err := in.Take(ctx, l.page(1, last)); err != nil {
		return err
	}
	pos, err := in.Position(ctx)
	if err != nil {
		return err
	}
	if err := in.Reached(ctx, pos.Now.Add(time.Second), pos.Cursor, 0, true); err != nil {
		return err
	}
	l.pruned = true
	return in.Maintain(ctx)
}

// Every boundary of every statement and commit: the process ends there, another
// starts, everything is delivered again. Nothing is lost, nothing doubled.
func TestCrashAtEveryStatement(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		step := 1
		if raceDetector {
			step = 5
		}
		for k := 1; ; k += step {
			l := &life{s: s, name: fmt.Sprintf("life%d", k)}
			ctx, crashed := crashing(t.Context(), k)
			err := l.run(ctx)
			if !crashed() {
				require.NoError(t, err)
				require.Greater(t, k, 40, "boundaries")
				return
			}
			l.well = true
			require.NoError(t, l.run(t.Context()), "boundary %d", k)
			for len(listed(t, l.start())) > 0 { // due in a moment
				maintain(t, l.start())
			}
			var want []string
			for n := 1; n <= last; n++ {
				want = append(want, l.id(n).ID)
			}
			require.Equal(t, want, l.effects(), "boundary %d", k)
		}
	})
}

func (l *life) effects() []string {
	var mine []string
	for _, id := range l.s.effects() {
		if len(id) > len(l.name) && id[:len(l.name)+1] == l.name+"/" {
			mine = append(mine, id)
		}
	}
	return mine
}
