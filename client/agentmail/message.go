package agentmail

import (
	"encoding/json"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// Read is the message that an event of kind received carries, with its content;
// false if it carries none. A push over 1 MB comes without content: then the
// body is not available here, and is read from AgentMail by the message's ID.
func Read(ev events.Event) (client.Message, client.Body, bool) {
	var fields object
	if json.Unmarshal(ev.Data.Bytes(), &fields) != nil {
		return client.Message{}, client.Body{}, false
	}
	m := fields.object("message")
	if ev.Kind != events.KindReceived || m == nil {
		return client.Message{}, client.Body{}, false
	}
	_, hasText := m["text"]
	_, hasHTML := m["html"]
	return client.Message{
			ID: ev.Message, Inbox: ev.Inbox, Thread: ev.Thread, At: ev.OccurredAt,
			From: m.sender(), To: m.addresses("to"), Subject: client.NewUntrusted(m.text("subject")),
		}, client.Body{
			Text: client.NewUntrusted(m.text("text")), Available: hasText || hasHTML,
		}, true
}

// sender reads "from" and "from_", in which the documents differ, and takes one
// address only: of several none can stand for the message.
func (o object) sender() client.Untrusted {
	list := append(o.addresses("from"), o.addresses("from_")...)
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
