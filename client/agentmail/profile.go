// Package agentmail reads the events that AgentMail pushes. It has the push
// door only: [Profile] for events.NewHandler, and [Read] for what a message's
// event carries. AgentMail signs with Svix, so its secret (whsec_…) goes into
// verify.Base64Secret.
//
// To another sender of Standard Webhooks a function of your own does the same;
// package client/resend has an example.
package agentmail

import (
	"encoding/json"
	"fmt"

	"github.com/replywake/replywake/client"
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
	var fields object
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return events.Event{}, fmt.Errorf("agentmail: %w: not a JSON object", events.ErrNotEvent)
	}
	ev := events.Event{
		ID: fields.text("event_id"), Type: fields.text("event_type"), Kind: events.KindUnknown,
		Data: client.NewRaw(body),
	}
	if ev.Type == "" {
		return events.Event{}, fmt.Errorf("agentmail: %w: no event_type", events.ErrNotEvent)
	}
	if !isID(ev.ID) {
		ev.ID = "svix:" + d.ID
	}
	known, isKnown := types[ev.Type]
	fill(&ev, fields.about())
	if !isKnown {
		return ev, nil
	}
	ev.Kind, ev.Delivery = known.kind, known.delivery
	if ev.Inbox == "" || ev.Message == "" {
		return events.Event{}, fmt.Errorf("agentmail: %w: no inbox or message", events.ErrNotEvent)
	}
	return ev, nil
}

func fill(ev *events.Event, about object) {
	ev.Inbox = about.text("inbox_id")
	ev.Thread = about.text("thread_id")
	ev.Message = about.text("message_id")
	ev.OccurredAt = about.time("timestamp")
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
