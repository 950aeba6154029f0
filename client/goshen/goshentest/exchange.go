package goshentest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The codes that the server answers of itself.
const (
	codeInvalid     = "invalid_request"
	codeNotFound    = "not_found"
	codeForbidden   = "forbidden"
	codeScope       = "insufficient_scope"
	codeQuarantined = "message_quarantined"
	codeConflict    = "idempotency_conflict"
	codePending     = "send_pending"
	codeUncertain   = "delivery_uncertain"
	codeRateLimited = "rate_limited"
)

const maxBody = 5 << 20

// object is JSON as the documents write it, field by field.
type object = map[string]any

// exchange is one request on its way through the server.
type exchange struct {
	r       *http.Request
	op      Op
	body    []byte
	key     Key
	fault   Fault
	release func() // gives back what the request holds
}

func (x *exchange) inbox() string { return x.r.PathValue("inbox") }

// answer is what the server says, before a fault touches it.
type answer struct {
	status int
	body   []byte
	retry  time.Duration // Retry-After
}

func ok(v any) answer {
	b, err := json.Marshal(v)
	if err != nil {
		panic("goshentest: " + err.Error())
	}
	return answer{status: http.StatusOK, body: b}
}

func failure(status int, code string) answer {
	transient := status >= 500 && code != "not_configured" || status == http.StatusTooManyRequests || code == codePending
	return refusal(status, code, transient)
}

func refusal(status int, code string, transient bool) answer {
	a := ok(object{"error": object{"code": code, "message": "a message for people: " + code, "transient": transient}})
	a.status = status
	return a
}

// serve takes one request through its points: arrival, fault, effect, answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route) {
	x := &exchange{r: r, op: rt.op, release: func() {}}
	defer func() { x.release() }()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	x.body = body
	note := s.note(x)
	if err != nil {
		panic(http.ErrAbortHandler) // the client went away while it sent
	}
	x.fault = s.draw(x)
	s.pause(r, x.fault.Delay)
	s.at(BeforeEffect, x)
	if x.fault.Drop == DropRequest {
		panic(http.ErrAbortHandler)
	}
	a := x.fault.refusal()
	if a.status == 0 {
		a = x.fault.spoil(s.act(rt, x))
		s.pause(r, x.fault.Linger)
		s.at(AfterEffect, x)
	}
	x.release()
	x.release = func() {}
	if x.fault.Drop == DropAnswer {
		panic(http.ErrAbortHandler)
	}
	s.answered(note, a)
	s.write(w, a)
}

// act authorises the request and carries it out.
func (s *Server) act(rt route, x *exchange) answer {
	token, bearer := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	known := false
	if x.key, known = s.lookUp(token); !bearer || !known {
		return failure(http.StatusUnauthorized, "unauthorized")
	}
	switch inbox := x.inbox(); {
	case x.op == OpUndocumented, x.op == OpNotConfigured:
		return rt.act(x)
	case !x.key.may(rt.scope):
		return failure(http.StatusForbidden, codeScope)
	case inbox != "" && !x.key.sees(inbox):
		return failure(http.StatusForbidden, codeForbidden)
	case inbox != "" && !slices.Contains(s.cfg.Inboxes, inbox):
		return failure(http.StatusNotFound, codeNotFound)
	}
	for name, values := range x.r.URL.Query() {
		if !slices.Contains(rt.query, name) || name != "labels" && len(values) > 1 {
			return s.invalid(x, "unknown or repeated query parameter %q", name)
		}
	}
	return rt.act(x)
}

func (s *Server) lookUp(token string) (Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		if k.Token == token {
			return k, true
		}
	}
	return Key{}, false
}

func (s *Server) write(w http.ResponseWriter, a answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Date", s.Now().Format(http.TimeFormat))
	if a.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((a.retry+time.Second-1)/time.Second)))
	}
	w.WriteHeader(a.status)
	if _, err := w.Write(a.body); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

// object reads the request's body as one JSON object; nil if it is none.
func (x *exchange) object() object {
	var o object
	if json.Unmarshal(x.body, &o) != nil {
		return nil
	}
	return o
}

// invalid answers a request that is at fault, and records it as a violation.
func (s *Server) invalid(x *exchange, format string, args ...any) answer {
	s.violate(string(x.op)+": "+format, args...)
	return failure(http.StatusBadRequest, codeInvalid)
}
