package efatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The codes that the documents name, and unauthenticated, which they do not.
const (
	codeInvalidRequest  = "invalid_request"
	codeInvalidCursor   = "invalid_cursor"
	codeCursorExpired   = "cursor_expired"
	codeNotFound        = "not_found"
	codeDenied          = "permission_denied"
	codeVersionConflict = "version_conflict"
	codeConflict        = "idempotency_conflict"
	codeKeyExpired      = "idempotency_expired"
	codeRateLimited     = "rate_limited"
	codeUnavailable     = "temporarily_unavailable"
	codeUnauthenticated = "unauthenticated"
)

const maxBody = 1 << 20

// object is JSON as the documents write it, field by field.
type object = map[string]any

// exchange is one request on its way through the server.
type exchange struct {
	r       *http.Request
	op      Op
	body    []byte
	key     Key
	release func() // gives back what the request holds; may be called twice
}

func (x *exchange) inbox() string { return x.r.PathValue("inbox") }

// answer is what the server says, before a fault touches it.
type answer struct {
	status int
	body   []byte
	retry  time.Duration // Retry-After
}

func ok(status int, v any) answer {
	b, err := json.Marshal(v)
	if err != nil {
		panic("efatest: " + err.Error()) // an Event's Data that JSON cannot hold
	}
	return answer{status: status, body: b}
}

func failure(status int, code, message string) answer {
	retryable := status >= 500 || status == http.StatusTooManyRequests
	return ok(status, object{"error": object{"code": code, "message": message, "retryable": retryable}})
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
	f := s.draw(x)
	s.pause(r, f.Delay)
	s.at(BeforeEffect, x)
	if f.Drop == DropRequest {
		panic(http.ErrAbortHandler)
	}
	a := f.refusal()
	if a.status == 0 {
		a = s.act(rt, x)
		a = f.spoil(a)
		s.pause(r, f.Linger)
		s.at(AfterEffect, x)
	}
	x.release()
	s.answered(note, f, a)
	s.write(w, r, f, a)
	s.at(AfterAnswer, x)
}

// act authorises the request and carries it out.
func (s *Server) act(rt route, x *exchange) answer {
	token, bearer := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	known := false
	if x.key, known = s.lookUp(token); !bearer || !known {
		return failure(http.StatusUnauthorized, codeUnauthenticated, "unknown credential")
	}
	if x.op == OpUndocumented {
		return rt.act(x)
	}
	if x.r.PathValue("project") != s.cfg.Project {
		return failure(http.StatusNotFound, codeNotFound, "no such project")
	}
	if !x.key.may(rt.scope) {
		return failure(http.StatusForbidden, codeDenied, "the credential lacks the scope "+rt.scope)
	}
	if inbox := x.inbox(); inbox != "" && (s.cfg.Inboxes[inbox] == "" || !x.key.sees(inbox)) {
		return failure(http.StatusNotFound, codeNotFound, "no such inbox")
	}
	if len(x.body) > maxBody {
		return failure(http.StatusRequestEntityTooLarge, codeInvalidRequest, "the body is too large")
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

// write sends a as far as f lets it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, f Fault, a answer) {
	if f.Drop == DropAnswer {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Date", s.Now().Format(http.TimeFormat))
	if a.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((a.retry+time.Second-1)/time.Second)))
	}
	w.WriteHeader(a.status)
	half := len(a.body) / 2
	s.put(w, a.body[:half])
	if f.Drop == DropMidBody {
		panic(http.ErrAbortHandler)
	}
	s.pause(r, f.SlowBody)
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone: in memory too it gets no more
	}
	s.put(w, a.body[half:])
}

// put flushes, so that a hook after it finds the bytes gone.
func (s *Server) put(w http.ResponseWriter, b []byte) {
	_, err := w.Write(b)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

// object reads the request's body as one JSON object.
func (x *exchange) object() (object, error) {
	d := json.NewDecoder(strings.NewReader(string(x.body)))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil || o == nil {
		return nil, fmt.Errorf("the body is not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // Token returns it bare
		return nil, fmt.Errorf("something follows the JSON object")
	}
	return o, nil
}
