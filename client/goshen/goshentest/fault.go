package goshentest

import (
	"net/http"
	"time"
)

// Drop says where a connection is cut.
type Drop int

// The places to cut a connection.
const (
	DropNothing Drop = iota
	DropRequest      // before the effect: nothing happens, nothing is answered
	DropAnswer       // after the effect, before any byte of the answer
)

// Fault is what goes wrong with requests. Its zero value does nothing to the
// next request of any operation.
type Fault struct {
	// Which requests: those of Op for which Match, if set, is true.
	Op    Op
	Match func(*http.Request) bool
	When

	// Status answers with this status instead of acting, and with Code, which
	// defaults to one that is documented for it. Transient says that the same
	// may succeed later, as a 5xx and a 429 do anyway.
	Status     int
	Code       string
	Transient  bool
	RetryAfter time.Duration

	// Uncertain is a send of which nobody learns whether it left: this request
	// and every later one with its key are answered delivery_uncertain, until
	// [Server.Resolve].
	Uncertain bool

	// Garbage is what the body says instead of JSON, with Status if that is
	// set, else after the effect and with its status.
	Garbage string

	Drop   Drop
	Delay  time.Duration // real time before the effect
	Linger time.Duration // real time between the effect and the answer
}

// When says how often a fault strikes. Its zero value is once, the next time.
type When struct {
	Skip   int     // how many pass first
	Times  int     // how often it strikes, default 1
	Always bool    // it strikes without end
	Chance float64 // by the seed, how likely one that is up strikes; 0 is certainly
}

// EventFault is what goes wrong with events on their way out. Its zero value
// does nothing to the next event.
type EventFault struct {
	Type string // of the events, empty for all
	When

	DropPush  bool          // the webhook does not hear of it
	Copies    int           // how many additional deliveries of it there are
	DelayPush time.Duration // its first attempt is made this much later
}

// Armed is a fault in place.
type Armed struct {
	s       *Server
	request Fault
	event   EventFault
	when    When
	hits    int
	off     bool
}

// Fault arms f. Of several that match a request the first that strikes counts.
func (s *Server) Fault(f Fault) *Armed {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Armed{s: s, request: f, when: f.When}
	s.faults = append(s.faults, a)
	return a
}

// FaultEvents arms f for events that are still to come.
func (s *Server) FaultEvents(f EventFault) *Armed {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Armed{s: s, event: f, when: f.When}
	s.eventFaults = append(s.eventFaults, a)
	return a
}

// Hits is how often the fault has struck.
func (a *Armed) Hits() int {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return a.hits
}

// Disarm ends the fault.
func (a *Armed) Disarm() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.off = true
}

// strikes is called with mu held, for something that matches.
func (a *Armed) strikes() bool {
	if a.off || !a.when.Always && a.hits >= max(a.when.Times, 1) {
		return false
	}
	if a.when.Skip > 0 {
		a.when.Skip--
		return false
	}
	if a.when.Chance > 0 && a.s.rng.Float64() >= a.when.Chance {
		return false
	}
	a.hits++
	return true
}

// draw is the fault that strikes x; the zero value for none.
func (s *Server) draw(x *exchange) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.faults {
		f := a.request
		if (f.Op == OpAny || f.Op == x.op) && (f.Match == nil || f.Match(x.r)) && a.strikes() {
			return f
		}
	}
	return Fault{}
}

// drawEvent is called with mu held.
func (s *Server) drawEvent(typ string) EventFault {
	for _, a := range s.eventFaults {
		if (a.event.Type == "" || a.event.Type == typ) && a.strikes() {
			return a.event
		}
	}
	return EventFault{}
}

// refusal is what f answers instead of an effect; no status if it lets the
// request act.
func (f Fault) refusal() answer {
	if f.Status == 0 {
		return answer{}
	}
	a := failure(f.Status, orDefault(f.Code, usualCode(f.Status)))
	if f.Transient {
		a = refusal(f.Status, orDefault(f.Code, usualCode(f.Status)), true)
	}
	a.retry = f.RetryAfter
	return f.spoil(a)
}

func (f Fault) spoil(a answer) answer {
	if f.Garbage != "" {
		a.body = []byte(f.Garbage)
	}
	return a
}

func usualCode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusPaymentRequired:
		return "billing_limit"
	case http.StatusForbidden:
		return codeForbidden
	case http.StatusNotFound:
		return codeNotFound
	case http.StatusGone:
		return "inbox_retired"
	case http.StatusTooManyRequests:
		return codeRateLimited
	case http.StatusBadGateway:
		return "provider_unavailable"
	case http.StatusServiceUnavailable:
		return "delivery_busy"
	}
	if status >= http.StatusInternalServerError {
		return "internal_error"
	}
	return codeInvalid
}
