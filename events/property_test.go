package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/replywake/replywake/events"
)

const lookBack = 2 * time.Minute

// history is a stream's random life: sequences that become visible late,
// pushes that come, come twice or not at all, expiry, pruned IDs, and sweeps by
// two processes that crash at every point. What must hold: nothing is handed
// over twice, and whatever is not handed over was history that is gone or is in
// a loss report.
type history struct {
	provider *provider
	inbox    *memory
	sweepers [2]*events.Sweeper
	start    events.Start

	clock time.Time
	last  events.Cursor
	gone  []events.Cursor // expired before anybody met them, where no cursor can tell

	calls   int // of the inbox in this sweep
	crashAt int
	late    bool // the crash comes after the commit
}

var errCrash = errors.New("crash")

func newHistory(rt *rapid.T) *history {
	h := &history{provider: newProvider(), inbox: newMemory(), clock: time.Now()}
	now := func() time.Time { return h.clock }
	h.provider.now, h.inbox.now = now, now
	h.provider.limit = rapid.IntRange(1, 4).Draw(rt, "limit")
	h.start = rapid.SampledFrom([]events.Start{events.FromNow, events.FromBeginning}).Draw(rt, "start")
	for i := range h.sweepers {
		s, err := events.NewSweeper(h.provider, h.inbox, events.SweeperConfig{
			Start: h.start, LookBack: lookBack,
			PagesPerCommit: rapid.IntRange(1, 3).Draw(rt, "pages per commit"),
		})
		require.NoError(rt, err)
		h.sweepers[i] = s
	}
	crash := func(late bool) func(string) error {
		return func(op string) error {
			if !late {
				h.calls++
			}
			if late == h.late && h.calls == h.crashAt && op != "release" {
				return errCrash
			}
			return nil
		}
	}
	h.inbox.before, h.inbox.after = crash(false), crash(true)
	return h
}

func (h *history) emit(rt *rapid.T) {
	h.last += events.Cursor(rapid.IntRange(1, 3).Draw(rt, "gap"))
	late := time.Duration(rapid.IntRange(0, int(lookBack/time.Second)-1).Draw(rt, "late")) * time.Second
	h.provider.addLate(h.last, late)
}

func (h *history) visible() []row {
	return slices.DeleteFunc(slices.Clone(h.provider.rows), func(r row) bool { return r.visible.After(h.clock) })
}

func (h *history) push(rt *rapid.T) {
	rows := h.visible()
	if len(rows) == 0 {
		rt.Skip("nothing to push")
	}
	r := rapid.SampledFrom(rows).Draw(rt, "row")
	if r.sequence <= h.inbox.floor {
		rt.Skip("retries end long before IDs are pruned")
	}
	h.crashes(rt, 1)
	_, _ = h.inbox.Push(context.Background(), events.Event{ID: r.id, Kind: events.KindReceived})
}

func (h *history) wait(rt *rapid.T) {
	h.clock = h.clock.Add(time.Duration(rapid.IntRange(1, 240).Draw(rt, "seconds")) * time.Second)
}

// expire drops what has been visible for longer than the look-back.
func (h *history) expire(rt *rapid.T) {
	old := slices.DeleteFunc(slices.Clone(h.provider.rows), func(r row) bool { return r.sequence < h.provider.oldest })
	for i, r := range old {
		if r.visible.Add(lookBack).After(h.clock) {
			old = old[:i]
			break
		}
	}
	if len(old) == 0 {
		rt.Skip("nothing is old")
	}
	last := rapid.SampledFrom(old).Draw(rt, "last expired")
	h.provider.oldest = last.sequence + 1
	cursor := h.inbox.pos.Cursor
	for _, r := range old {
		unknowable := cursor == 0 || r.sequence <= cursor // no 410 tells of them
		if r.sequence <= last.sequence && unknowable && h.inbox.handed[r.id] == 0 {
			h.gone = append(h.gone, r.sequence)
		}
	}
}

// crashes draws where the next calls fail: 0 is nowhere.
func (h *history) crashes(rt *rapid.T, most int) {
	h.calls = 0
	h.crashAt = rapid.IntRange(0, most).Draw(rt, "crash at call")
	h.late = rapid.Bool().Draw(rt, "after the commit")
}

func (h *history) sweep(rt *rapid.T) {
	h.crashes(rt, 12)
	_, err := h.sweepers[rapid.IntRange(0, 1).Draw(rt, "process")].Sweep(context.Background())
	h.check(rt, err)
}

// sweepFrom is what a person asks for, from anywhere.
func (h *history) sweepFrom(rt *rapid.T) {
	h.crashes(rt, 12)
	from := events.Cursor(rapid.IntRange(0, int(h.last)).Draw(rt, "from"))
	_, err := h.sweepers[rapid.IntRange(0, 1).Draw(rt, "process")].SweepFrom(context.Background(), from)
	if !errors.Is(err, events.ErrCursorExpired) {
		h.check(rt, err)
	}
}

