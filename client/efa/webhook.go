package efa

import (
	"context"
	"net/http"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// Webhook is one endpoint of the project as its list shows it. Only revision
// and secret_version are documented.
type Webhook struct {
	ID            string
	URL           string
	Status        string   // active or disabled
	Types         []string // the event types it is subscribed to (event_types)
	Revision      int64    // what the next change must expect
	SecretVersion string   // names the secret that signs now
}

const (
	opWebhooks   = "efa: list webhooks"
	opTest       = "efa: test a webhook"
	opDeliveries = "efa: list deliveries"
)

// Webhooks lists the project's endpoints. A listing that says has_more is not
// documented; of one that does, this is the first page.
func (c *Client) Webhooks(ctx context.Context) ([]Webhook, error) {
	answer, err := c.get(ctx, opWebhooks, nil, "webhooks")
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows(answer)
	if err != nil {
		return nil, err
	}
	list := make([]Webhook, len(rows))
	for i, row := range rows {
		list[i] = Webhook{
			ID: row.ID("id"), URL: row.Scalar("url"), Status: row.Scalar("status"),
			Types: typesOf(row), Revision: row.Number("revision"),
			SecretVersion: row.Scalar("secret_version"),
		}
	}
	return list, nil
}

func typesOf(webhook loose.Object) []string {
	rows, _ := webhook.List("event_types")
	list := make([]string, len(rows))
	for i, row := range rows {
		list[i] = row.Scalar()
	}
	return list
}

func decodeRows(answer client.Answer) ([]loose.Object, error) {
	fields, err := loose.Decode(answer)
	if err != nil {
		return nil, err
	}
	rows, ok := fields.List("data")
	if !ok {
		return nil, answer.Bad("no list of data")
	}
	list := make([]loose.Object, len(rows))
	for i, row := range rows {
		if list[i] = row.Object(); list[i] == nil {
			return nil, answer.Bad("a row that is no object")
		}
	}
	return list, nil
}

// Vector is what a webhook test answers: a request as the provider computed
// it, to check a verifier against. The delivery that really arrives is built
// and signed again; never compare the two.
type Vector struct {
	EventID    string
	DeliveryID string
	Egress     string // whether the delivery can leave, in the provider's words
	Body       []byte
	Timestamp  string
	Signature  string
}

// Header is the vector's request header, for verify.Verifier.Verify with Body.
func (v Vector) Header() http.Header {
	h := http.Header{}
	h.Set("webhook-id", v.EventID)
	h.Set("webhook-timestamp", v.Timestamp)
	h.Set("webhook-signature", v.Signature)
	return h
}

// TestWebhook makes the provider send one webhook.test event to this endpoint,
// at most once a minute ([client.ClassQuota]). It needs the scope
// webhooks:manage.
func (c *Client) TestWebhook(ctx context.Context, webhook string) (Vector, error) {
	answer, err := c.post(ctx, opTest, nil, "webhooks", webhook, "test")
	if err != nil {
		return Vector{}, err
	}
	fields, err := loose.Decode(answer)
	if err != nil {
		return Vector{}, err
	}
	v := Vector{
		EventID: fields.ID("event_id"), DeliveryID: fields.ID("delivery_id"),
		Egress: fields.Scalar("egress"), Body: []byte(fields.Scalar("body")),
		Timestamp: fields.Scalar("timestamp"), Signature: fields.Scalar("signature"),
	}
	if v.EventID == "" {
		return Vector{}, answer.Bad("a test without an event")
	}
	return v, nil
}

// WebhookDelivery is one event on its way to an endpoint.
type WebhookDelivery struct {
	ID       string
	EventID  string
	State    string    // pending, running, succeeded, exhausted or canceled
	Next     time.Time // when it is tried next, or was last (next_attempt_at, which is not documented); zero where it is missing
	Attempts []Attempt
}

// Attempt is one try to deliver.
type Attempt struct {
	Number  int64
	At      time.Time // attempted_at, which is not documented; zero where it is missing
	Outcome string    // accepted, rejected or held_egress_unavailable
	Status  int64     // the endpoint's HTTP status; 0 if it did not answer
	Excerpt client.Untrusted
}

// Deliveries lists an endpoint's last deliveries, at most 25, by the time of
// their next attempt, latest first. It needs the scope webhooks:read.
func (c *Client) Deliveries(ctx context.Context, webhook string) ([]WebhookDelivery, error) {
	answer, err := c.get(ctx, opDeliveries, nil, "webhooks", webhook, "deliveries")
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows(answer)
	if err != nil {
		return nil, err
	}
	list := make([]WebhookDelivery, len(rows))
	for i, row := range rows {
		list[i] = WebhookDelivery{
			ID: row.ID("id"), EventID: row.ID("event_id"), State: row.Scalar("state"),
			Next: row.Time("next_attempt_at"), Attempts: attemptsOf(row),
		}
	}
	return list, nil
}

func attemptsOf(delivery loose.Object) []Attempt {
	rows, _ := delivery.List("attempts")
	list := make([]Attempt, len(rows))
	for i, raw := range rows {
		row := raw.Object() // another type leaves the attempt empty
		list[i] = Attempt{
			Number: row.Number("attempt_number"), At: row.Time("attempted_at", "timestamp", "at"),
			Outcome: row.Scalar("outcome"), Status: row.Number("http_status"),
			Excerpt: untrusted(row, "safe_response_excerpt"),
		}
	}
	return list
}
