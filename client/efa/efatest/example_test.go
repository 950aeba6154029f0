package efatest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/replywake/replywake/client/efa/efatest"
)

// An agent asks, a counterparty answers, and the answer arrives by both doors:
// at the webhook and in the cursor, under one event ID.
func Example() {
	srv, err := efatest.Start(efatest.Config{Manual: true})
	if err != nil {
		panic(err)
	}
	defer srv.Close()

	// The counterparty answers whatever it is asked.
	srv.OnSend(func(d efatest.Send) {
		srv.Inbound(efatest.Mail{From: d.To[0], ReplyTo: d.MessageID, Text: "12 EUR"})
	})

	// The receiver. A real one verifies the signature with srv.Secret().
	var pushed string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pushed = r.Header.Get("webhook-id")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	srv.Webhook(receiver.URL, efatest.MessageReceived)

	// The agent asks.
	project := srv.URL() + "/projects/" + srv.Project()
	fmt.Println(call(srv, "POST", project+"/inboxes/"+srv.Inbox()+"/messages",
		`{"to":["supplier@example.com"],"subject":"Quote Q-1","text":"How much?"}`)["result"])

	// One door: the webhook. A server that is not Manual delivers by itself.
	fmt.Println(srv.Drain(context.Background()), "attempt,", srv.Deliveries()[0].State)

	// The other: the cursor.
	page := call(srv, "GET", project+"/events?cursor=2", "")
	event := page["data"].([]any)[0].(map[string]any)
	fmt.Println(event["type"], event["id"] == pushed, page["has_more"])

	data := event["data"].(map[string]any)
	fmt.Println(call(srv, "GET", fmt.Sprintf("%s/inboxes/%s/messages/%s/body", project, data["inbox_id"], data["message_id"]), "")["text"])
	fmt.Println(len(srv.Sends()), "sent,", len(srv.Violations()), "violations")

	// Output:
	// queued
	// 1 attempt, succeeded
	// message.received true false
	// 12 EUR
	// 1 sent, 0 violations
}

// call is one request of the agent; its own client goes here.
func call(srv *efatest.Server, method, url, body string) map[string]any {
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
