package goshen

import (
	"encoding/json"
	"slices"

	"github.com/replywake/replywake/client"
)

// The labels that Goshen sets.
const (
	LabelReceived    = "received"
	LabelSent        = "sent"
	LabelUnread      = "unread"
	LabelTrash       = "trash"
	LabelQuarantined = "quarantined" // changed by a person at the dashboard only
	LabelBounced     = "bounced"     // on a sent message that bounced at once
)

func isSystemLabel(label string) bool {
	return slices.Contains([]string{
		LabelReceived, LabelSent, LabelUnread, LabelTrash, LabelQuarantined, LabelBounced,
	}, label)
}

func isLabel(label string) bool { return isName(label, 64) }

// Message is a message with what only Goshen has. What an answer lacks is
// empty: a listing has no Text, no Cc and no ReplyTo, and only [Client.Message]
// has HTML.
type Message struct {
	client.Message
	Labels  []string
	Preview client.Untrusted
	Cc      []client.Untrusted
	ReplyTo []client.Untrusted
	Text    client.Untrusted
	HTML    client.Untrusted // as the sender wrote it: nobody has made it safe to show
}

// Quarantined says whether the scanner holds the message back.
func (m Message) Quarantined() bool { return slices.Contains(m.Labels, LabelQuarantined) }

// decodeMessage reads a message as lists, threads and reads show it.
func decodeMessage(answer client.Answer, fields object) (Message, error) {
	m := Message{
		Message: client.Message{
			ID: fields.text("messageId"), Inbox: fields.text("inboxId"), Thread: fields.text("threadId"),
			From: fields.untrusted("from"), To: fields.untrustedList("to"),
			Subject: fields.untrusted("subject"), At: fields.time("timestamp"),
		},
		Labels: fields.texts("labels"), Preview: fields.untrusted("preview"),
		Cc: fields.untrustedList("cc"), ReplyTo: fields.untrustedList("replyTo"),
		Text: fields.untrusted("text"), HTML: fields.untrusted("html"),
	}
	if m.ID == "" || m.Inbox == "" {
		return Message{}, answer.Bad("a message without an ID or an inbox")
	}
	if fields.object("protection").text("status") == LabelQuarantined && !m.Quarantined() {
		m.Labels = append(m.Labels, LabelQuarantined)
	}
	m.Outbound = m.isOutbound()
	m.Delivery = m.delivery(fields.object("delivery"))
	return m, nil
}

// isOutbound goes by the labels. They can be taken away, and then the sender
// decides; not before, for a stranger can write any sender.
func (m Message) isOutbound() bool {
	switch {
	case slices.Contains(m.Labels, LabelSent):
		return true
	case slices.Contains(m.Labels, LabelReceived), m.Quarantined():
		return false
	}
	return m.From.Text() == m.Inbox
}

// delivery is the snapshot's state, or what the label says where the listing
// has no snapshot.
func (m Message) delivery(snapshot object) client.Delivery {
	switch {
	case !m.Outbound:
		return client.DeliveryUnknown
	case snapshot != nil:
		return stateOf(snapshot)
	case slices.Contains(m.Labels, LabelBounced):
		return client.DeliveryBounced
	}
	return client.DeliveryUnknown
}

func decodeMessages(answer client.Answer, fields object) ([]Message, error) {
	rows, ok := fields.list("messages")
	if !ok {
		return nil, answer.Bad("no list of messages")
	}
	list := make([]Message, 0, len(rows))
	for _, row := range rows {
		var fields object
		_ = json.Unmarshal(row, &fields) // what is no object is refused for its fields
		m, err := decodeMessage(answer, fields)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}
