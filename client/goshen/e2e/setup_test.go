// Package e2e_test is Goshen Email from end to end: push and list into one
// Inbox, and an engine behind it. It stands apart so that the tests of the
// client link no database.
package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
)

const agent = "agent@mail.goshen.invalid"

var hello = client.Outgoing{To: []string{"supplier@example.com"}, Subject: "Quote Q-1", Text: "How much is it?"}

// setup is a client of a whole fake account in memory, whose time stands
// still, and whose use is checked at the end.
func setup(t *testing.T, cfg goshentest.Config) (*goshentest.Server, *goshen.Client) {
	t.Helper()
	cfg.InMemory, cfg.Manual, cfg.PushTimeout = true, true, time.Minute
	srv := goshentest.NewServer(t, cfg)
	t.Cleanup(func() { srv.Check(t) })
	return srv, clientOf(t, srv)
}

func clientOf(t *testing.T, srv *goshentest.Server) *goshen.Client {
	t.Helper()
	c, err := goshen.New(goshen.Config{
		BaseURL: srv.URL(), HTTPClient: srv.Client(), Tries: 1, Key: srv.Key(), Inboxes: []string{srv.Inbox()},
	})
	require.NoError(t, err)
	return c
}

// ask sends hello and returns its outcome.
func ask(t *testing.T, c *goshen.Client, key string) client.Outcome {
	t.Helper()
	sealed, err := c.Seal(agent, hello)
	require.NoError(t, err)
	outcome, err := c.Send(t.Context(), key, sealed)
	require.NoError(t, err)
	return outcome
}
