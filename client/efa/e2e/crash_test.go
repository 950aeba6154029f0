package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// At every boundary of a sweeper's life, of a statement, a commit, a request
// and an answer, the process ends, or another one takes over while it stands
// still. Nothing is lost and nothing is handled twice.
func TestCrashAtEveryPointOfASweep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		whole, err := live(t.Context(), s, nowhere, alone)
		require.NoError(t, err)
		require.True(t, whole.clean(), "%+v", whole.verdict)
		require.Greater(t, len(whole.points), 200, "boundaries")
		stores := []*store{s}
		if s.pool == nil {
			stores = append(stores, sqliteStore(t)) // one writes to a file at a time
		}
		for m := range modes {
			c := &campaign{mode: m, stride: strideOf(s)}
			c.points = slices.DeleteFunc(slices.Clone(whole.points), func(p passed) bool { return !p.has(m) })
			c.run(t, stores)
		}
	})
}

// strideOf takes every point on SQLite, and on Postgres one of several; all
// where a long run is asked for. Under the race detector it takes few.
func strideOf(s *store) int {
	switch {
	case long():
		return 1
	case raceEnabled && s.pool == nil:
		return 32
	case raceEnabled:
		return 16
	case s.pool == nil:
		return 1
	}
	return 8
}

// campaign is a life again and again, with a point of it after another.
type campaign struct {
	mode   mode
	points []passed
	stride int // from one by chance

	mu   sync.Mutex
	next int
	done int
	sum  verdict
}

func (c *campaign) run(t *testing.T, stores []*store) {
	c.next = rand.IntN(c.stride)
	var workers sync.WaitGroup
	for i := range 2 {
		workers.Go(func() {
			for p, some := c.take(); some && !t.Failed(); p, some = c.take() {
				c.live(t, stores[i%len(stores)], p)
			}
		})
	}
	workers.Wait()
	total.ended(stores[0].name, c)
	some := ""
	if c.stride > 1 {
		some = fmt.Sprintf(" (one of %d; REPLYWAKE_EXPLORE=long takes all)", c.stride)
	}
	t.Logf("%s: %s at %d of %d points%s: %d events, %d lost, %d handled twice",
		stores[0].name, c.mode, c.done, len(c.points), some, c.sum.events, c.sum.lost, c.sum.twice)
}

func (c *campaign) take() (p point, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= len(c.points) {
		return nowhere, false
	}
	p = c.points[c.next].point
	c.next += c.stride
	return p, true
}

func (c *campaign) live(t *testing.T, s *store, p point) {
	l, err := live(t.Context(), s, p, c.mode)
	if c.mode == alone && !l.reached && err == nil {
		err = errNotReached
	}
	if err != nil || !l.clean() {
		t.Errorf("%s in %q at %+v, %.60q: %+v: %v", c.mode, lives()[p.act].name, p, l.where, l.verdict, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.sum.add(l.verdict)
}
