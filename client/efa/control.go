package efa

import (
	"context"

	"github.com/replywake/replywake/client/internal/loose"
)

const opControl = "efa: control a webhook"

// Action changes an endpoint.
type Action string

// The actions on an endpoint. Each cancels the deliveries that are under way,
// for good: sweep the events afterwards.
const (
	// RotateSecret replaces the signing secret at once. Requests that are on
	// the wire are signed with the old one, so the receiver must take both
	// before: give the old one to verify.Config with an Until, and the new one
	// as soon as it is known.
	RotateSecret Action = "rotate_secret"
	Disable      Action = "disable"
	Enable       Action = "enable"
)

// Controlled is what an action did.
type Controlled struct {
	Secret        Secret // of RotateSecret: shown this once
	SecretVersion string // to be stored beside the secret
	Revision      int64  // the endpoint's now; 0 where the answer lacks it
	Canceled      int64  // deliveries that will not come; the sweep brings their events
}

// Control changes an endpoint that stands at the expected revision;
// [client.ErrRevision] if it does not. The provider takes it only from a person
// with the role of owner or admin, never from an API key.
//
// After [client.ErrUnavailable] or [client.ErrBadAnswer] it may have acted: read
// the revision from [Client.Webhooks]. A secret that was lost with the answer
// is replaced by rotating again.
func (c *Client) Control(ctx context.Context, webhook string, action Action, expected int64) (Controlled, error) {
	answer, err := c.post(ctx, opControl, struct {
		Action   Action `json:"action"`
		Expected int64  `json:"expected_revision"`
	}{action, expected}, "webhooks", webhook, "control")
	if err != nil {
		return Controlled{}, err
	}
	fields, err := loose.Decode(answer)
	if err != nil {
		return Controlled{}, err
	}
	if action == RotateSecret && fields.Scalar("secret") == "" {
		return Controlled{}, answer.Bad("a rotation without a secret")
	}
	return Controlled{
		Secret: newSecret(fields.Scalar("secret")), SecretVersion: fields.Scalar("secret_version"),
		Revision: fields.Number("revision"), Canceled: fields.Number("canceled_deliveries"),
	}, nil
}
