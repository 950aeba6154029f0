package goshen

import (
	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// classify goes by the provider's code and then by its "transient", because the
// status is not to be relied on: delivery_uncertain is documented as 502 and
// sent as 503.
func classify(e *client.Error, body []byte) {
	if verdict, known := codes[e.Code]; known {
		e.Class, e.Cause = verdict.class, verdict.cause
		return
	}
	if e.Class != client.ClassRequest {
		return
	}
	fields, _ := loose.Parse(body) // what is no object says nothing
	if transient, _ := fields.Object("error").Flag("transient"); transient {
		e.Class = client.ClassService
	}
}

type verdict struct {
	class client.Class
	cause error
}

// codes are those whose class the status or "transient" would not tell.
var codes = map[string]verdict{
	"unauthorized":       {client.ClassCredential, nil},
	"invalid_token":      {client.ClassCredential, nil},
	"forbidden":          {client.ClassCredential, nil},
	"access_denied":      {client.ClassCredential, nil},
	"insufficient_scope": {client.ClassCredential, nil},

	// 403s that say nothing about the key: another request would be allowed.
	codeQuarantined:              {client.ClassRequest, nil},
	"quarantine_review_required": {client.ClassRequest, nil},
	"malware_blocked":            {client.ClassRequest, nil},

	"invalid_request":      {client.ClassRequest, nil},
	"invalid_argument":     {client.ClassRequest, nil},
	"invalid_reply":        {client.ClassRequest, nil},
	codeThreadTooLarge:     {client.ClassRequest, nil},
	"not_found":            {client.ClassRequest, client.ErrNotFound},
	"inbox_retired":        {client.ClassRequest, client.ErrNotFound},
	"idempotency_conflict": {client.ClassRequest, client.ErrConflict},

	"rate_limited":  {client.ClassQuota, nil},
	"billing_limit": {client.ClassQuota, nil},

	"send_pending":       {client.ClassService, client.ErrInProgress},
	"delivery_uncertain": {client.ClassService, client.ErrUncertain},
}

const (
	codeQuarantined    = "message_quarantined"
	codeThreadTooLarge = "thread_too_large"
)
