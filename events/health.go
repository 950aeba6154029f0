package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Health says how a [Sweeper] stands. Times are by this process's clock.
type Health struct {
	Attached bool // the stream has a position

	// Through is the moment up to which everything that the provider showed has
	// been received, by this process or by another that sweeps the stream; zero
	// before any was.
	Through time.Time

	Swept    time.Time // the end of this process's last sweep that reached the head
	Err      error     // of its last try; nil if it succeeded
	Trouble  Trouble   // who can mend Err
	Failures int       // tries that failed since one succeeded
	Held     bool      // the last try found another process sweeping
	Stopped  bool      // Run has returned with Err

	Loss *Loss // the latest; nil for none since the process began

	// Skew is the provider's clock minus ours, to a second; 0 if it does not say.
	// A clock that is minutes off makes every webhook unverifiable.
	Skew time.Duration

	Sweeps int    // sweeps of this process that reached the head
	Total  Result // of all its sweeps
}

// Ready says what is not as it should be: nil if the stream is attached, the
// credential accepted, and everything up to maxAge ago received. A process
// whose peer sweeps is ready too.
func (h Health) Ready(now time.Time, maxAge time.Duration) error {
	var faults []error
	if !h.Attached {
		faults = append(faults, errors.New("events: not attached to the stream"))
	}
	if h.Trouble == TroubleCredential || h.Stopped {
		faults = append(faults, h.Err)
	}
	switch {
	case h.Through.IsZero():
		faults = append(faults, errors.New("events: no sweep has reached the head yet"))
	case now.Sub(h.Through) > maxAge:
		faults = append(faults, fmt.Errorf("events: nothing was received for %s", now.Sub(h.Through).Round(time.Second)))
	}
	return errors.Join(faults...)
}

// Health is how the Sweeper stands now. It asks nobody.
func (s *Sweeper) Health() Health {
	s.status.Lock()
	defer s.status.Unlock()
	return s.status.health
}

// status keeps the Health.
type status struct {
	sync.Mutex
	health   Health
	attached chan struct{}
}

func (s *status) attach() {
	s.Lock()
	defer s.Unlock()
	if !s.health.Attached {
		s.health.Attached = true
		close(s.attached)
	}
}

// position takes over what the store knows, of all processes. Its clock is
// turned into ours by age.
func (s *status) position(pos Position) {
	if pos.Known {
		s.attach()
	}
	if !pos.Through.IsZero() {
		s.through(time.Now().Add(-pos.Now.Sub(pos.Through)))
	}
}

func (s *status) through(t time.Time) {
	s.Lock()
	defer s.Unlock()
	if t.After(s.health.Through) {
		s.health.Through = t
	}
}

func (s *status) clock(date time.Time) {
	if date.IsZero() {
		return
	}
	s.Lock()
	defer s.Unlock()
	s.health.Skew = time.Until(date).Round(time.Second)
}

func (s *status) knows(loss Loss) bool {
	s.Lock()
	defer s.Unlock()
	l := s.health.Loss
	return l != nil && l.Cursor == loss.Cursor && l.Oldest == loss.Oldest
}

func (s *status) lost(loss Loss) {
	s.Lock()
	defer s.Unlock()
	s.health.Loss = &loss
}

// ended takes over how a sweep ended. A sweep of history says nothing about
// the stream.
func (s *status) ended(ctx context.Context, w *sweep, err error) {
	if err == nil && !w.history {
		s.through(w.local)
	}
	s.Lock()
	defer s.Unlock()
	h := &s.health
	h.Total.add(w.report.Result)
	h.Held = errors.Is(err, ErrLeaseHeld)
	switch {
	case w.history, h.Held, ctx.Err() != nil:
	case err != nil:
		h.fail(err)
	default:
		h.Swept = time.Now()
		h.Sweeps++
		h.Err, h.Trouble, h.Failures, h.Stopped = nil, TroubleNone, 0, false
	}
}

func (s *status) failed(err error) {
	s.Lock()
	defer s.Unlock()
	s.health.fail(err)
}

func (h *Health) fail(err error) {
	h.Err, h.Trouble = err, troubleOf(err)
	h.Failures++
}

func (s *status) stopped() {
	s.Lock()
	defer s.Unlock()
	s.health.Stopped = true
}
