package goshentest

import (
	"context"
	"net/http"
	"time"
)

// Now is the provider's time: what it signs, stamps and answers in Date. A
// receiver under a clock that [Server.Advance] moves must verify by it.
func (s *Server) Now() time.Time {
	return s.cfg.Now().Add(time.Duration(s.offset.Load())).UTC()
}

// Advance moves the provider's time on by d and makes, one after another and
// each at its own moment, the webhook attempts that fall due on the way.
func (s *Server) Advance(d time.Duration) {
	target := s.Now().Add(d)
	for {
		due, some := s.nextDue()
		if !some || due.After(target) {
			break
		}
		s.moveTo(due)
		s.Deliver(context.Background())
	}
	s.moveTo(target)
	s.poke()
}

func (s *Server) moveTo(t time.Time) {
	if d := t.Sub(s.Now()); d > 0 {
		s.offset.Add(int64(d))
	}
}

// pause waits in real time, as a slow network does; it ends early with the
// request or the server.
func (s *Server) pause(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.done:
	}
}

// stamp is a time as the documents write it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
