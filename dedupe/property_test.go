package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

var worlds atomic.Int64

// world is a provider that has events, two processes that receive them, and
// time that passes.
type world struct {
	s         *store
	name      string
	born      []int // the day on which each event happened; event n is born[n-1]
	day       int
	granted   bool         // the credential sees ibx_1 too
	bad       map[int]bool // the handler fails on these now
	processes []*dedupe.Inbox
}

func newWorld(s *store) *world {
	w := &world{s: s, name: fmt.Sprintf("w%d", worlds.Add(1)), bad: map[int]bool{}}
	w.processes = []*dedupe.Inbox{w.process(), w.process()}
	return w
}

func (w *world) process() *dedupe.Inbox {
	return w.s.inbox(dedupe.Config{Stream: events.Stream{Name: w.name}, MaxAttempts: 2},
		func(_ context.Context, _ exec, fresh []events.Event) error {
			for n, bad := range w.bad {
				if bad && slices.ContainsFunc(fresh, func(ev events.Event) bool { return ev.ID == w.event(n).ID }) {
					return errPoison
				}
			}
			return nil
		})
}

func (w *world) event(n int) events.Event {
	ev := event(n)
	ev.ID = w.name + "/" + ev.ID
	ev.Inbox = fmt.Sprintf("ibx_%d", n%2)
	ev.OccurredAt = time.Time{}
	if n <= len(w.born) {
		ev.OccurredAt = time.Now().Add(-time.Duration(w.age(n)) * days)
	}
	return ev
}

// age of an event in days.
func (w *world) age(n int) int { return w.day - w.born[n-1] }

func (w *world) head() int { return len(w.born) }

// context crashes at some boundary, or not at all.
func (w *world) context(t *rapid.T) context.Context {
	k := rapid.IntRange(0, 12).Draw(t, "crash at")
	if k == 0 {
		return w.s.tb.Context()
	}
	ctx, _ := crashing(w.s.tb.Context(), k)
	return ctx
}

// answered is false if the store did not take it, which only a crash may do.
func (w *world) answered(t *rapid.T, err error) bool {
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, events.ErrParked) {
		t.Fatalf("neither an answer nor a crash: %v", err)
	}
	return err == nil
}

func (w *world) any(t *rapid.T) *dedupe.Inbox {
	return w.processes[rapid.IntRange(0, len(w.processes)-1).Draw(t, "process")]
}

func (w *world) happen(t *rapid.T) {
	for range rapid.IntRange(1, 5).Draw(t, "events") {
		w.born = append(w.born, w.day)
	}
}

func (w *world) attach(t *rapid.T) {
	in := w.any(t)
	w.answered(t, in.Attach(w.context(t), events.Cursor(w.head())))
}

// lose the stream's row; the processes begin again, at the head or at 0.
func (w *world) lose(t *rapid.T) {
	w.s.exec("delete from {s}streams")
	w.processes = []*dedupe.Inbox{w.process(), w.process()}
	from := rapid.SampledFrom([]int{0, w.head()}).Draw(t, "from")
	w.answered(t, w.any(t).Attach(w.context(t), events.Cursor(from)))
}

// grant has sweeps see an inbox that they did not see.
func (w *world) grant(*rapid.T) { w.granted = true }

// forget what is handled: all is swept, and a week later its IDs go.
func (w *world) forgetAll(t *rapid.T) {
	in, ctx := w.any(t), w.s.tb.Context()
	if pos := position(w.s.tb, in); pos.Known && w.sweep(ctx, t, in, int(pos.Settled), events.Batch{}) {
		require.NoError(t, in.Reached(ctx, pos.Now.Add(time.Second), events.Cursor(w.head()), 0, true))
	}
	w.s.age(8 * days)
	w.day += 8
	require.NoError(t, in.Maintain(ctx))
}

// push comes as long as a provider tries.
func (w *world) push(t *rapid.T) {
	n := rapid.IntRange(1, max(w.head(), 1)).Draw(t, "event")
	if n > w.head() || w.age(n) > 6 {
		return
	}
	ev := w.event(n)
	ev.Sequence, ev.OccurredAt = 0, time.Time{}
	_, err := w.any(t).Push(w.context(t), ev)
	w.answered(t, err)
}

// sweep reads from the settled position to the head, in pages.
func (w *world) sweep(ctx context.Context, t *rapid.T, in *dedupe.Inbox, from int, b events.Batch) bool {
	for n := from + 1; n <= w.head(); n += 4 {
		b.Events = nil
		w.granted = w.granted || rapid.IntRange(0, 9).Draw(t, "granted now") == 9
		for m := n; m <= min(n+3, w.head()); m++ {
			if ev := w.event(m); w.granted || ev.Inbox == "ibx_0" {
				b.Events = append(b.Events, ev)
			}
		}
		if len(b.Events) == 0 {
			continue
		}
		if !b.History {
			b.Cursor = b.Events[len(b.Events)-1].Sequence
		}
		if _, err := in.Take(ctx, b); !w.answered(t, err) {
			return false
		}
	}
	return true
}

