package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"

	"github.com/replywake/replywake/verify"
)

// desk is the service that was there before: a help desk that opens a ticket
// for every mail.
type desk struct {
	mu      sync.Mutex
	tickets []ticket
	seen    map[string]bool // event IDs: providers deliver more than once
}

type ticket struct {
	Event   string `json:"event"`
	Inbox   string `json:"inbox_id"`
	Message string `json:"message_id"`
}

// newService is the help desk as an http.Handler. What the verifier takes is
// its New call and one line of the routes.
func newService(secret string, log *slog.Logger) (http.Handler, error) {
	verifier, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(secret)}, Logger: log})
	if err != nil {
		return nil, err
	}
	d := &desk{tickets: []ticket{}, seen: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /tickets", d.list)
	mux.Handle("POST /hooks/efa", verifier.Middleware(http.HandlerFunc(d.received)))
	return mux, nil
}

func (d *desk) list(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(d.tickets)
}

// received reads the body as it always did. It comes only here if it is
// genuine, and byte for byte as it was signed.
func (d *desk) received(w http.ResponseWriter, r *http.Request) {
	var event struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data ticket `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		w.WriteHeader(http.StatusInternalServerError) // at a 4xx the provider would give it up
		return
	}
	if event.Type == "message.received" {
		event.Data.Event = event.ID
		d.open(event.Data)
	}
	w.WriteHeader(http.StatusNoContent)
}

// open opens a ticket once. A verifier keeps no memory, so a genuine delivery
// that comes again is the service's to recognise. This one forgets when it
// ends; package dedupe has a database.
func (d *desk) open(t ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.seen[t.Event] {
		d.seen[t.Event] = true
		d.tickets = append(d.tickets, t)
	}
}
