package efatest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// message is one message of an inbox.
type message struct {
	id, inbox, thread   string
	outbound            bool
	from                string
	to                  []string
	subject, text, html string
	status              string // shown in the listing once the test has set it
	seq                 int64
	listed, readable    time.Time // when the listing and the body show it
	hidden              bool
}

type thread struct {
	id, inbox string
	messages  []*message // in sequence order
}

// store gives m its place at the end of its thread; an empty thread opens one.
// It is called with mu held.
func (s *Server) store(m *message) *message {
	if m.thread == "" {
		m.thread = s.newID("thd")
	}
	t := s.threads[m.thread]
	if t == nil {
		t = &thread{id: m.thread, inbox: m.inbox}
		s.threads[m.thread] = t
	}
	s.msgSeq++
	m.id, m.seq = s.newID("msg"), s.msgSeq
	s.messages[m.id] = m
	t.messages = append(t.messages, m)
	return m
}

// row is a message as the thread listing documents it.
func (m *message) row() object {
	o := object{
		"id": m.id, "direction": "inbound", "from": object{"email": m.from},
		"to": addresses(m.to), "subject": m.subject,
	}
	if m.outbound {
		o["direction"] = "outbound"
	}
	if m.status != "" {
		o["status"] = m.status
	}
	return o
}

func addresses(list []string) []object {
	out := make([]object, 0, len(list))
	for _, a := range list {
		out = append(out, object{"email": a})
	}
	return out
}

func (s *Server) listThread(x *exchange) answer {
	limit, refused, valid := s.limit(x)
	if !valid {
		return refused
	}
	after, q := int64(0), x.r.URL.Query()
	if q.Has("cursor") {
		if after, valid = parseListCursor(q.Get("cursor")); !valid {
			return s.invalid(x, codeInvalidCursor, "not a cursor of this listing")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[x.r.PathValue("thread")]
	if t == nil || t.inbox != x.inbox() {
		return failure(http.StatusNotFound, codeNotFound, "no such thread")
	}
	return ok(http.StatusOK, t.page(s.Now(), after, limit))
}

func (t *thread) page(now time.Time, after int64, limit int) object {
	data, next, more := []object{}, any(nil), false
	for _, m := range t.messages {
		if m.seq <= after || m.hidden || m.listed.After(now) {
			continue
		}
		if more = len(data) == limit; more {
			break
		}
		data, next = append(data, m.row()), listCursor(m.seq)
	}
	return object{"data": data, "has_more": more, "next_cursor": next}
}

func (s *Server) readBody(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[x.r.PathValue("message")]
	if m == nil || m.inbox != x.inbox() || m.hidden {
		return failure(http.StatusNotFound, codeNotFound, "no such message")
	}
	if m.readable.After(s.Now()) {
		return ok(http.StatusOK, object{"text": nil, "html": nil, "body_available": false})
	}
	o := object{"text": m.text, "html": nil, "body_available": true}
	if m.html != "" {
		o["html"] = m.html
	}
	return ok(http.StatusOK, o)
}

// Message is a message as the provider holds it.
type Message struct {
	ID, Inbox, Thread   string
	Outbound            bool
	From                string
	To                  []string
	Subject, Text, HTML string
	Status              string
}

// Messages are the messages of a thread in their order; an empty thread is
// all messages.
func (s *Server) Messages(threadID string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*message
	for _, m := range s.messages {
		if threadID == "" || m.thread == threadID {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b *message) int { return int(a.seq - b.seq) })
	out := make([]Message, 0, len(found))
	for _, m := range found {
		out = append(out, Message{
			ID: m.id, Inbox: m.inbox, Thread: m.thread, Outbound: m.outbound, From: m.from,
			To: slices.Clone(m.to), Subject: m.subject, Text: m.text, HTML: m.html, Status: m.status,
		})
	}
	return out
}

// Hide makes a message unreadable: its thread does not list it and its body is
// not_found, until [Server.Reveal].
func (s *Server) Hide(messageID string) { s.setHidden(messageID, true) }

// Reveal ends Hide.
func (s *Server) Reveal(messageID string) { s.setHidden(messageID, false) }

func (s *Server) setHidden(messageID string, hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known(messageID).hidden = hidden
}

// known is called with mu held. A message that does not exist is a mistake in
// the test.
func (s *Server) known(messageID string) *message {
	m := s.messages[messageID]
	if m == nil {
		panic("efatest: no message " + messageID)
	}
	return m
}

// recipients understands a list of addresses, of objects with an email, or one
// of them alone: the documents leave the shape of "to" open.
func recipients(v any) []string {
	switch t := v.(type) {
	case string:
		return []string{strings.TrimSpace(t)}
	case object:
		return recipients(t["email"])
	case []any:
		var out []string
		for _, e := range t {
			out = append(out, recipients(e)...)
		}
		return out
	}
	return nil
}
