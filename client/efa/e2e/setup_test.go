// Package e2e_test is Email for Agents from end to end: webhooks and the cursor
// into one Inbox on SQLite and on Postgres, with every fault that either door
// can meet and a crash at every point of a sweep. What is counted is the
// provider's own record against the effects in the user's table. It stands
// apart so that the tests of the client link no database.
package e2e_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// TestMain closes with what all tests did together.
func TestMain(m *testing.M) {
	useGoClock()
	code := m.Run()
	fmt.Println(&total)
	os.Exit(code)
}

var total totals

type totals struct {
	mu      sync.Mutex
	stores  map[string]bool
	faults  map[string]bool
	crashes int
	stalls  int
	sum     verdict
}

func (t *totals) fault(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults == nil {
		t.faults = map[string]bool{}
	}
	t.faults[name] = true
}

func (t *totals) ended(store string, c *campaign) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stores == nil {
		t.stores = map[string]bool{}
	}
	t.stores[store] = true
	if c.mode == stalled {
		t.stalls += c.done
	} else {
		t.crashes += c.done
	}
	t.sum.add(c.sum)
}

func (t *totals) add(v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.add(v)
}

func (t *totals) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("sweep: %d crash points and %d stalls on %d stores, %d faults, %d events: %d lost, %d handled twice",
		t.crashes, t.stalls, len(t.stores), len(t.faults), t.sum.events, t.sum.lost, t.sum.twice)
}

// verdict is what became of a provider's events.
type verdict struct {
	events  int // that happened
	lost    int // above the attached position, and without an effect
	twice   int
	early   int // at or below the attached position, and handed over unasked
	strange int // effects of what never happened
}

func (v *verdict) add(o verdict) {
	v.events += o.events
	v.lost += o.lost
	v.twice += o.twice
	v.early += o.early
	v.strange += o.strange
}

// clean is whether every event was handled once, and nothing else was.
func (v verdict) clean() bool { return v.lost+v.twice+v.early+v.strange == 0 }

// long says whether every point is to be taken: REPLYWAKE_EXPLORE is set.
func long() bool { return os.Getenv("REPLYWAKE_EXPLORE") != "" }
