package goshentest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Labels that the server sets.
const (
	labelReceived    = "received"
	labelSent        = "sent"
	labelUnread      = "unread"
	labelTrash       = "trash"
	labelQuarantined = "quarantined"
	labelBounced     = "bounced"
)

// message is a row of the mailbox. Rows that stand later in Server.messages
// are newer.
type message struct {
	id, inbox, wireID, thread string
	at                        time.Time
	sent                      bool
	labels                    []string
	from                      string
	to, cc, bcc, replyTo      []string
	subject, text, html       string
	references                []string
	protection                string // empty, clean, quarantined, released
	delivery                  *snapshot
}

func (m *message) quarantined() bool { return m.protection == labelQuarantined }

func (m *message) has(labels ...string) bool {
	return !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(m.labels, l) })
}

// relabel is called with mu held.
func (s *Server) relabel(m *message, add, remove []string) {
	var labels []string
	for _, l := range slices.Concat(m.labels, add) {
		if !slices.Contains(remove, l) && !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	m.labels = labels
	s.relabels++
}

// find is called with mu held; nil if there is no such message.
func (s *Server) find(inbox, wireID string) *message {
	for _, m := range s.messages {
		if m.inbox == inbox && m.wireID == wireID {
			return m
		}
	}
	return nil
}

const maxPreview = 200

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// summary is a message as lists, threads and events show it.
func (m *message) summary() object {
	o := object{
		"messageId": m.wireID, "threadId": m.thread, "inboxId": m.inbox, "from": m.from, "to": some(m.to),
		"subject": m.subject, "preview": cut(m.text, maxPreview), "timestamp": stamp(m.at), "labels": some(m.labels),
		"attachments": []any{},
	}
	if m.quarantined() {
		o["preview"] = ""
	}
	if m.protection != "" {
		o["protection"] = object{"status": m.protection, "scannedAt": stamp(m.at)}
	}
	return o
}

// view is a message as a read shows it.
func (m *message) view(html bool) object {
	o := m.summary()
	o["cc"], o["replyTo"] = some(m.cc), some(m.replyTo)
	if m.sent {
		o["bcc"] = some(m.bcc)
	}
	if m.delivery != nil {
		o["delivery"] = m.delivery.json()
	}
	if m.quarantined() {
		return o
	}
	o["text"] = m.text
	if html {
		o["html"] = m.html
	}
	return o
}

// some is a list that JSON does not write as null.
func some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (s *Server) getMessage(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(x.inbox(), x.r.PathValue("message"))
	switch {
	case m == nil:
		return failure(http.StatusNotFound, codeNotFound)
	case m.quarantined() && x.key.Inbox != "":
		return failure(http.StatusForbidden, codeQuarantined)
	}
	return ok(m.view(x.r.URL.Query().Get("includeHtml") == "true"))
}

func (s *Server) listInboxes(x *exchange) answer {
	list := []object{}
	for _, inbox := range s.cfg.Inboxes {
		if x.key.sees(inbox) {
			list = append(list, inboxView(inbox))
		}
	}
	return ok(object{"inboxes": list})
}

func (s *Server) getInbox(x *exchange) answer { return ok(inboxView(x.inbox())) }

func inboxView(inbox string) object {
	return object{"inboxId": inbox, "address": inbox, "createdAt": "2026-09-20T18:00:00.000Z"}
}

// Message is a message in the provider's store.
type Message struct {
	Inbox, ID, Thread string
	Labels            []string
	From              string
	To                []string
	Subject, Text     string
	Sent              bool
}

// Messages are all messages in the order in which they were stored, those in
// quarantine too.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Message, len(s.messages))
	for i, m := range s.messages {
		out[i] = Message{
			Inbox: m.inbox, ID: m.wireID, Thread: m.thread, Labels: slices.Clone(m.labels),
			From: m.from, To: slices.Clone(m.to), Subject: m.subject, Text: m.text, Sent: m.sent,
		}
	}
	return out
}

// Labels are a message's labels; nil if there is no such message.
func (s *Server) Labels(inbox, messageID string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(inbox, messageID); m != nil {
		return slices.Clone(m.labels)
	}
	return nil
}
