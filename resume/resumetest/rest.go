package resumetest

import (
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
)

// The most that may happen on the way to rest, and the longest that anything
// may be put off.
const (
	mostActs = 3000
	farthest = 60 * 24 * time.Hour
)

// Settle lets the program do all that is due, and moves the clock on to what
// falls due next, until nothing is due any more but the deadlines of waits.
func (w *World) Settle() error {
	for range mostActs {
		if v := w.failed(); v != nil {
			return v
		}
		did, err := w.act()
		if err != nil || !did {
			return err
		}
	}
	w.fail("L6 at rest: attempts are bounded", "the program did not come to rest in %d acts", mostActs)
	return w.failed()
}

// act does one thing that is due, or moves the clock.
func (w *World) act() (did bool, err error) {
	if did, err := w.sweepAll(); did || err != nil {
		return true, err
	}
	t, clock, err := w.present()
	if err != nil {
		return false, err
	}
	d := t.due(clock)
	switch next := min(d.send, d.mail, d.work, d.parked, w.shown(t, clock)); {
	case next == never:
		return false, nil
	case next > clock:
		return true, w.Jump(time.Duration(next-clock)*time.Microsecond + time.Millisecond)
	case d.parked <= clock:
		return true, w.process.inbox.Maintain(w.ctx)
	case d.mail <= clock:
		return true, w.Match()
	case d.work <= clock:
		return true, w.Work()
	}
	return true, w.Send()
}

// sweepAll sweeps if the provider has events that have not arrived, or if time
// has passed since: what fires at a deadline waits for a sweep behind it.
func (w *World) sweepAll() (did bool, err error) {
	t, _, err := w.present()
	if err != nil {
		return false, err
	}
	if w.swept.Load() && len(t.missing(w.srv.Events())) == 0 {
		return false, nil
	}
	n, err := w.sweep()
	return n > 0, err
}

// shown is when the cursor shows the next event that it holds back.
func (w *World) shown(t *tables, clock micros) micros {
	w.mu.Lock()
	moved := w.moved
	w.mu.Unlock()
	next := never
	for _, ev := range t.missing(w.srv.Events()) {
		if at := micros(ev.Visible.Add(-moved).UnixMicro()); at > clock {
			next = min(next, at)
		}
	}
	return next
}

// missing are the events of the provider's record that have not arrived.
func (t *tables) missing(record []efatest.Event) (out []efatest.Event) {
	known := map[string]bool{}
	for _, s := range t.seen {
		known[s.EventID] = true
	}
	for _, ev := range record {
		if !known[ev.ID] {
			out = append(out, ev)
		}
	}
	return out
}

const never = micros(1) << 62

type dues struct{ work, send, mail, parked micros }

// due is when something falls due, the deadlines of those who wait apart:
// before one has passed, they are at rest.
func (t *tables) due(clock micros) dues {
	d := dues{never, never, never, never}
	earlier := func(a *micros, b micros) {
		if b != 0 && b < *a && b < clock+micros(farthest.Microseconds()) {
			*a = b
		}
	}
	for i := range t.workflows {
		passed := t.workflows[i].Deadline != 0 && t.workflows[i].Deadline <= clock // and it was put off, for a sweep
		if w := &t.workflows[i]; w.Status != "waiting" || w.Due <= clock || passed {
			earlier(&d.work, w.Due)
		}
	}
	for i := range t.sends {
		earlier(&d.send, t.sends[i].Due)
	}
	for i := range t.mail {
		if l := &t.mail[i]; l.Place == "unplaced" {
			earlier(&d.mail, l.Due)
		}
	}
	for i := range t.parked {
		earlier(&d.parked, t.parked[i].Due)
	}
	return d
}