// interleave runs the other process's whole sweep inside a request or a commit
// of the first, whose lease has ended.
func (h *history) interleave(rt *rapid.T) {
	h.crashes(rt, 25)
	at, n := rapid.IntRange(1, 8).Draw(rt, "at"), 0
	var inner error
	h.inbox.inside = func(op string) {
		if n++; n == at && op != "release" {
			h.inbox.inside = nil
			h.inbox.owner = ""
			_, inner = h.sweepers[1].Sweep(context.Background())
		}
	}
	_, err := h.sweepers[0].Sweep(context.Background())
	h.inbox.inside = nil
	h.check(rt, errors.Join(err, inner))
}

func (h *history) check(rt *rapid.T, err error) {
	h.inbox.owner = "" // a process that died: its lease ends
	if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, events.ErrLeaseHeld) {
		rt.Fatalf("sweep: %v", err)
	}
}

func (h *history) invariants(rt *rapid.T) {
	for id, n := range h.inbox.handed {
		if n > 1 {
			rt.Fatalf("%s was handed over %d times", id, n)
		}
	}
	p := h.inbox.pos
	if p.Settled > p.Cursor || p.Attached > p.Settled || h.inbox.floor > p.Settled {
		rt.Fatalf("positions out of order: %+v, floor %d", p, h.inbox.floor)
	}
}

// settle lets everything become visible, sweeps until nothing fails, and asks
// for the history that remains.
func (h *history) settle(rt *rapid.T) {
	h.crashAt = 0
	for range 3 {
		h.clock = h.clock.Add(lookBack + time.Second)
		_, err := h.sweepers[0].Sweep(context.Background())
		require.NoError(rt, err)
	}
	_, err := h.sweepers[0].SweepFrom(context.Background(), 0)
	require.NoError(rt, err)
	h.invariants(rt)
	for _, r := range h.provider.rows {
		if h.inbox.handed[r.id] == 0 && !h.excused(r) {
			rt.Fatalf("%s was lost: %+v, losses %v, oldest %d", r.id, h.inbox.pos, h.inbox.losses, h.provider.oldest)
		}
	}
}

func (h *history) excused(r row) bool {
	if r.sequence <= h.inbox.pos.Attached && r.sequence < h.provider.oldest || slices.Contains(h.gone, r.sequence) {
		return true
	}
	return slices.ContainsFunc(h.inbox.losses, func(l events.Loss) bool {
		return r.sequence > l.Cursor && (l.Oldest == 0 || r.sequence < l.Oldest) && r.sequence < h.provider.oldest
	})
}

func TestNothingIsLostOrHandedOverTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":           h.invariants,
			"emit":       h.emit,
			"emit more":  func(rt *rapid.T) { h.emit(rt); h.emit(rt); h.emit(rt) },
			"push":       h.push,
			"wait":       h.wait,
			"expire":     h.expire,
			"prune":      func(*rapid.T) { h.inbox.prune() },
			"sweep":      h.sweep,
			"sweep from": h.sweepFrom,
			"interleave": h.interleave,
		})
		h.settle(rt)
	})
}

// The same for a source without sequences.
func TestNothingOfAMailboxIsLostOrHandedOverTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		box, inbox := newMailbox(), newMemory()
		s, err := events.NewSweeper(box, inbox, events.SweeperConfig{Start: events.FromBeginning})
		require.NoError(rt, err)
		n := 0
		receive := func(*rapid.T) {
			n++
			box.receive(fmt.Sprintf("m%d", n))
		}
		sweep := func(rt *rapid.T) {
			calls, at, late := 0, rapid.IntRange(0, 8).Draw(rt, "crash at call"), rapid.Bool().Draw(rt, "late")
			fail := func(when bool) func(string) error {
				return func(op string) error {
					if !when {
						calls++
					}
					if when == late && calls == at && op != "release" {
						return errCrash
					}
					return nil
				}
			}
			inbox.before, inbox.after = fail(false), fail(true)
			_, err := s.Sweep(context.Background())
			inbox.before, inbox.after, inbox.owner = nil, nil, ""
			if err != nil && !errors.Is(err, errCrash) {
				rt.Fatal(err)
			}
		}
		push := func(rt *rapid.T) {
			if n > 0 {
				id := fmt.Sprintf("m%d", rapid.IntRange(1, n).Draw(rt, "message"))
				_, _ = inbox.Push(context.Background(), events.Event{ID: id})
			}
		}
		rt.Repeat(map[string]func(*rapid.T){"receive": receive, "sweep": sweep, "push": push})
		_, err = s.Sweep(context.Background())
		require.NoError(rt, err)
		require.Empty(rt, box.unread)
		require.Len(rt, inbox.handed, n)
		for id, times := range inbox.handed {
			require.Equal(rt, 1, times, id)
		}
	})
}
