package goshentest

import (
	"net/http"
	"slices"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type endpoint struct {
	url       string
	transport http.RoundTripper
}

// The states of a delivery. There is no other: it is tried for ever.
const (
	StatePending   = "pending"
	StateRunning   = "running"
	StateDelivered = "delivered"
)

// Attempt is one POST to the webhook.
type Attempt struct {
	At     time.Time
	Status int // 0 if no answer came in time
}

// Delivery is one event on its way to the webhook.
type Delivery struct {
	ID       string // the header svix-id
	Type     string
	Body     []byte
	State    string
	Next     time.Time // of the next attempt
	Attempts []Attempt
}

type delivery struct {
	id, typ  string
	body     []byte
	state    string
	due      time.Time
	attempts []Attempt
}

// Webhook sends the events of all inboxes to url from now on, those that are
// pending too: a receiver that came back at another port calls it again.
func (s *Server) Webhook(url string) { s.register(&endpoint{url, s.pusher}) }

// WebhookHandler is Webhook for a handler that is called in memory.
func (s *Server) WebhookHandler(h http.Handler) {
	s.register(&endpoint{"https://receiver.invalid/hooks/goshen", InMemory(h)})
}

func (s *Server) register(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = e
	s.startDispatcher()
	s.poke()
}

// Deliveries are all deliveries in the order in which they were made.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Delivery, len(s.deliveries))
	for i, d := range s.deliveries {
		out[i] = Delivery{d.id, d.typ, d.body, d.state, d.due, slices.Clone(d.attempts)}
	}
	return out
}

// Redeliver pushes an event once more, whatever became of it: the same body
// under the same ID, signed anew.
func (s *Server) Redeliver(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.deliveries {
		if d.id == id {
			d.state, d.due = StatePending, s.Now()
			break
		}
	}
	s.poke()
}

// sign is the signature of the documents, made by the reference library.
func sign(secret, id string, at time.Time, body []byte) string {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		panic("goshentest: " + err.Error())
	}
	signature, err := wh.Sign(id, at, body)
	if err != nil {
		panic("goshentest: " + err.Error())
	}
	return signature
}
