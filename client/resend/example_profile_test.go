package resend_test

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/replywake/replywake/client/resend"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// Own addresses decide which recipient is the inbox.
func ExampleReceiving() {
	profile, err := resend.Receiving("agent@example.com")
	if err != nil {
		log.Fatal(err)
	}
	ev, err := profile(verify.Delivery{ID: "msg_1"}, []byte(`{"type":"email.received","created_at":"2026-02-22T23:41:12Z","data":{
		"email_id":"5676","from":"Acme <acme@example.net>","to":["boss@example.com","agent@example.com"],"subject":"Offer"}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ev.ID, ev.Kind, ev.Inbox, ev.Message)
	// Output: msg_1 received agent@example.com 5676
}

// Any other sender of Standard Webhooks needs one function: what event a
// verified body is. This one reads an imagined sender, Mailomat.
func Example_profileOfAnotherSender() {
	var profile events.Profile = func(d verify.Delivery, body []byte) (events.Event, error) {
		var push struct {
			Event   string `json:"event"`
			Mailbox string `json:"mailbox"`
			Mail    struct {
				ID     string `json:"id"`
				Thread string `json:"conversation"`
			} `json:"mail"`
		}
		if err := json.Unmarshal(body, &push); err != nil || push.Event == "" {
			// The text is logged: it must not quote the body, as err may.
			return events.Event{}, fmt.Errorf("mailomat: %w", events.ErrNotEvent)
		}
		ev := events.Event{
			ID:    d.ID, // stable over retries; the body has no better name
			Kind:  events.KindUnknown,
			Type:  push.Event,
			Inbox: push.Mailbox, Thread: push.Mail.Thread, Message: push.Mail.ID,
		}
		switch push.Event {
		case "mail.in":
			ev.Kind = events.KindReceived
		case "mail.returned":
			ev.Kind = events.KindBounce
		}
		return ev, nil // an unknown type is no error, or the sender would repeat it
	}

	// Sent and verified as in production; events.NewHandler takes the profile.
	secret := verify.Base64Secret("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	body := []byte(`{"event":"mail.in","mailbox":"agent@example.com","mail":{"id":"m1","conversation":"c1"}}`)
	headers, err := verify.Sign(secret, "msg_7", time.Now(), body)
	if err != nil {
		log.Fatal(err)
	}
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
	if err != nil {
		log.Fatal(err)
	}
	delivery, err := v.Verify(headers, body)
	if err != nil {
		log.Fatal(err)
	}
	ev, err := profile(delivery, body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ev.ID, ev.Kind, ev.Inbox, ev.Thread, ev.Message)
	// Output: msg_7 received agent@example.com c1 m1
}
