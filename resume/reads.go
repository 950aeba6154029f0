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

	mu sync.Mutex
	by map[string]*turns
}

type turns struct {
	last   []time.Time // a ring of the last ones
	oldest int         // its oldest
	until  time.Time   // when the last of those that were refused comes again
}

// ask takes one for the key, or says how long until it may be had. Those that
// are refused come again one after another, not all at once for the one that is
// free then.
func (q *quota) ask(key string, now time.Time) (wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.by == nil {
		q.by = map[string]*turns{}
	}
	t := q.by[key]
	if t == nil {
		t = &turns{}
		q.by[key] = t
	}
	if len(t.last) < q.most {
		t.last = append(t.last, now)
		return 0
	}
	free := t.last[t.oldest].Add(time.Minute)
	if free.After(now) {
		if t.until = t.until.Add(time.Minute / time.Duration(q.most)); t.until.Before(free) {
			t.until = free
		}
		return t.until.Sub(now)
	}
	t.last[t.oldest] = now
	t.oldest = (t.oldest + 1) % q.most
	return 0
}

// laterError: not now, for a reason that is nobody's fault.
type laterError struct{ wait time.Duration }

func (*laterError) Error() string { return "resume: enough mail of this inbox was read this minute" }
