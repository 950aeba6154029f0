package agentmail

import (
	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

// Read is the message that an event of kind received carries, with its content;
// false if it carries none. A push over 1 MB comes without content: then the
// body is not available here, and is read from AgentMail by the message's ID.
func Read(ev events.Event) (client.Message, client.Body, bool) {
	fields, err := loose.Parse(ev.Data.Bytes())
	if err != nil {
		return client.Message{}, client.Body{}, false
	}
	m := fields.Object("message")
	if ev.Kind != events.KindReceived || m == nil {
		return client.Message{}, client.Body{}, false
	}
	message := client.Message{
		ID: ev.Message, Inbox: ev.Inbox, Thread: ev.Thread, At: ev.OccurredAt,
		From: sender(m), To: addresses(m, "to"), Subject: m.Untrusted("subject"),
	}
	body := client.Body{
		Text: m.Untrusted("text"), Available: m.Get("text") != nil || m.Get("html") != nil,
	}
	return message, body, true
}

// sender reads "from" and "from_", in which the documents differ, and takes one
// address only: of several none can stand for the message.
func sender(m loose.Object) client.Untrusted {
	list := append(addresses(m, "from"), addresses(m, "from_")...)
	for _, a := range list[min(1, len(list)):] {
		if a.Text() != list[0].Text() {
			return client.Untrusted{}
		}
	}
	if len(list) == 0 {
		return client.Untrusted{}
	}
	return list[0]
}

func addresses(m loose.Object, name string) []client.Untrusted {
	return m.Addresses(name, loose.Value.Text)
}
