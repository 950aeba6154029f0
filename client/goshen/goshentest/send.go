package goshentest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Send is one Idempotency-Key: the provider's own record, to count by.
type Send struct {
	Key       string
	Inbox     string
	Body      []byte // as it came first
	To        []string
	Cc, Bcc   []string
	Subject   string
	Text      string
	HTML      string
	InReplyTo string // the message it answers
	At        time.Time
	Replays   int // how often the same came again and got the first answer
	Conflict  int // how often another body came under the key

	// What became of it. An uncertain one has no IDs until it is resolved.
	MessageID, ThreadID string
	Uncertain           bool
	Failed              bool
}

type send struct {
	Send
	labels []string
	hash   [sha256.Size]byte
	answer answer // what every replay returns, once it is settled
	busy   bool   // its first request is not answered yet
}

func (d *send) export() Send {
	out := d.Send
	out.Body, out.To = slices.Clone(d.Body), slices.Clone(d.To)
	return out
}

// Sends are the keys in the order of their first requests.
func (s *Server) Sends() []Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Send, len(s.sends))
	for i, d := range s.sends {
		out[i] = d.export()
	}
	return out
}

// OnSend adds a hook that is called once for every message that leaves, after
// its effect and before the answer. A counterparty can answer from it with
// [Server.Inbound].
func (s *Server) OnSend(hook func(Send)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSend = append(slices.Clone(s.onSend), hook)
}

// send also replies.
func (s *Server) send(x *exchange) answer {
	in, problem := readSend(x)
	if problem != "" {
		return s.invalid(x, "%s", problem)
	}
	left, a := s.accept(x, in)
	if left != nil {
		s.left(*left)
	}
	return a
}

func (s *Server) reply(x *exchange) answer { return s.send(x) }

// left tells the world about a message that went out.
func (s *Server) left(d Send) {
	s.mu.Lock()
	hooks := s.onSend
	s.mu.Unlock()
	for _, hook := range hooks {
		hook(d)
	}
}

// accept decides by the key. It returns the send if something left.
func (s *Server) accept(x *exchange, in *send) (*Send, answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.sends {
		if d.Inbox == in.Inbox && d.Key == in.Key {
			return nil, s.again(d, in)
		}
	}
	if refused := s.address(in); refused.status != 0 {
		return nil, refused
	}
	in.At = s.Now()
	in.busy = true
	x.release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		in.busy = false
	}
	s.sends = append(s.sends, in)
	if x.fault.Uncertain {
		in.Uncertain = true
		return nil, uncertain()
	}
	s.store(in)
	out := in.export()
	return &out, in.answer
}

// again answers a key that was used before. It is called with mu held.
func (s *Server) again(d, in *send) answer {
	switch {
	case d.hash != in.hash:
		d.Conflict++
		s.violateLocked("key %s used with two bodies", d.Key)
		return failure(http.StatusConflict, codeConflict)
	case d.Uncertain:
		return uncertain()
	case d.busy:
		return failure(http.StatusConflict, codePending)
	}
	d.Replays++
	if d.Failed {
		return d.answer
	}
	return ok(object{"messageId": d.MessageID, "threadId": d.ThreadID, "deduplicated": true})
}

func uncertain() answer { return failure(http.StatusBadGateway, codeUncertain) }

// address fills in what a reply takes from the message it answers; an answer
// that refuses the send, or none. It is called with mu held.
func (s *Server) address(in *send) answer {
	recent := 0
	for _, d := range s.sends {
		if d.Inbox == in.Inbox && s.Now().Sub(d.At) < 24*time.Hour {
			recent++
		}
	}
	if recent >= s.cfg.SendLimit {
		return failure(http.StatusTooManyRequests, codeRateLimited)
	}
	if in.InReplyTo == "" {
		return answer{}
	}
	parent := s.find(in.Inbox, in.InReplyTo)
	switch {
	case parent == nil:
		return failure(http.StatusNotFound, codeNotFound)
	case parent.quarantined():
		return failure(http.StatusForbidden, codeQuarantined)
	}
	in.Subject = parent.subject
	if !strings.HasPrefix(strings.ToLower(in.Subject), "re:") {
		in.Subject = "Re: " + in.Subject
	}
	if in.To == nil {
		in.To = parent.answerTo(in.Inbox)
	}
	return answer{}
}

func (m *message) answerTo(inbox string) []string {
	to := []string{m.from}
	switch {
	case m.sent:
		to = m.to
	case len(m.replyTo) > 0:
		to = m.replyTo
	}
	return slices.DeleteFunc(slices.Clone(to), func(a string) bool { return a == inbox })
}

