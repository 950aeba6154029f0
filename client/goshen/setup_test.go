package goshen_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
)

const agent = "agent@mail.goshen.invalid"

// setup is a client of a whole fake account in memory, whose time stands
// still, and whose use is checked at the end.
func setup(t *testing.T, cfg goshentest.Config) (*goshentest.Server, *goshen.Client) {
	t.Helper()
	cfg.InMemory, cfg.Manual = true, true
	srv := goshentest.NewServer(t, cfg)
	t.Cleanup(func() { srv.Check(t) })
	return srv, clientOf(t, srv, goshen.Config{})
}

func clientOf(t *testing.T, srv *goshentest.Server, cfg goshen.Config) *goshen.Client {
	t.Helper()
	cfg.BaseURL, cfg.HTTPClient, cfg.Tries = srv.URL(), srv.Client(), 1
	if cfg.Key == "" {
		cfg.Key = srv.Key()
	}
	if cfg.Inboxes == nil {
		cfg.Inboxes = []string{srv.Inbox()}
	}
	c, err := goshen.New(cfg)
	require.NoError(t, err)
	return c
}

// answering is a client whose provider answers always the same.
func answering(t *testing.T, status int, body string) *goshen.Client {
	t.Helper()
	c, err := goshen.New(goshen.Config{
		Key: "bze_secret", Inboxes: []string{agent}, Tries: 1,
		HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})},
	})
	require.NoError(t, err)
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var hello = client.Outgoing{To: []string{"supplier@example.com"}, Subject: "Quote Q-1 & more", Text: "How much <is> it?"}

// ask sends hello and returns its outcome.
func ask(t *testing.T, c *goshen.Client, key string) client.Outcome {
	t.Helper()
	outcome, err := c.Send(t.Context(), key, seal(t, c, hello))
	require.NoError(t, err)
	return outcome
}

func seal(t *testing.T, c *goshen.Client, out client.Outgoing) client.Sealed {
	t.Helper()
	sealed, err := c.Seal(agent, out)
	require.NoError(t, err)
	return sealed
}

func messagesOf(t *testing.T, c *goshen.Client, inbox, thread string) []client.Message {
	t.Helper()
	var list []client.Message
	for m, err := range c.Messages(context.Background(), inbox, thread) {
		require.NoError(t, err)
		list = append(list, m)
	}
	return list
}
