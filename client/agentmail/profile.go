// Package agentmail reads the events that AgentMail pushes. It has the push
// door only: [Profile] for events.NewHandler, and [Read] for what a message's
// event carries. AgentMail signs with Svix, so its secret (whsec_…) goes into
// verify.Base64Secret.
//
// To another sender of Standard Webhooks a function of your own does the same;
// package client/resend has an example.
package agentmail

import (
	"fmt"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// Profile reads the event out of a verified push.
//
// Its ID is the body's event_id, which is signed with the body and the same at
// every attempt and on the WebSocket; where there is none, "svix:" and the
// header's. The message's ID is its Message-ID, with angle brackets.
//
// Mail that AgentMail itself calls spam, blocked or unauthenticated comes under
// types of its own, to those who ask for them. They are [events.KindUnknown]:
// kept, and no reason to wake anybody. To treat them as mail, wrap Profile.
//
// A body that is no JSON object, has no event_type, or tells of a message
// without naming it wraps [events.ErrNotEvent]. An unknown type does not.
func Profile(d verify.Delivery, body []byte) (events.Event, error) {
	fields, err := loose.Parse(body)
	if err != nil || fields == nil {
		return events.Event{}, fmt.Errorf("agentmail: %w: not a JSON object", events.ErrNotEvent)
	}
	ev := events.Event{
		ID: fields.Text("event_id"), Type: fields.Text("event_type"), Kind: events.KindUnknown,
		Data: client.NewRaw(body),
	}
	if ev.Type == "" {
		return events.Event{}, fmt.Errorf("agentmail: %w: no event_type", events.ErrNotEvent)
	}
	if !loose.IsID(ev.ID) {
		ev.ID = "svix:" + d.ID
	}
	known, isKnown := types[ev.Type]
	fill(&ev, about(fields))
	if !isKnown {
		return ev, nil
	}
	ev.Kind, ev.Delivery = known.kind, known.delivery
	if ev.Inbox == "" || ev.Message == "" {
		return events.Event{}, fmt.Errorf("agentmail: %w: no inbox or message", events.ErrNotEvent)
	}
	return ev, nil
}

// about is the one object that tells what the event is about.
func about(fields loose.Object) loose.Object {
	for _, name := range []string{"message", "send", "delivery", "bounce", "complaint", "reject"} {
		if inner := fields.Object(name); inner != nil {
			return inner
		}
	}
	return nil
}

func fill(ev *events.Event, about loose.Object) {
	ev.Inbox = about.Text("inbox_id")
	ev.Thread = about.Text("thread_id")
	ev.Message = about.Text("message_id")
	ev.OccurredAt = about.Time("timestamp")
}

var types = map[string]struct {
	kind     events.Kind
	delivery client.Delivery
}{
	"message.received":   {kind: events.KindReceived},
	"message.sent":       {events.KindDelivery, client.DeliveryAccepted},
	"message.delivered":  {events.KindDelivery, client.DeliveryDelivered},
	"message.rejected":   {events.KindDelivery, client.DeliveryRejected},
	"message.bounced":    {events.KindBounce, client.DeliveryBounced},
	"message.complained": {events.KindComplaint, client.DeliveryComplained},
}
