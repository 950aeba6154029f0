package efatest

import (
	"bytes"
	"container/heap"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The states of a delivery.
const (
	StatePending   = "pending"
	StateRunning   = "running"
	StateSucceeded = "succeeded"
	StateExhausted = "exhausted"
	StateCanceled  = "canceled"
)

// The outcomes of an attempt.
const (
	OutcomeAccepted = "accepted"
	OutcomeRejected = "rejected"
	OutcomeHeld     = "held_egress_unavailable"
)

const (
	maxAttempts  = 8
	maxExcerpt   = 200         // characters
	reorderGrace = time.Second // how long a push waits for another to pass it
	concurrency  = 16
)

// retryTable is the wait after each attempt but the last.
func retryTable() [maxAttempts - 1]time.Duration {
	return [...]time.Duration{
		10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	}
}

// Attempt is one POST to a webhook.
type Attempt struct {
	Number    int
	At        time.Time
	Outcome   string
	Status    int    // 0 if no answer came
	Excerpt   string // at most 200 characters of the answer
	Timestamp string // as signed
	Signature string
}

// Delivery is one event on its way to one webhook.
type Delivery struct {
	ID, EventID, EventType, WebhookID string
	State                             string
	Next                              time.Time // of the next attempt; of the last once it is over
	Attempts                          []Attempt
}

type delivery struct {
	id       string
	event    event
	endpoint *endpoint
	revision int // the endpoint's when it was made
	state    string
	due      time.Time
	order    int  // of creation
	behind   bool // waits for another to pass it
	attempts []Attempt
}

func (d *delivery) export() Delivery {
	return Delivery{
		ID: d.id, EventID: d.event.id, EventType: d.event.typ, WebhookID: d.endpoint.ID,
		State: d.state, Next: d.due, Attempts: slices.Clone(d.attempts),
	}
}

// Deliveries are all deliveries in the order in which they were made.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Delivery, 0, len(s.deliveries))
	for _, d := range s.deliveries {
		out = append(out, d.export())
	}
	return out
}

// Redeliver pushes an event once more to every webhook that takes it: the same
// body under the same ID, signed anew.
func (s *Server) Redeliver(eventID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.id == eventID {
			s.fanOut(e, EventFault{}, nil)
		}
	}
}

// fanOut makes e's deliveries. It is called with mu held.
func (s *Server) fanOut(e event, f EventFault, only *endpoint) {
	for _, to := range s.endpoints {
		if only != nil && to != only || only == nil && !to.wants(e.typ) {
			continue
		}
		for range f.Copies + 1 {
			s.enqueue(&delivery{
				id: s.newID("dlv"), event: e, endpoint: to, revision: to.Revision, state: StatePending,
				due: s.Now().Add(f.DelayPush), order: len(s.deliveries), behind: f.Reorder,
			})
		}
	}
}

// enqueue is called with mu held.
func (s *Server) enqueue(d *delivery) {
	if d.behind {
		d.due = d.due.Add(reorderGrace)
		s.reordered = true
	}
	s.deliveries = append(s.deliveries, d)
	heap.Push(&s.queue, d)
	s.poke()
}

// Deliver makes, one after another, every attempt that is due now and returns
// how many that were. What they bring about is left for the next call.
func (s *Server) Deliver(ctx context.Context) int {
	var round []*delivery
	for d := s.claim(); d != nil; d = s.claim() {
		round = append(round, d)
	}
	if len(round) == 0 {
		round = s.claimBehind()
	}
	for _, d := range round {
		s.attempt(ctx, d)
	}
	return len(round)
}

// Drain delivers until nothing is due now, and returns the number of attempts.
// A receiver that answers each event with another keeps it busy for ever.
func (s *Server) Drain(ctx context.Context) int {
	total := 0
	for ctx.Err() == nil {
		n := s.Deliver(ctx)
		if n == 0 {
			break
		}
		total += n
	}
	return total
}

// attempt makes one signed POST and settles what it means.
func (s *Server) attempt(ctx context.Context, d *delivery) {
	s.mu.Lock()
	if d.revision != d.endpoint.Revision {
		d.state = StateCanceled
		s.mu.Unlock()
		return
	}
	body := d.event.pushed()
	url, transport, at := d.endpoint.URL, d.endpoint.transport, s.Now()
	a := Attempt{
		Number: len(d.attempts) + 1, At: at, Outcome: OutcomeRejected,
		Timestamp: strconv.FormatInt(at.Unix(), 10), Signature: sign(d.endpoint.secret, d.event.id, at, body),
	}
	s.mu.Unlock()
	if s.cfg.NoEgress {
		a.Outcome = OutcomeHeld
	} else {
		a.Status, a.Excerpt = s.post(ctx, transport, url, d.event.id, a, body)
	}
	if a.Status/100 == 2 {
		a.Outcome = OutcomeAccepted
	}
	s.settle(d, a)
}

// post returns status 0 if no whole answer came in time. Redirects are not
// followed.
func (s *Server) post(ctx context.Context, t http.RoundTripper, url, id string, a Attempt, body []byte) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.PushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, ""
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", a.Timestamp)
	req.Header.Set("webhook-signature", a.Signature)
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }() // all that counts has been read
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, ""
	}
	text := []rune(string(b))
	return resp.StatusCode, string(text[:min(len(text), maxExcerpt)])
}

// settle applies the dispatcher's rule to an attempt.
func (s *Server) settle(d *delivery, a Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.attempts = append(d.attempts, a)
	s.letPass(d)
	switch {
	case d.state == StateCanceled: // while it ran
	case a.Outcome == OutcomeAccepted:
		d.state = StateSucceeded
	case a.Number >= maxAttempts || terminal(a.Status):
		d.state = StateExhausted
	default:
		d.state = StatePending
		wait := float64(retryTable()[a.Number-1]) / s.cfg.Speed
		d.due = s.Now().Add(time.Duration(wait))
		heap.Push(&s.queue, d)
		s.poke()
	}
}

// terminal: a 4xx is, unless it speaks about timing.
func terminal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}
