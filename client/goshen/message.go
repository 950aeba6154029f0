package goshen

import (
	"slices"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
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
func decodeMessage(answer client.Answer, fields loose.Object) (Message, error) {
	m := Message{
		Message: client.Message{
			ID: fields.Text("messageId"), Inbox: fields.Text("inboxId"), Thread: fields.Text("threadId"),
			From: fields.Untrusted("from"), To: untrustedList(fields, "to"),
			Subject: fields.Untrusted("subject"), At: fields.Time("timestamp"),
		},
		Labels: texts(fields, "labels"), Preview: fields.Untrusted("preview"),
		Cc: untrustedList(fields, "cc"), ReplyTo: untrustedList(fields, "replyTo"),
		Text: fields.Untrusted("text"), HTML: fields.Untrusted("html"),
	}
	if m.ID == "" || m.Inbox == "" {
		return Message{}, answer.Bad("a message without an ID or an inbox")
	}
	if fields.Object("protection").Text("status") == LabelQuarantined && !m.Quarantined() {
		m.Labels = append(m.Labels, LabelQuarantined)
	}
	m.Outbound = m.isOutbound()
	m.Delivery = m.delivery(fields.Object("delivery"))
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
func (m Message) delivery(snapshot loose.Object) client.Delivery {
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

func decodeMessages(answer client.Answer, fields loose.Object) ([]Message, error) {
	rows, ok := fields.List("messages")
	if !ok {
		return nil, answer.Bad("no list of messages")
	}
	list := make([]Message, 0, len(rows))
	for _, row := range rows {
		m, err := decodeMessage(answer, row.Object()) // what is no object is refused for its fields
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}
