// Package resend reads the events that Resend pushes. It has the push door
// only: [Profile] or [Receiving] for events.NewHandler, and [Read] for what an
// event says of its message. Resend signs with Svix, so its secret (whsec_…)
// goes into verify.Base64Secret; for 24 hours after a rotation it signs with
// both secrets.
//
// Resend has no threads: an event's Thread is empty, and a reply is matched by
// its sender alone, or by the headers of the message, which are read from
// Resend.
package resend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// Profile reads the event out of a verified push.
//
// The body names no event, so the ID is the signed header's, which is the same
// at every attempt. Message is email_id, under which Resend shows the message;
// the Message-ID is in Data.
//
// Inbox is an address in the form of [client.NormalizeAddress]: of a received
// message its first recipient under "to", which may be somebody else if the
// message went to several (see [Receiving]); of a sent one its sender. It is
// empty where there is no address.
//
// A body that is no JSON object, has no type, or tells of a message without
// naming it wraps [events.ErrNotEvent]. An unknown type does not.
func Profile(d verify.Delivery, body []byte) (events.Event, error) {
	return read(d, body, func([]string) int { return 0 })
}

// Receiving is [Profile] for who knows their own addresses. Of a received
// message, Inbox is the first recipient under "to", then "cc" and "bcc", that is
// among them, and is empty if none is: a message to somebody else belongs to no
// inbox of ours. An entry that begins with "@" is every address of a domain.
//
// One push is one event with one inbox, also where a message names two of them.
func Receiving(addresses ...string) (events.Profile, error) {
	own := map[string]bool{}
	for i, address := range addresses {
		local, isDomain := "", strings.HasPrefix(address, "@")
		if isDomain {
			local = "x"
		}
		normal, err := client.NormalizeAddress(local + address)
		if err != nil {
			return nil, fmt.Errorf("resend: address %d: %w", i+1, err)
		}
		own[strings.TrimPrefix(normal, local)] = true
	}
	if len(own) == 0 {
		return nil, errors.New("resend: no address")
	}
	mine := func(recipients []string) int {
		for i, r := range recipients {
			if own[r] || own[r[strings.LastIndexByte(r, '@'):]] {
				return i
			}
		}
		return -1
	}
	return func(d verify.Delivery, body []byte) (events.Event, error) { return read(d, body, mine) }, nil
}

// read makes the event. choose picks the inbox among the recipients of a
// received message.
func read(d verify.Delivery, body []byte, choose func([]string) int) (events.Event, error) {
	fields, err := loose.Parse(body)
	if err != nil || fields == nil {
		return events.Event{}, fmt.Errorf("resend: %w: not a JSON object", events.ErrNotEvent)
	}
	data := fields.Object("data")
	ev := events.Event{
		ID: d.ID, Type: fields.Text("type"), Kind: events.KindUnknown,
		Message: data.Text("email_id"), OccurredAt: fields.Time("created_at"),
		Data: client.NewRaw(body),
	}
	if ev.Type == "" {
		return events.Event{}, fmt.Errorf("resend: %w: no type", events.ErrNotEvent)
	}
	known, isKnown := types[ev.Type]
	if !isKnown {
		return ev, nil
	}
	if ev.Message == "" {
		return events.Event{}, fmt.Errorf("resend: %w: no email_id", events.ErrNotEvent)
	}
	ev.Kind, ev.Delivery = known.kind, known.delivery
	ev.Inbox = inboxOf(ev.Kind, data, choose)
	return ev, nil
}

func inboxOf(kind events.Kind, data loose.Object, choose func([]string) int) string {
	if kind != events.KindReceived {
		return first(normalized(addresses(data, "from")), 0)
	}
	var recipients []string
	for _, name := range []string{"to", "cc", "bcc"} {
		recipients = append(recipients, normalized(addresses(data, name))...)
	}
	return first(recipients, choose(recipients))
}

// addresses reads an address or an array of them, without display names.
func addresses(data loose.Object, name string) []string {
	var list []string
	for _, v := range data.Several(name) {
		if text := v.Text(); text != "" {
			list = append(list, loose.Bare(text))
		}
	}
	return list
}

// normalized leaves out what is no address.
func normalized(addresses []string) []string {
	var list []string
	for _, address := range addresses {
		if normal, err := client.NormalizeAddress(address); err == nil {
			list = append(list, normal)
		}
	}
	return list
}

func first(list []string, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return list[i]
}

var types = map[string]struct {
	kind     events.Kind
	delivery client.Delivery
}{
	"email.received":         {kind: events.KindReceived},
	"email.sent":             {events.KindDelivery, client.DeliveryAccepted},
	"email.delivered":        {events.KindDelivery, client.DeliveryDelivered},
	"email.delivery_delayed": {events.KindDelivery, client.DeliveryDeferred},
	"email.failed":           {events.KindDelivery, client.DeliveryFailed},
	"email.suppressed":       {events.KindDelivery, client.DeliveryRejected},
	"email.bounced":          {events.KindBounce, client.DeliveryBounced},
	"email.complained":       {events.KindComplaint, client.DeliveryComplained},
}
