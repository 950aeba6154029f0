package efa

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

func (c *Client) get(ctx context.Context, op string, query url.Values, path ...string) (client.Answer, error) {
	return c.transport.Do(ctx, client.Request{
		Op: op, Method: http.MethodGet, Path: c.path(path), Query: query,
	})
}

func (c *Client) post(ctx context.Context, op string, body any, path ...string) (client.Answer, error) {
	r := client.Request{Op: op, Method: http.MethodPost, Path: c.path(path)}
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return client.Answer{}, &client.Error{Op: op, Class: client.ClassRequest, Cause: errUnencodable}
		}
		r.Body = encoded
	}
	return c.transport.Do(ctx, r)
}

var errUnencodable = errors.New("cannot be written as JSON")

func (c *Client) path(below []string) []string {
	return append([]string{"projects", c.project}, below...)
}

// classify goes by the provider's code, whatever the status it comes with: not
// every code's status is documented. Of a code that is not known, "retryable"
// may say that the request is not at fault.
func classify(e *client.Error, body []byte) {
	if verdict, known := codes[e.Code]; known {
		e.Class, e.Cause = verdict.class, verdict.cause
		return
	}
	if e.Class != client.ClassRequest {
		return
	}
	fields, _ := loose.Parse(body) // what is no object says nothing
	if retryable, _ := fields.Object("error").Flag("retryable"); retryable {
		e.Class = client.ClassService
	}
}

type verdict struct {
	class client.Class
	cause error
}

var codes = map[string]verdict{
	"invalid_request":      {client.ClassRequest, nil},
	"not_found":            {client.ClassRequest, client.ErrNotFound},
	"version_conflict":     {client.ClassRequest, client.ErrRevision},
	"idempotency_conflict": {client.ClassRequest, client.ErrConflict},
	"idempotency_expired":  {client.ClassRequest, client.ErrKeyExpired},
	"invalid_cursor":       {client.ClassRequest, events.ErrCursorInvalid},
	"cursor_expired":       {client.ClassRequest, events.ErrCursorExpired},
	"permission_denied":    {client.ClassCredential, nil},
	"unauthorized":         {client.ClassCredential, nil},
	"rate_limited":         {client.ClassQuota, nil},

	// The answer to a send whose twin is under way, and to any other trouble
	// that passes.
	"temporarily_unavailable": {client.ClassService, nil},
}
