package goshen

import (
	"fmt"
	"strconv"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// Profile reads the event out of a verified push. Goshen names an event in a
// header only, and lists know nothing of that name, so the ID is built from
// fields that are signed:
//
//	received:INBOX:MESSAGE           email.received, and the message in a list
//	delivery:INBOX:MESSAGE:VERSION   email.delivery_updated
//	bounce:INBOX:MESSAGE             email.bounced
//	other:HEADER-ID                  any other type
//
// A message that was quarantined is one event, whether its release is announced
// or found in the list.
//
// A delivery's event is a snapshot of all recipients; Version orders those of a
// message, and they arrive in any order. Delivery is the worst failure, or the
// state of the recipient that is least far. A bounce that is known when the
// message is sent comes as email.bounced and in the snapshot of version 1: both
// events have that version.
//
// A body that is no JSON object, has no type, or is of a type above without
// what its ID is made of wraps [events.ErrNotEvent]. An unknown type does not:
// it is [events.KindUnknown], so that a change at the provider stops nothing.
func Profile(d verify.Delivery, body []byte) (events.Event, error) {
	fields, err := loose.Parse(body)
	if err != nil || fields == nil {
		return events.Event{}, fmt.Errorf("goshen: %w: not a JSON object", events.ErrNotEvent)
	}
	message := fields.Object("message")
	ev := events.Event{
		Kind:       events.KindUnknown,
		Type:       fields.Text("type"),
		Inbox:      fields.Text("inboxId"),
		Thread:     message.Text("threadId"),
		Message:    message.Text("messageId"),
		OccurredAt: fields.Time("occurredAt"),
		Data:       client.NewRaw(body),
	}
	return identify(ev, d, fields.Object("delivery"))
}

// identify gives ev what depends on its type, the ID above all.
func identify(ev events.Event, d verify.Delivery, snapshot loose.Object) (events.Event, error) {
	version := number(snapshot, "version")
	switch ev.Type {
	case "":
		return events.Event{}, fmt.Errorf("goshen: %w: no type", events.ErrNotEvent)
	case typeReceived:
		ev.Kind, ev.ID = events.KindReceived, eventID(idReceived, ev.Inbox, ev.Message)
	case typeBounced:
		ev.Kind, ev.ID = events.KindBounce, eventID(idBounce, ev.Inbox, ev.Message)
		ev.Delivery, ev.Version = client.DeliveryBounced, 1
	case typeDelivery:
		ev.Kind, ev.ID = events.KindDelivery, eventID(idDelivery, ev.Inbox, ev.Message, strconv.FormatInt(version, 10))
		ev.Delivery, ev.Version = stateOf(snapshot), version
	default:
		ev.ID = eventID(idOther, d.ID)
		return ev, nil
	}
	if ev.Inbox == "" || ev.Message == "" || ev.Kind == events.KindDelivery && version == 0 {
		return events.Event{}, fmt.Errorf("goshen: %w: no inbox, message or version", events.ErrNotEvent)
	}
	return ev, nil
}

const (
	typeReceived = "email.received"
	typeDelivery = "email.delivery_updated"
	typeBounced  = "email.bounced"
)

// eventOf is the event that a message in a list stands for.
func eventOf(m Message, row []byte) events.Event {
	return events.Event{
		ID: eventID(idReceived, m.Inbox, m.ID), Kind: events.KindReceived, Type: typeReceived,
		Inbox: m.Inbox, Thread: m.Thread, Message: m.ID, OccurredAt: m.At,
		Data: client.NewRaw(row),
	}
}
