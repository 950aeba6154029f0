package goshentest

import (
	"slices"
	"strings"
	"time"
)

// The states of a recipient's delivery.
const (
	Queued     = "queued"
	Accepted   = "accepted"
	Delivered  = "delivered"
	Deferred   = "deferred"
	Bounced    = "bounced"
	Failed     = "failed"
	Rejected   = "rejected"
	Complained = "complained"
)

// snapshot is what became of a message, for all recipients at once.
type snapshot struct {
	version    int
	sent, last time.Time
	recipients []recipient
}

type recipient struct {
	address, status, reason string
	at                      time.Time
}

func (d *snapshot) json() object {
	rows := []object{}
	for _, r := range d.recipients {
		o := object{
			"recipient": r.address, "status": r.status, "updatedAt": stamp(r.at),
			"delivered": r.status == Delivered || r.status == Complained,
		}
		if r.reason != "" {
			o["reason"] = r.reason
		}
		rows = append(rows, o)
	}
	return object{"version": d.version, "sentAt": stamp(d.sent), "updatedAt": stamp(d.last), "recipients": rows}
}

// BounceAt makes recipients bounce at the moment they are written to: the sent
// message is labelled bounced, and email.bounced tells. Nil ends it.
func (s *Server) BounceAt(bounces func(address string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounces = bounces
}

// begin gives a message that left its first snapshot and emits the events of a
// send. It is called with mu held.
func (s *Server) begin(m *message) {
	m.delivery = &snapshot{version: 1, sent: m.at, last: m.at}
	var bounced []string
	for _, address := range lower(slices.Concat(m.to, m.cc, m.bcc)) {
		status := Accepted
		if s.bounces != nil && s.bounces(address) {
			status = Bounced
			bounced = append(bounced, address)
		}
		m.delivery.recipients = append(m.delivery.recipients, recipient{address: address, status: status, at: m.at})
	}
	if bounced != nil {
		m.labels = append(m.labels, labelBounced)
		s.emit(m.id, EmailBounced, object{
			"type": EmailBounced, "inboxId": m.inbox, "message": m.summary(), "recipients": bounced, "occurredAt": stamp(m.at),
		})
	}
	s.emitDelivery(m)
}

// DeliveryUpdate is what a recipient's server says of a sent message. It
// answers the snapshot's new version, 0 if nothing changed: a state that is
// final gives way to another final one only, and a complaint to none. reason is
// the server's text.
func (s *Server) DeliveryUpdate(messageID, address, status, reason string) (version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.wireID == messageID && m.delivery != nil && m.delivery.update(s.Now(), strings.ToLower(address), status, reason) {
			s.emitDelivery(m)
			return m.delivery.version
		}
	}
	return 0
}

func (d *snapshot) update(now time.Time, address, status, reason string) bool {
	i := slices.IndexFunc(d.recipients, func(r recipient) bool { return r.address == address })
	if i < 0 {
		return false
	}
	r := &d.recipients[i]
	if r.status == status || r.status == Complained || isFinal(r.status) && !isFinal(status) {
		return false
	}
	r.status, r.reason, r.at = status, reason, now
	d.version++
	d.last = now
	return true
}

func isFinal(status string) bool {
	return status != Queued && status != Accepted && status != Deferred
}
