package events_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// The push door is an http.Handler. It answers after the Receiver's commit, and
// a delivery that comes again is a success too. The Receiver here is in memory;
// dedupe.Inbox is one on Postgres or SQLite.
func ExampleNewHandler() {
	secret := verify.RawSecret("0123456789abcdef0123456789abcdef")
	verifier, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
	if err != nil {
		fmt.Println(err)
		return
	}
	inbox := newMemory()
	profile := func(d verify.Delivery, body []byte) (events.Event, error) { // or efa.Profile
		return events.Event{ID: d.ID, Kind: events.KindReceived}, nil
	}
	handler, err := events.NewHandler(verifier, profile, inbox, events.HandlerConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	http.NewServeMux().Handle("/hooks/efa", handler)

	body := `{"id":"evt_1","type":"message.received"}`
	deliver := func() int {
		req := httptest.NewRequest(http.MethodPost, "/hooks/efa", strings.NewReader(body))
		req.Header, _ = verify.Sign(secret, "evt_1", time.Now(), []byte(body))
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		return answer.Code
	}
	fmt.Println(deliver(), deliver())
	fmt.Println(handler.Counts().Fresh, "fresh,", handler.Counts().Duplicate, "duplicate")
	// Output:
	// 204 204
	// 1 fresh, 1 duplicate
}
