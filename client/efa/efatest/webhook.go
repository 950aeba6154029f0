package efatest

import (
	"net/http"
	"slices"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Webhook is an endpoint of the project.
type Webhook struct {
	ID, URL       string
	Types         []string // subscribed; nil is every type
	Secret        string   // shown once by the API
	SecretVersion int
	Revision      int
	Disabled      bool
}

type endpoint struct {
	Webhook
	secret    string
	transport http.RoundTripper
	tested    time.Time // the last test event
}

func (e *endpoint) export() Webhook {
	out := e.Webhook
	out.Secret, out.Types = e.secret, slices.Clone(e.Types)
	return out
}

// wants says whether the fan-out gives the endpoint an event of a type. A
// webhook.test has one delivery of its own.
func (e *endpoint) wants(typ string) bool {
	return !e.Disabled && typ != WebhookTest && (e.Types == nil || slices.Contains(e.Types, typ))
}

// Webhook registers an endpoint at url for events that are still to come, of
// the given types or of all. As a person in the dashboard would, but the URL
// may be any.
func (s *Server) Webhook(url string, types ...string) Webhook {
	return s.register(url, s.pusher, types)
}

// WebhookHandler is Webhook for a handler that is called in memory.
func (s *Server) WebhookHandler(h http.Handler, types ...string) Webhook {
	return s.register("https://receiver.invalid/hooks/efa", InMemory(h), types)
}

func (s *Server) register(url string, t http.RoundTripper, types []string) Webhook {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &endpoint{
		Webhook:   Webhook{ID: s.newID("whk"), URL: url, Types: slices.Clone(types), SecretVersion: 1, Revision: 1},
		secret:    s.secret,
		transport: t,
	}
	if len(s.endpoints) > 0 {
		e.secret = s.newSecret()
	}
	s.endpoints = append(s.endpoints, e)
	s.startDispatcher()
	return e.export()
}

// Retarget sends an endpoint's deliveries, pending ones too, to another URL: a
// receiver that came back at another port.
func (s *Server) Retarget(webhookID, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(webhookID).URL = url
}

// Webhooks are the project's endpoints.
func (s *Server) Webhooks() []Webhook {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Webhook, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		out = append(out, e.export())
	}
	return out
}

// Rotate gives an endpoint a new secret, at once and without overlap. It
// returns the secret and how many deliveries that cancelled.
func (s *Server) Rotate(webhookID string) (secret string, canceled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.mustFind(webhookID)
	canceled = s.revise(e, actRotate)
	return e.secret, canceled
}

// Disable stops an endpoint and returns how many deliveries that cancelled.
func (s *Server) Disable(webhookID string) int { return s.reviseByID(webhookID, actDisable) }

// Enable starts it again; what was cancelled does not come back.
func (s *Server) Enable(webhookID string) int { return s.reviseByID(webhookID, actEnable) }

func (s *Server) reviseByID(webhookID, action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revise(s.mustFind(webhookID), action)
}

const (
	actRotate  = "rotate_secret"
	actDisable = "disable"
	actEnable  = "enable"
)

// revise carries out a control and cancels what is pending or running. It is
// called with mu held.
func (s *Server) revise(e *endpoint, action string) (canceled int) {
	e.Revision++
	switch action {
	case actRotate:
		e.secret = s.newSecret()
		e.SecretVersion++
	case actDisable:
		e.Disabled = true
	case actEnable:
		e.Disabled = false
	}
	for _, d := range s.deliveries {
		if d.endpoint == e && (d.state == StatePending || d.state == StateRunning) {
			d.state = StateCanceled
			canceled++
		}
	}
	return canceled
}

// find is called with mu held; nil if there is no such endpoint.
func (s *Server) find(webhookID string) *endpoint {
	for _, e := range s.endpoints {
		if e.ID == webhookID {
			return e
		}
	}
	return nil
}

func (s *Server) mustFind(webhookID string) *endpoint {
	e := s.find(webhookID)
	if e == nil {
		panic("efatest: no webhook " + webhookID)
	}
	return e
}

// sign is the signature of the documents: the secret's own characters are the
// key.
func sign(secret, id string, at time.Time, body []byte) string {
	wh, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if err != nil {
		panic("efatest: " + err.Error())
	}
	signature, err := wh.Sign(id, at, body)
	if err != nil {
		panic("efatest: " + err.Error())
	}
	return signature
}