func (w *world) sweepFromSettled(t *rapid.T) {
	in, ctx := w.any(t), w.context(t)
	pos, err := in.Position(ctx)
	if !w.answered(t, err) || !pos.Known {
		return
	}
	if w.sweep(ctx, t, in, int(pos.Settled), events.Batch{}) {
		w.answered(t, in.Reached(ctx, pos.Now.Add(time.Second), events.Cursor(w.head()), 0, true))
	}
}

// sweepFromBeginning is after a 410.
func (w *world) sweepFromBeginning(t *rapid.T) {
	if in := w.any(t); position(w.s.tb, in).Known {
		w.sweep(w.context(t), t, in, 0, events.Batch{})
	}
}

func (w *world) sweepHistory(t *rapid.T) {
	if in := w.any(t); position(w.s.tb, in).Known {
		from := rapid.IntRange(0, w.head()).Draw(t, "from")
		w.sweep(w.context(t), t, in, from, events.Batch{History: true})
	}
}

func (w *world) days(t *rapid.T) {
	n := rapid.SampledFrom([]int{1, 3, 8, 40}).Draw(t, "days")
	w.s.age(time.Duration(n) * days)
	w.day += n
}

func (w *world) moods(t *rapid.T) {
	if w.head() > 0 {
		n := rapid.IntRange(1, w.head()).Draw(t, "event")
		w.bad[n] = !w.bad[n]
	}
}

func (w *world) maintain(t *rapid.T) { w.answered(t, w.any(t).Maintain(w.context(t))) }

// check is after every action: nothing is doubled.
func (w *world) check(t *rapid.T) {
	seen := map[string]bool{}
	for _, id := range w.effects() {
		if seen[id] {
			t.Fatalf("%s took effect twice", id)
		}
		seen[id] = true
	}
}

func (w *world) effects() (ids []string) {
	query := "select id from " + w.s.table + " where id like '" + w.name + "/%' order by id"
	err := w.s.db.Read().Query(w.s.tb.Context(), query, nil, func(scan sqldb.Scan) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	require.NoError(w.s.tb, err)
	return ids
}

// end: the handler is well, a sweep reaches the head, people retry what failed.
// Nothing is lost.
func (w *world) end(t *rapid.T) {
	w.bad, w.granted = map[int]bool{}, true
	in, ctx := w.process(), w.s.tb.Context()
	require.NoError(t, in.Attach(ctx, events.Cursor(w.head())))
	require.True(t, w.sweep(ctx, t, in, 0, events.Batch{History: true}))
	for _, p := range listed(w.s.tb, in) {
		if !p.ContentGone {
			require.NoError(t, in.Retry(ctx, p.ID))
		}
	}
	require.NoError(t, in.Maintain(ctx))
	want := []string{}
	gone := map[string]bool{}
	for _, p := range listed(w.s.tb, in) {
		gone[p.ID] = true
	}
	got := append([]string{}, w.effects()...)
	for n := 1; n <= w.head(); n++ {
		ev := w.event(n)
		if gone[ev.ID] || !slices.Contains(got, ev.ID) && w.forgotten(ev) {
			continue
		}
		want = append(want, ev.ID)
	}
	require.Equal(t, want, got)
}

// forget keeps the database small: every world is the only one.
func (w *world) forget() {
	for _, table := range []string{"seen", "parked", "floors", "streams"} {
		w.s.exec("delete from {s}" + table)
	}
	w.s.exec("delete from " + w.s.table)
}

// forgotten is whether an event may be taken as handled though it was not: all
// that no sweep came for in a month, while its inbox got pushes.
func (w *world) forgotten(ev events.Event) bool {
	if w.age(int(ev.Sequence)) < 30-7 {
		return false
	}
	var n int
	require.NoError(w.s.tb, sqldb.One(w.s.tb.Context(), w.s.db.Read(),
		w.s.db.Render("select count(*) from {s}floors where stream = $1 and inbox = $2 and $3 between pushed_from and pushed_until"),
		[]any{w.name, ev.Inbox, ev.OccurredAt}, &n))
	return n > 0
}

// Whatever is pushed, swept, pruned, lost, granted and crashed: an event's
// effect exists exactly once.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		checks := 0
		rapid.Check(t, func(t *rapid.T) {
			if checks++; raceDetector && checks > 20 {
				return
			}
			w := newWorld(s)
			defer w.forget()
			t.Repeat(map[string]func(*rapid.T){
				"happen": w.happen, "attach": w.attach, "lose": w.lose, "grant": w.grant, "push": w.push, "push again": w.push,
				"sweep": w.sweepFromSettled, "sweep from the beginning": w.sweepFromBeginning, "sweep history": w.sweepHistory,
				"days": w.days, "forget": w.forgetAll, "moods": w.moods, "maintain": w.maintain, "": w.check,
			})
			w.end(t)
		})
	})
}
