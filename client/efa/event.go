package efa

import (
	"fmt"
	"strings"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// Profile reads the event out of a verified push. Its body has the fields id,
// type, api_version and data, and its ID is the delivery's.
//
// A body that is no JSON object, has no ID or type, or another ID than its
// delivery wraps [events.ErrNotEvent]. An unknown type or api_version does not:
// it is [events.KindUnknown], so that a change at the provider stops nothing.
func Profile(d verify.Delivery, body []byte) (events.Event, error) {
	row, _ := loose.Parse(body) // nil if it is no object
	ev, err := decodeEvent(row, body)
	switch {
	case err != nil:
		return events.Event{}, err
	case ev.Type == "":
		return events.Event{}, fmt.Errorf("efa: %w: no type", events.ErrNotEvent)
	case ev.ID != d.ID:
		return events.Event{}, fmt.Errorf("efa: %w: body and delivery have different IDs", events.ErrNotEvent)
	}
	return ev, nil
}

// decodeEvent reads an event as both doors show it: its fields, and its bytes
// as they came. The pushed body lacks the sequence and the time of the polled
// row; all else, the ID above all, is decided here for both.
func decodeEvent(row loose.Object, raw []byte) (events.Event, error) {
	if row == nil {
		return events.Event{}, fmt.Errorf("efa: %w: not a JSON object", events.ErrNotEvent)
	}
	ev := events.Event{
		ID:         row.ID("id"),
		Type:       row.ID("type"),
		Kind:       events.KindUnknown,
		OccurredAt: row.Time("occurred_at"),
		Data:       client.NewRaw(raw),
	}
	if ev.ID == "" {
		return events.Event{}, fmt.Errorf("efa: %w: no ID", events.ErrNotEvent)
	}
	fill(&ev, row.Object("data"))
	return ev, nil
}

func fill(ev *events.Event, data loose.Object) {
	ev.Inbox = data.ID("inbox_id")
	ev.Thread = data.ID("thread_id")
	ev.Message = data.ID("message_id")
	ev.Approval = data.ID("approval_id")
	if known, ok := types[ev.Type]; ok {
		ev.Kind, ev.Decision, ev.Delivery = known.kind, known.decision, known.delivery
	}
	if ev.Type == "message.delivery_updated" {
		ev.Delivery = deliveryOf(data.Scalar("status")) // not documented
	}
}

// types are the declared ones. approval.approved and approval.invalidated are
// declared and not emitted today; the latter is no decision.
var types = map[string]struct {
	kind     events.Kind
	decision events.Decision
	delivery client.Delivery
}{
	"message.received":         {kind: events.KindReceived},
	"message.queued":           {kind: events.KindQueued},
	"message.accepted":         {kind: events.KindDelivery, delivery: client.DeliveryAccepted},
	"message.delivery_updated": {kind: events.KindDelivery},
	"approval.requested":       {kind: events.KindApproval, decision: events.DecisionRequested},
	"approval.approved":        {kind: events.KindApproval, decision: events.DecisionApproved},
	"approval.rejected":        {kind: events.KindApproval, decision: events.DecisionRejected},
	"approval.invalidated":     {kind: events.KindApproval},
	"webhook.test":             {kind: events.KindTest},
}

// deliveryOf reads a delivery state's word; an unknown one is unknown.
func deliveryOf(word string) client.Delivery {
	switch d := client.Delivery(strings.ToLower(word)); d {
	case client.DeliveryQueued, client.DeliveryAccepted, client.DeliveryDelivered, client.DeliveryDeferred,
		client.DeliveryBounced, client.DeliveryFailed, client.DeliveryRejected, client.DeliveryComplained:
		return d
	}
	return client.DeliveryUnknown
}
