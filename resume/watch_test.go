package resume_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

// The invariants of resumetest hold in these tests too: they are checked after
// everything that a rig does, and once it has ended.

// unwatched are the tests in which they cannot hold, and why.
var unwatched = map[string]string{
	"TestTwoEnginesOfOneStreamKeepTheirInboxes": "its provider sends for another engine too",
}

func (r *rig) observe() {
	r.t.Helper()
	name, _, _ := strings.Cut(r.t.Name(), "/")
	if _, ok := unwatched[name]; ok || r.watch != nil {
		return
	}
	r.watch = resumetest.Observe(r.t, resumetest.Observed{
		Config: r.cfg, Provider: r.srv, Pool: r.pool, DB: r.db, Foreign: []string{"by-hand"},
	})
	r.t.Cleanup(r.check)
}

// look is check where no engine acts by itself, for tests that wait for one look
// again and again, and where it is quick: not on SQLite under the race detector,
// where what people do is checked with the next act.
func (r *rig) look() {
	r.t.Helper()
	if r.acting.Load() == 0 && r.db == nil {
		r.check()
	}
}

func (r *rig) check() {
	r.t.Helper()
	if r.watch != nil && !r.unchecked {
		require.NoError(r.t, r.watch.Check())
	}
}

// acts says that an engine acts by itself until ended is called.
func (r *rig) acts() (ended func()) {
	if r.watch == nil {
		return func() {}
	}
	r.acting.Add(1)
	rest := r.watch.Running()
	return func() {
		// What was committed until now is no single commit either.
		require.NoError(r.t, r.watch.CheckMany())
		rest()
		r.acting.Add(-1)
	}
}

// whole makes one act of several on SQLite, which is slow to read under the
// race detector.
func (r *rig) whole() (ended func()) {
	if r.watch == nil || r.db == nil {
		return func() {}
	}
	watch := r.watch
	r.unchecked = true
	return func() {
		r.unchecked = false
		require.NoError(r.t, watch.CheckMany())
	}
}

// A check finds what is wrong in a store.
func TestRigsAreWatched(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		for damage, repair := range map[string]string{
			"update {s}workflows set arrived = arrived + 1": "update {s}workflows set arrived = arrived - 1",
			"update {s}workflows set status = 'sending'":    "update {s}workflows set status = 'waiting'",
			"update {s}sends set hash = hash || 'x'":        "update {s}sends set hash = substr(hash, 1, 64)",
			"update {s}sends set key = key || 'x'":          "update {s}sends set key = substr(key, 1, length(key) - 1)",
			"update {s}mail set place = 'x'":                "update {s}mail set place = 'settled'",
			"update {s}history set what = 'step'":           "delete from {s}history",
		} {
			r.exec(damage)
			require.Error(t, r.watch.Check(), damage)
			r.exec(repair)
			_ = r.watch.Check() // the repair is a change too
		}
		require.NoError(t, r.watch.Check())
	})
}

func (r *rig) acknowledged(evs ...events.Event) {
	if r.watch != nil {
		r.watch.Acknowledged(evs...)
	}
}
