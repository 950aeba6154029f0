package resume

import (
	"sync"
	"time"
)

// readsAMinute is how often a process reads unmatched mail of one inbox, so
// that a flood of it leaves the provider's allowance to workflows that wait.
const readsAMinute = 600

// quota allows so many events in any minute, by key.
type quota struct {
	most int

	mu   sync.Mutex
	last map[string][]time.Time // a ring of the last ones
	next map[string]int         // its oldest
}

// ask takes one for the key, or says how long until there is one.
func (q *quota) ask(key string, now time.Time) (wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil {
		q.last, q.next = map[string][]time.Time{}, map[string]int{}
	}
	ring, oldest := q.last[key], q.next[key]
	if len(ring) < q.most {
		q.last[key] = append(ring, now)
		return 0
	}
	if wait = ring[oldest].Add(time.Minute).Sub(now); wait > 0 {
		return wait
	}
	ring[oldest] = now
	q.next[key] = (oldest + 1) % q.most
	return 0
}

// laterError: not now, for a reason that is nobody's fault.
type laterError struct{ wait time.Duration }

func (*laterError) Error() string { return "resume: enough mail of this inbox was read this minute" }