// store puts the message that d asks for into the mailbox and emits its
// events. It is called with mu held.
func (s *Server) store(d *send) {
	m := &message{
		id: s.newUUID(), inbox: d.Inbox, at: s.Now(), sent: true,
		labels: union([]string{labelSent}, d.labels),
		from:   d.Inbox, to: d.To, cc: d.Cc, bcc: d.Bcc, subject: d.Subject, text: d.Text, html: d.HTML,
	}
	if m.text == "" {
		m.text = stripTags(m.html)
	}
	m.wireID = fmt.Sprintf("<%s@%s>", s.newUUID(), domain(d.Inbox))
	if parent := s.find(d.Inbox, d.InReplyTo); parent != nil {
		m.thread, m.references = parent.thread, append(slices.Clone(parent.references), parent.wireID)
	} else {
		m.thread = s.newUUID()
	}
	s.messages = append(s.messages, m)
	d.MessageID, d.ThreadID = m.wireID, m.thread
	d.answer = ok(object{"messageId": m.wireID, "threadId": m.thread})
	s.begin(m)
}

func domain(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// Resolve is the operator who finds out what became of an uncertain send: it
// left, or it did not and fails for good. A key that is not uncertain panics.
func (s *Server) Resolve(key string, left bool) {
	s.mu.Lock()
	i := slices.IndexFunc(s.sends, func(d *send) bool { return d.Key == key && d.Uncertain })
	if i < 0 {
		s.mu.Unlock()
		panic("goshentest: no uncertain send " + key)
	}
	d := s.sends[i]
	d.Uncertain = false
	if left {
		s.store(d)
	} else {
		d.Failed, d.answer = true, refusal(http.StatusBadGateway, "provider_error", false)
	}
	out := d.export()
	s.mu.Unlock()
	if left {
		s.left(out)
	}
}

// readSend reads a send or reply from a request; a problem in words if it is
// none.
func readSend(x *exchange) (*send, string) {
	o := x.object()
	if o == nil {
		return nil, "the body is not a JSON object"
	}
	d := &send{Send: Send{
		Key: x.r.Header.Get("Idempotency-Key"), Inbox: x.inbox(), Body: x.body, InReplyTo: x.r.PathValue("message"),
	}}
	inBody, _ := o["idempotencyKey"].(string)
	if inBody != "" && d.Key != "" && inBody != d.Key {
		return nil, "two idempotency keys"
	}
	d.Key = orDefault(d.Key, inBody)
	delete(o, "idempotencyKey")
	for name, v := range o {
		if problem := d.set(name, v); problem != "" {
			return nil, problem
		}
	}
	d.hash = fingerprint(d.Inbox, d.InReplyTo, o)
	return d, d.check()
}

func (d *send) check() string {
	switch {
	case d.Key == "" || utf8.RuneCountInString(d.Key) > 200:
		return "an idempotency key of 1 to 200 characters is required"
	case d.InReplyTo == "" && len(d.To) == 0:
		return "to is required"
	case len(d.To)+len(d.Cc)+len(d.Bcc) > 50:
		return "over 50 recipients"
	case d.Text == "" && d.HTML == "":
		return "text or html is required"
	case len(d.Text)+len(d.HTML) > 512<<10:
		return "text and html are over 512 KiB"
	case utf8.RuneCountInString(d.Subject) > 998 || strings.ContainsAny(d.Subject, "\r\n"):
		return "subject is too long or has a line break"
	}
	for _, a := range slices.Concat(d.To, d.Cc, d.Bcc) {
		if !strings.Contains(a, "@") || strings.ContainsAny(a, "<> ") {
			return "a recipient is no bare address"
		}
	}
	return ""
}

func (d *send) set(name string, v any) string {
	isOne := false
	switch name {
	case "to":
		d.To, isOne = textsOf(v)
	case "cc":
		d.Cc, isOne = textsOf(v)
	case "bcc":
		d.Bcc, isOne = textsOf(v)
	case "labels":
		d.labels, isOne = labelsOf(v)
	case "text":
		d.Text, isOne = v.(string)
	case "html":
		d.HTML, isOne = v.(string)
	case "subject":
		d.Subject, isOne = v.(string)
		isOne = isOne && d.InReplyTo == "" // a reply takes none
	case "replyAll":
		_, isOne = v.(bool)
		isOne = isOne && d.InReplyTo != ""
	}
	if !isOne {
		return fmt.Sprintf("%s is unknown here or of another type", name)
	}
	return ""
}

// fingerprint is the hash of the canonical payload: the order of keys and
// white space do not count.
func fingerprint(inbox, parent string, o object) [sha256.Size]byte {
	b, _ := json.Marshal([]any{inbox, parent, o}) // it was decoded from JSON; a map is written in the order of its keys
	return sha256.Sum256(b)
}
