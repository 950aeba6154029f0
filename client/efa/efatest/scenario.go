package efatest

import (
	"net/http"
	"time"
)

// Mail is a message that comes in.
type Mail struct {
	Inbox   string   // default [Server.Inbox]
	From    string   // default supplier@example.com
	To      []string // default the inbox's address
	Subject string
	Text    string
	HTML    string

	// ReplyTo is a message of the inbox that it answers by its headers: it
	// joins that thread. One that the inbox does not have opens a new thread,
	// as does neither ReplyTo nor Thread. Thread names a thread outright.
	ReplyTo string
	Thread  string

	ListedAfter time.Duration // the thread lists it only then
	BodyAfter   time.Duration // its body is available only then
	Late        time.Duration // the cursor shows its event only then
	NoPush      bool          // no webhook hears of it
}

// Received is what became of a [Mail].
type Received struct {
	MessageID, ThreadID, EventID string
	Sequence                     int64
}

// Inbound delivers m to its inbox and emits message.received.
func (s *Server) Inbound(m Mail) Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, inbox := s.Now(), orDefault(m.Inbox, s.Inbox())
	address, known := s.cfg.Inboxes[inbox]
	if !known {
		panic("efatest: no inbox " + inbox)
	}
	if m.To == nil {
		m.To = []string{address}
	}
	in := s.store(&message{
		inbox: inbox, thread: s.threadFor(inbox, m), from: orDefault(m.From, "supplier@example.com"), to: m.To,
		subject: m.Subject, text: m.Text, html: m.HTML,
		listed: now.Add(m.ListedAfter), readable: now.Add(m.BodyAfter),
	})
	e := s.received(in, notice{late: m.Late, noPush: m.NoPush})
	return Received{MessageID: in.id, ThreadID: in.thread, EventID: e.id, Sequence: e.seq}
}

// threadFor is called with mu held; an empty answer opens a thread.
func (s *Server) threadFor(inbox string, m Mail) string {
	if m.Thread != "" {
		if t := s.threads[m.Thread]; t == nil || t.inbox != inbox {
			panic("efatest: inbox " + inbox + " has no thread " + m.Thread)
		}
		return m.Thread
	}
	if parent := s.messages[m.ReplyTo]; parent != nil && parent.inbox == inbox {
		return parent.thread
	}
	return ""
}

// received is called with mu held.
func (s *Server) received(m *message, n notice) event {
	return s.emit(Event{Type: MessageReceived, Inbox: m.inbox, Data: object{
		"message_id": m.id, "thread_id": m.thread, "inbox_id": m.inbox,
		"environment": s.cfg.Environment, "simulated": s.cfg.Environment == "test",
	}}, n)
}

// Announce emits message.received for a message once more, under a new event
// ID.
func (s *Server) Announce(messageID string) Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known(messageID)
	e := s.received(m, notice{})
	return Received{MessageID: m.id, ThreadID: m.thread, EventID: e.id, Sequence: e.seq}
}

// DeliveryUpdate emits message.delivery_updated for a message that was sent.
// With a status the event's data and the thread's listing say it; without one
// the event is as documented, message and inbox alone.
func (s *Server) DeliveryUpdate(messageID, status string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known(messageID)
	data := object{"message_id": m.id, "inbox_id": m.inbox}
	if status != "" {
		m.status, data["status"] = status, status
	}
	return s.emit(Event{Type: DeliveryUpdated, Inbox: m.inbox, Data: data}, notice{}).export()
}

// SetStatus changes what the thread's listing says about a message, and emits
// nothing.
func (s *Server) SetStatus(messageID, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known(messageID).status = status
}

// simulateInbound is POST test/inbound: it takes no headers, so it always
// opens a new thread.
func (s *Server) simulateInbound(x *exchange) answer {
	if s.cfg.Environment != "test" {
		return failure(http.StatusForbidden, codeDenied, "only in a test project")
	}
	o, err := x.object()
	if err != nil {
		return s.invalid(x, codeInvalidRequest, err.Error())
	}
	m := Mail{}
	m.Inbox, _ = o["inbox_id"].(string)
	m.Subject, _ = o["subject"].(string)
	m.Text, _ = o["text"].(string)
	m.HTML, _ = o["html"].(string)
	from := recipients(o["from"])
	if m.Inbox == "" || len(from) != 1 {
		return s.invalid(x, codeInvalidRequest, "inbox_id and from are required")
	}
	m.From = from[0]
	if s.cfg.Inboxes[m.Inbox] == "" || !x.key.sees(m.Inbox) {
		return failure(http.StatusNotFound, codeNotFound, "no such inbox")
	}
	in := s.Inbound(m)
	return ok(http.StatusAccepted, object{"message_id": in.MessageID, "thread_id": in.ThreadID, "inbox_id": m.Inbox})
}
