package goshentest

import "fmt"

// The types of events.
const (
	EmailReceived        = "email.received"
	EmailDeliveryUpdated = "email.delivery_updated"
	EmailBounced         = "email.bounced"
)

const maxEventText = 64 << 10

// emitReceived is called with mu held.
func (s *Server) emitReceived(m *message) {
	o := m.summary()
	o["text"], o["bodyTruncated"], o["bodiesOmitted"] = cut(m.text, maxEventText), len(m.text) > maxEventText, false
	s.emit(m.id, EmailReceived, object{
		"type": EmailReceived, "inboxId": m.inbox, "occurredAt": stamp(m.at), "message": o,
	})
}

// emitDelivery is called with mu held.
func (s *Server) emitDelivery(m *message) {
	s.emit(fmt.Sprintf("delivery:%s:%d", m.id, m.delivery.version), EmailDeliveryUpdated, object{
		"type": EmailDeliveryUpdated, "inboxId": m.inbox, "occurredAt": stamp(m.delivery.last),
		"message":  object{"messageId": m.wireID, "threadId": m.thread, "inboxId": m.inbox},
		"delivery": m.delivery.json(),
	})
}

// Emit sends the webhook an event of any shape, such as a type that is still
// to be invented. id becomes the header svix-id.
func (s *Server) Emit(id, typ string, body map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(id, typ, body)
}

// emit puts an event into the outbox; without a webhook it is settled at once,
// as in the real one. It is called with mu held.
func (s *Server) emit(id, typ string, body object) {
	f := s.drawEvent(typ)
	if s.webhook == nil || f.DropPush {
		return
	}
	for range f.Copies + 1 {
		s.deliveries = append(s.deliveries, &delivery{
			id: id, typ: typ, body: ok(body).body, state: StatePending, due: s.Now().Add(f.DelayPush),
		})
	}
	s.poke()
}
