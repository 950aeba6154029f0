package goshentest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mail is a message from outside.
type Mail struct {
	Inbox   string // default the first
	From    string
	To      []string // default the inbox
	Cc      []string
	ReplyTo []string
	Subject string
	Text    string
	HTML    string

	// MessageID stands with its angle brackets; default a new one.
	MessageID string
	// InReplyTo and References are Message-IDs; they alone decide the thread.
	InReplyTo  string
	References []string

	// Quarantined: the scanner holds it. It is listed nowhere and has no event.
	Quarantined bool
}

// Received says what became of a [Mail].
type Received struct {
	MessageID string
	ThreadID  string

	// Duplicate: the inbox has a message with this Message-ID, sent or
	// received. Nothing is stored and nobody is told; the IDs are that one's.
	Duplicate bool
}

// Inbound delivers mail from outside. An inbox that does not exist panics.
func (s *Server) Inbound(in Mail) Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.Inbox = orDefault(in.Inbox, s.cfg.Inboxes[0])
	if !slices.Contains(s.cfg.Inboxes, in.Inbox) {
		panic("goshentest: no inbox " + in.Inbox)
	}
	in.MessageID = orDefault(in.MessageID, fmt.Sprintf("<%s@sender.invalid>", s.newUUID()))
	if m := s.find(in.Inbox, in.MessageID); m != nil {
		return Received{m.wireID, m.thread, true}
	}
	m := s.receive(in)
	s.messages = append(s.messages, m)
	if !in.Quarantined {
		s.emitReceived(m)
	}
	return Received{MessageID: m.wireID, ThreadID: m.thread}
}

// receive is called with mu held.
func (s *Server) receive(in Mail) *message {
	references := slices.Clone(in.References)
	if in.InReplyTo != "" {
		references = append(references, in.InReplyTo)
	}
	m := &message{
		id: s.newUUID(), inbox: in.Inbox, wireID: in.MessageID, at: s.Now(),
		labels: []string{labelReceived, labelUnread},
		from:   strings.ToLower(in.From), to: lower(in.To), cc: lower(in.Cc), replyTo: lower(in.ReplyTo),
		subject: in.Subject, text: in.Text, html: in.HTML,
		references: references[max(0, len(references)-50):],
	}
	if m.to == nil {
		m.to = []string{in.Inbox}
	}
	if m.text == "" {
		m.text = stripTags(m.html)
	}
	if in.Quarantined {
		m.labels, m.protection, m.thread = []string{labelQuarantined}, labelQuarantined, s.newUUID()
		return m
	}
	m.thread = s.resolveThread(m.inbox, m.references)
	return m
}

func lower(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.ToLower(s))
	}
	return out
}

var tags = regexp.MustCompile(`<[^>]*>`)

func stripTags(html string) string { return tags.ReplaceAllString(html, "") }

// Release lets a message out of quarantine, as a person at the dashboard: it is
// received and unread from then on. Whether an event tells is
// [Config.SilentRelease]. A message that is not in quarantine stays as it is.
func (s *Server) Release(inbox, messageID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(inbox, messageID)
	if m == nil || !m.quarantined() {
		return
	}
	m.protection = "released"
	s.relabel(m, []string{labelReceived, labelUnread}, []string{labelQuarantined, labelTrash})
	if !s.cfg.SilentRelease {
		s.emitReceived(m)
	}
}

// Label changes a message's labels, as a person at the dashboard.
func (s *Server) Label(inbox, messageID string, add, remove []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(inbox, messageID); m != nil {
		s.relabel(m, add, remove)
	}
}

// Delete removes a message.
func (s *Server) Delete(inbox, messageID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relabels++
	s.messages = slices.DeleteFunc(s.messages, func(m *message) bool { return m.inbox == inbox && m.wireID == messageID })
}
