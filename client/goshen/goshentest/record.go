package goshentest

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Request is one request as the server saw it.
type Request struct {
	Op             Op
	Method, Path   string // the path as it was escaped
	Query          url.Values
	IdempotencyKey string
	Body           []byte
	At             time.Time

	// Status is what was answered, 0 if no answer left: the request is still
	// under way, or its connection was cut.
	Status int
}

// note records x and returns its place.
func (s *Server) note(x *exchange) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Op: x.op, Method: x.r.Method, Path: x.r.URL.EscapedPath(), Query: x.r.URL.Query(),
		IdempotencyKey: x.r.Header.Get("Idempotency-Key"), Body: x.body, At: s.Now(),
	})
	return len(s.requests) - 1
}

func (s *Server) answered(note int, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[note].Status = a.status
}

// Requests are all requests so far, in the order in which they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count is how many requests of an operation came so far; [OpAny] counts all.
func (s *Server) Count(op Op) int {
	n := 0
	for _, r := range s.Requests() {
		if op == OpAny || r.Op == op {
			n++
		}
	}
	return n
}

// Violations are what a client must never do, in words: an undocumented
// request or parameter, a body that is not what the operation takes, a key with
// a second body, a page that is asked for after labels have changed below it.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Check fails the test for each violation.
func (s *Server) Check(tb TB) {
	tb.Helper()
	for _, v := range s.Violations() {
		tb.Errorf("goshentest: %s", v)
	}
}

func (s *Server) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violateLocked(format, args...)
}

func (s *Server) violateLocked(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}
