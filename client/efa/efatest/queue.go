package efatest

import (
	"container/heap"
	"slices"
	"time"
)

// queue is a heap of deliveries by due time, then by creation.
type queue []*delivery

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*delivery)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (q *queue) remove(d *delivery) {
	if i := slices.Index(*q, d); i >= 0 {
		heap.Remove(q, i)
	}
}

// claim takes the next delivery that is due; nil if there is none.
func (s *Server) claim() *delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && !s.queue[0].due.After(s.Now()) {
		d := heap.Pop(&s.queue).(*delivery)
		if d.state == StatePending { // it may have been cancelled
			d.state = StateRunning
			return d
		}
	}
	return nil
}

// claimBehind takes what waits for another event when there is no other.
func (s *Server) claimBehind() []*delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*delivery
	for _, d := range s.queue {
		if d.behind && d.state == StatePending && !d.due.Add(-reorderGrace).After(s.Now()) {
			out = append(out, d)
		}
	}
	for _, d := range out {
		s.queue.remove(d)
		d.state = StateRunning
	}
	return out
}

// nextDue is when the next attempt falls due; false if none is pending.
func (s *Server) nextDue() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && s.queue[0].state != StatePending {
		heap.Pop(&s.queue)
	}
	if len(s.queue) == 0 {
		return time.Time{}, false
	}
	return s.queue[0].due, true
}

// letPass frees the deliveries that waited for d to pass them. It is called
// with mu held.
func (s *Server) letPass(d *delivery) {
	if !s.reordered {
		return
	}
	freed := false
	for _, other := range s.queue {
		if other.behind && other.endpoint == d.endpoint && other.event.id != d.event.id {
			other.behind, other.due, freed = false, s.Now(), true
		}
	}
	if freed {
		heap.Init(&s.queue)
		s.poke()
	}
}
