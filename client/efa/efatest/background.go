package efatest

import (
	"context"
	"sync"
	"time"
)

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
	wait := time.Hour
	if due, some := s.nextDue(); some {
		wait = due.Sub(s.Now())
	}
	timer := time.NewTimer(wait)
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
