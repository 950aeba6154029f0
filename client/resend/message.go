package resend

import (
	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

// Message is what an event says of its message. A push never has the content:
// it is read from Resend by ID.
type Message struct {
	client.Message
	MessageID string // as in the mail's header
}

// Read is the message that an event is about; false if it says nothing of one.
func Read(ev events.Event) (Message, bool) {
	fields, err := loose.Parse(ev.Data.Bytes())
	if err != nil || ev.Message == "" {
		return Message{}, false
	}
	data := fields.Object("data")
	m := Message{
		Message: client.Message{
			ID: ev.Message, Inbox: ev.Inbox, At: data.Time("created_at"),
			Outbound: ev.Kind != events.KindReceived, Delivery: ev.Delivery,
			Subject: data.Untrusted("subject"),
		},
		MessageID: data.Text("message_id"),
	}
	if from := addresses(data, "from"); len(from) == 1 { // of several none can stand for the message
		m.From = client.NewUntrusted(from[0])
	}
	for _, address := range addresses(data, "to") {
		m.To = append(m.To, client.NewUntrusted(address))
	}
	return m, true
}
