package goshentest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const concurrency = 16

// Deliver makes, one after another, every attempt that is due now and returns
// how many that were. What they bring about is left for the next call.
func (s *Server) Deliver(ctx context.Context) int {
	var round []*delivery
	for d := s.claim(); d != nil; d = s.claim() {
		round = append(round, d)
	}
	for _, d := range round {
		s.attempt(ctx, d)
	}
	return len(round)
}

// Drain delivers until nothing is due now, and returns the number of attempts.
func (s *Server) Drain(ctx context.Context) int {
	total := 0
	for n := 1; n > 0 && ctx.Err() == nil; total += n {
		n = s.Deliver(ctx)
	}
	return total
}

// claim takes the delivery that is due for the longest; nil if there is none.
func (s *Server) claim() *delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.earliest()
	if d == nil || d.due.After(s.Now()) || s.webhook == nil {
		return nil
	}
	d.state = StateRunning
	return d
}

// earliest is called with mu held.
func (s *Server) earliest() *delivery {
	var found *delivery
	for _, d := range s.deliveries {
		if d.state == StatePending && (found == nil || d.due.Before(found.due)) {
			found = d
		}
	}
	return found
}

// nextDue is when the next attempt falls due; false if none is pending.
func (s *Server) nextDue() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.earliest(); d != nil && s.webhook != nil {
		return d.due, true
	}
	return time.Time{}, false
}

// attempt makes one signed POST and settles what it means.
func (s *Server) attempt(ctx context.Context, d *delivery) {
	s.mu.Lock()
	to, secret, at := *s.webhook, s.secret, s.Now()
	s.mu.Unlock()
	status := s.post(ctx, to, d, sign(secret, d.id, at, d.body), at)
	s.mu.Lock()
	defer s.mu.Unlock()
	d.attempts = append(d.attempts, Attempt{at, status})
	if status/100 == 2 {
		d.state = StateDelivered
		return
	}
	d.state = StatePending
	d.due = s.Now().Add(time.Duration(float64(wait(len(d.attempts))) / s.cfg.Speed))
	s.poke()
}

// wait is the pause after the n-th attempt: 10, 20, 40 … seconds, at most an
// hour, without an end.
func wait(n int) time.Duration {
	return min(time.Hour, 5*time.Second<<min(n, 12))
}

// post returns status 0 if no whole answer came in time. Redirects are not
// followed.
func (s *Server) post(ctx context.Context, to endpoint, d *delivery, signature string, at time.Time) int {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.PushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, bytes.NewReader(d.body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("svix-id", d.id)
	req.Header.Set("svix-timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("svix-signature", signature)
	resp, err := to.transport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return 0
	}
	return resp.StatusCode
}

// startDispatcher starts the goroutine that delivers in real time, once there
// is a webhook to deliver to. It is called with mu held.
func (s *Server) startDispatcher() {
	if s.cfg.Manual || s.closed || s.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.running.Go(func() { s.dispatch(ctx) })
}

// dispatch attempts what falls due, at most 16 at a time and in no particular
// order, until ctx ends.
func (s *Server) dispatch(ctx context.Context) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	free := make(chan struct{}, concurrency)
	for ctx.Err() == nil {
		d := s.claim()
		if d == nil {
			s.awaitDue(ctx)
			continue
		}
		free <- struct{}{}
		attempts.Go(func() {
			s.attempt(ctx, d)
			<-free
		})
	}
}

func (s *Server) awaitDue(ctx context.Context) {
	pause := time.Hour
	if due, some := s.nextDue(); some {
		pause = due.Sub(s.Now())
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wake:
	case <-ctx.Done():
	}
}

// poke makes the dispatcher look again.
func (s *Server) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
