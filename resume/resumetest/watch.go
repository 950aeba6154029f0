package resumetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// violation is a promise that did not hold, and how to see it again.
type violation struct {
	Scenario string
	Store    string
	Broken   string // the invariant's name and promise
	Detail   string
	Replay   string // what ran: for Options.Replay, or RESUMETEST_REPLAY
	Trace    []string
}

// Error is what a failed test prints.
func (v *violation) Error() string {
	s := fmt.Sprintf("%s on %s broke %s\n  %s\n  replay: RESUMETEST_REPLAY='%s'", v.Scenario, v.Store, v.Broken, v.Detail, v.Replay)
	lines := v.Trace
	if n := len(lines); n > mostLines {
		gap := fmt.Sprintf("… %d more lines", n-mostLines)
		lines = slices.Concat(lines[:mostLines/2], []string{gap}, lines[n-mostLines/2:])
	}
	for _, line := range lines {
		s += "\n    " + line
	}
	return s
}

const mostLines = 200

// afterCommit checks the invariants around a commit that was just made.
func (w *world) afterCommit(a *World) error { return w.watch(a, false) }

// watch checks the invariants. An error means that the run must end.
func (w *world) watch(a *World, atRest bool) error {
	now, err := w.rig.store.read(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil { // an engine would take it for its own
		w.trouble = cmp.Or(w.trouble, err)
		return err
	}
	if w.violation != nil {
		return w.violation
	}
	f := w.facts(now)
	if a != nil {
		// A jump changes every time that is stored, and is no run's.
		jumps := w.jumps.Load()
		if jumps == w.jumpsSeen && jumps%2 == 0 {
			f.stale = a.stale(w.before)
		}
		w.jumpsSeen = jumps
		a.claim(w.before, now)
	}
	if atRest {
		f.before = now
	}
	w.before, w.readAt = now, time.Now()
	if broken, err := f.check(atRest); err != nil {
		w.violation = &violation{Broken: broken, Detail: err.Error()}
		return w.violation
	}
	return nil
}

// present is what is committed now, and the database's clock.
func (w *world) present() (*tables, micros, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readAt.IsZero() {
		now, err := w.rig.store.read(context.Background())
		if err != nil {
			return nil, 0, err
		}
		w.before, w.readAt = now, time.Now()
	}
	return w.before, w.before.clock + micros(time.Since(w.readAt).Microseconds()), nil
}

// facts is called with mu held.
func (w *world) facts(now *tables) *facts {
	record, requests := w.srv.Sends(), w.srv.Requests()
	f := &facts{
		before: w.before, now: now, explored: true, record: record, later: record, requests: requests[w.requests:], breaches: w.srv.Violations(),
		messages: w.srv.Messages(""), events: w.srv.Events(), behind: w.moved, fed: w.fed, taken: w.taken, config: w.rig.config, polls: w.rig.polls,
	}
	w.requests = len(requests)
	return f
}

// claim notes the generations that this actor has just claimed, and forgets
// those that its commit has ended.
func (w *World) claim(before, now *tables) {
	for id, gen := range w.claims {
		if before.holds(id, gen) && !now.holds(id, gen) {
			delete(w.claims, id)
		}
	}
	for i := range now.workflows {
		row := &now.workflows[i]
		if was := before.workflow(row.ID); (was == nil || was.Gen < row.Gen) && row.Status == "running" {
			w.claims[row.ID] = row.Gen
		}
	}
}

// stale are the actor's runs that were over before it committed.
func (w *World) stale(before *tables) (out []held) {
	for id, gen := range w.claims {
		if !before.holds(id, gen) {
			out = append(out, held{id, gen})
		}
	}
	return out
}

// holds says whether a workflow runs in a generation.
func (t *tables) holds(id string, gen int64) bool {
	row := t.workflow(id)
	return row != nil && row.Gen == gen && row.Status == "running"
}

// fail ends the run with a violation of its own.
func (w *world) fail(broken, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == nil {
		w.violation = &violation{Broken: broken, Detail: fmt.Sprintf(format, args...)}
	}
}

func (w *world) failed() *violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation
}
