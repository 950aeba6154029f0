package goshen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

func (c *Client) get(ctx context.Context, op string, query url.Values, path ...string) (client.Answer, error) {
	return c.transport.Do(ctx, client.Request{Op: op, Method: http.MethodGet, Path: path, Query: query})
}

// getObject reads an answer that must be an object.
func (c *Client) getObject(ctx context.Context, op string, query url.Values, path ...string) (loose.Object, client.Answer, error) {
	answer, err := c.get(ctx, op, query, path...)
	if err != nil {
		return nil, answer, err
	}
	fields, err := loose.Decode(answer)
	if err != nil {
		return nil, answer, err
	}
	if fields == nil {
		return nil, answer, answer.Bad("no object")
	}
	return fields, answer, nil
}

var errUnencodable = errors.New("cannot be written as JSON")

// encode writes the same bytes for the same value, and leaves <, > and & as
// they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, errUnencodable
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func refuse(op string, cause error) error {
	return &client.Error{Op: op, Class: client.ClassRequest, Cause: cause}
}
