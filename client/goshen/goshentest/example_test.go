package goshentest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/replywake/replywake/client/goshen/goshentest"
)

// An agent asks, a counterparty answers, and the answer arrives at the webhook
// and in the list of what is unread. The two have no ID in common: the header
// names the stored message, the list its Message-ID.
func Example() {
	srv, err := goshentest.Start(goshentest.Config{Manual: true})
	if err != nil {
		panic(err)
	}
	defer srv.Close()

	// The counterparty answers whatever it is asked.
	srv.OnSend(func(d goshentest.Send) {
		srv.Inbound(goshentest.Mail{From: d.To[0], InReplyTo: d.MessageID, Text: "12 EUR"})
	})

	// The receiver. A real one verifies the signature with srv.Secret().
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("pushed with an ID of", len(r.Header.Get("svix-id")), "characters")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	srv.FaultEvents(goshentest.EventFault{Type: goshentest.EmailDeliveryUpdated, DropPush: true})
	srv.Webhook(receiver.URL)

	// The agent asks.
	inbox := srv.URL() + "/inboxes/" + url.PathEscape(srv.Inbox())
	call(srv, "POST", inbox+"/messages/send", `{"to":["supplier@example.com"],"subject":"Quote Q-1","text":"How much?"}`)

	// One door: the webhook. A server that is not Manual delivers by itself.
	fmt.Println(srv.Drain(context.Background()), "attempt,", srv.Deliveries()[0].State)

	// The other: what is received and unread.
	list := call(srv, "GET", inbox+"/messages?labels=received&labels=unread", "")["messages"].([]any)
	fmt.Println(len(list), "unread:", list[0].(map[string]any)["preview"])
	fmt.Println(len(srv.Sends()), "sent,", len(srv.Violations()), "violations")

	// Output:
	// pushed with an ID of 36 characters
	// 1 attempt, delivered
	// 1 unread: 12 EUR
	// 1 sent, 0 violations
}

// call is one request of the agent; its own client goes here.
func call(srv *goshentest.Server, method, url, body string) map[string]any {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+srv.Key())
	req.Header.Set("Idempotency-Key", "wf-1-step-1")
	resp, err := srv.Client().Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		panic(err)
	}
	return answer
}
