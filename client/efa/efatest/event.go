package efatest

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"time"
)

// The types of events that the build emits.
const (
	MessageReceived   = "message.received"
	MessageQueued     = "message.queued"
	MessageAccepted   = "message.accepted"
	DeliveryUpdated   = "message.delivery_updated"
	ApprovalRequested = "approval.requested"
	ApprovalRejected  = "approval.rejected"
	WebhookTest       = "webhook.test"
)

const (
	apiVersion = "2026-09-19"
	timeFormat = "2006-01-02T15:04:05.000Z"
)

// Event is one event of the project.
type Event struct {
	ID       string
	Type     string
	Sequence int64
	At       time.Time
	Visible  time.Time      // when the cursor shows it
	Inbox    string         // whose keys see it; empty is the project's
	Data     map[string]any // what stands in data
}

type event struct {
	id, typ, inbox string
	seq            int64
	at, visible    time.Time
	data           []byte
}

// Emit adds an event of any type and data, and pushes it. Sequence and times
// are the server's, and the ID unless one is given. It returns the event as it
// stands.
func (s *Server) Emit(e Event) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emit(e, notice{}).export()
}

// notice is how an event reaches the outside.
type notice struct {
	late   time.Duration // after which the cursor shows it
	noPush bool
	only   *endpoint // the one webhook that hears of it
}

// emit is called with mu held.
func (s *Server) emit(in Event, n notice) event {
	now := s.Now()
	s.lastSeq++
	f := s.drawEvent(in.Type)
	data, err := json.Marshal(in.Data)
	if err != nil {
		panic("efatest: event data: " + err.Error())
	}
	e := event{
		id: in.ID, typ: in.Type, inbox: in.Inbox, seq: s.lastSeq,
		at: now, visible: now.Add(n.late + f.Late), data: data,
	}
	if e.id == "" {
		e.id = s.newID("evt")
	}
	s.events = append(s.events, e)
	if !n.noPush && !f.DropPush {
		s.fanOut(e, f, n.only)
	}
	return e
}

func (e event) export() Event {
	var data map[string]any
	_ = json.Unmarshal(e.data, &data) // it was marshalled from such a map
	return Event{ID: e.id, Type: e.typ, Sequence: e.seq, At: e.at, Visible: e.visible, Inbox: e.inbox, Data: data}
}

// pushed is the body of a webhook: exactly four fields.
func (e event) pushed() []byte {
	b := append(e.head(nil), `,"api_version":"`+apiVersion+`","data":`...)
	return append(append(b, e.data...), '}')
}

// row appends the polled form.
func (e event) row(b []byte, environment string) []byte {
	b = append(e.head(b), `,"sequence":`...)
	b = strconv.AppendInt(b, e.seq, 10)
	b = e.at.AppendFormat(append(b, `,"occurred_at":"`...), timeFormat)
	b = append(append(b, `","data":`...), e.data...)
	b = append(append(b, `,"environment":"`...), environment...)
	return append(b, `","api_version":"`+apiVersion+`"}`...)
}

func (e event) head(b []byte) []byte {
	b = append(append(b, `{"id":`...), quote(e.id)...)
	return append(append(b, `,"type":`...), quote(e.typ)...)
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// Events are the events that remain, whether or not the cursor shows them yet.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Event, 0, len(s.events))
	for _, e := range s.events {
		out = append(out, e.export())
	}
	return out
}

// Head is the highest sequence so far, 0 if there is none.
func (s *Server) Head() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastSeq
}

// Expire deletes the events up to and including a sequence, as retention
// would. Cursors that lie before what remains are answered cursor_expired.
func (s *Server) Expire(through int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = slices.Clone(s.events[s.above(through):])
}

// above is the place of the first event with a higher sequence. It is called
// with mu held.
func (s *Server) above(seq int64) int {
	return sort.Search(len(s.events), func(i int) bool { return s.events[i].seq > seq })
}
