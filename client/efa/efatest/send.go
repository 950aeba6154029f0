package efatest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Send is one accepted Idempotency-Key: the provider's own record, to count
// by.
type Send struct {
	Key      string
	Inbox    string
	Body     []byte // as it came first
	To       []string
	Subject  string
	Text     string
	HTML     string
	ReplyTo  string // the message it answers
	At       time.Time
	Replays  int // how often the same came again
	Conflict int // how often another body came under the key

	// A send that goes out has both; a held one has them once it is approved.
	MessageID, ThreadID string

	// A held send has both.
	DraftID, ApprovalID string
	Rejected            bool
}

type send struct {
	Send
	hash   [sha256.Size]byte
	answer []byte // what every replay returns, byte for byte
	busy   bool   // its first request is not answered yet
}

// Sends are the accepted keys in the order of their first requests.
func (s *Server) Sends() []Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Send, 0, len(s.sends))
	for _, d := range s.sends {
		out = append(out, d.export())
	}
	return out
}

func (d *send) export() Send {
	out := d.Send
	out.Body, out.To = slices.Clone(d.Body), slices.Clone(d.To)
	return out
}

// OnSend adds a hook that is called once for every message that leaves, after
// its effect and before the answer (for a held one: in [Server.Approve]). A
// counterparty can answer from it with [Server.Inbound].
func (s *Server) OnSend(hook func(Send)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSend = append(s.onSend[:len(s.onSend):len(s.onSend)], hook)
}

// Echo lets a copy of every message that leaves and for which echo is true
// come back in, as a list or the own address on Cc does. Nil ends it.
func (s *Server) Echo(echo func(Send) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.echo = echo
}

func (s *Server) sendMessage(x *exchange) answer {
	in, problem := readSend(x)
	if problem != "" {
		return s.invalid(x, codeInvalidRequest, problem)
	}
	s.mu.Lock()
	hold := s.hold
	first := s.byKey[in.Key] == nil
	s.mu.Unlock()
	// The test's own function runs without the lock; what it says matters only
	// if the key is still new below.
	held := first && hold != nil && hold(in.export())
	d, a := s.accept(x, in, held)
	if d != nil && d.MessageID != "" {
		s.left(*d)
	}
	return a
}

// accept decides by the key. It returns the send if it is a new one.
func (s *Server) accept(x *exchange, in *send, held bool) (*Send, answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.At = s.Now()
	if d := s.byKey[in.Key]; d != nil {
		return nil, s.again(d, in)
	}
	if in.ReplyTo != "" && (s.messages[in.ReplyTo] == nil || s.messages[in.ReplyTo].inbox != in.Inbox) {
		return nil, failure(http.StatusNotFound, codeNotFound, "no such message to reply to")
	}
	if held {
		s.draft(in)
	} else {
		s.queueMessage(in)
	}
	in.busy = true
	x.release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		in.busy = false
	}
	s.byKey[in.Key] = in
	s.sends = append(s.sends, in)
	out := in.export()
	return &out, answer{status: http.StatusAccepted, body: in.answer}
}

// again answers a key that was used before. It is called with mu held.
func (s *Server) again(d, in *send) answer {
	switch {
	case in.At.Sub(d.At) > s.cfg.ReplayWindow:
		s.violateLocked("key %s used %v after its first request", d.Key, in.At.Sub(d.At))
		return failure(http.StatusConflict, codeKeyExpired, "the key is older than the replay window")
	case d.hash != in.hash:
		d.Conflict++
		s.violateLocked("key %s used with two bodies", d.Key)
		return failure(http.StatusConflict, codeConflict, "the key was used with another payload")
	case d.busy:
		return failure(http.StatusServiceUnavailable, codeUnavailable, "A matching send is already in progress")
	}
	d.Replays++
	return answer{status: http.StatusAccepted, body: d.answer}
}

// queueMessage is called with mu held.
func (s *Server) queueMessage(d *send) {
	m := s.outbound(d)
	d.answer = ok(0, object{"result": "queued", "message_id": m.id, "thread_id": m.thread, "inbox_id": m.inbox}).body
}

// outbound stores the message that d asks for and emits its events. It is
// called with mu held.
func (s *Server) outbound(d *send) *message {
	m := &message{
		inbox: d.Inbox, outbound: true, from: s.cfg.Inboxes[d.Inbox], to: d.To,
		subject: d.Subject, text: d.Text, html: d.HTML,
	}
	if parent := s.messages[d.ReplyTo]; parent != nil {
		m.thread = parent.thread
		if len(m.to) == 0 {
			m.to = []string{parent.from}
		}
	}
	s.store(m)
	d.MessageID, d.ThreadID, d.To = m.id, m.thread, m.to
	s.emit(Event{Type: MessageQueued, Inbox: m.inbox, Data: object{
		"message_id": m.id, "thread_id": m.thread, "inbox_id": m.inbox,
	}}, notice{})
	s.emit(Event{Type: MessageAccepted, Inbox: m.inbox, Data: object{
		"message_id": m.id, "inbox_id": m.inbox,
	}}, notice{})
	return m
}

// left tells the world about a message that went out.
func (s *Server) left(d Send) {
	s.mu.Lock()
	hooks, echo := s.onSend, s.echo
	s.mu.Unlock()
	if echo != nil && echo(d) {
		s.Inbound(Mail{
			Inbox: d.Inbox, From: s.cfg.Inboxes[d.Inbox], To: d.To,
			Subject: d.Subject, Text: d.Text, HTML: d.HTML, Thread: d.ThreadID,
		})
	}
	for _, hook := range hooks {
		hook(d)
	}
}

// readSend reads a send from a request; a problem in words if it is none.
func readSend(x *exchange) (*send, string) {
	o, err := x.object()
	if err != nil {
		return nil, err.Error()
	}
	d := &send{Send: Send{Key: x.r.Header.Get("Idempotency-Key"), Inbox: x.inbox(), Body: x.body}}
	if d.Key == "" {
		return nil, "Idempotency-Key is required"
	}
	for name, v := range o {
		if problem := d.set(name, v); problem != "" {
			return nil, problem
		}
	}
	if len(d.To) == 0 && d.ReplyTo == "" {
		return nil, "to is required"
	}
	if o["text"] == nil && o["html"] == nil {
		return nil, "text or html is required"
	}
	d.hash = fingerprint(d.Inbox, o)
	return d, ""
}

func (d *send) set(name string, v any) string {
	isString := true
	switch name {
	case "to":
		d.To = recipients(v)
		if slices.ContainsFunc(d.To, func(a string) bool { return !strings.Contains(a, "@") }) {
			return "to holds something that is no address"
		}
	case "cc", "bcc":
	case "subject":
		d.Subject, isString = v.(string)
	case "text":
		d.Text, isString = v.(string)
	case "html":
		d.HTML, isString = v.(string)
	case "reply_to_message_id":
		d.ReplyTo, isString = v.(string)
	default:
		return fmt.Sprintf("unknown field %q", name)
	}
	if !isString {
		return name + " is not a string"
	}
	return ""
}

// fingerprint is the hash of the canonical payload: the order of keys and
// white space do not count.
func fingerprint(inbox string, o object) [sha256.Size]byte {
	var b bytes.Buffer
	b.WriteString(inbox + "\n")
	_ = json.NewEncoder(&b).Encode(o) // it was decoded from JSON; a map is written in the order of its keys
	return sha256.Sum256(b.Bytes())
}
