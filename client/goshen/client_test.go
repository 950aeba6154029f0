package goshen_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
)

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := goshen.New(goshen.Config{
		BaseURL: "ftp://example.com", Inboxes: []string{"Agent@example.com", "b@example.com", "b@example.com"}, Handled: "unread",
	})
	require.Error(t, err)
	for _, fault := range []string{"base URL", "key is missing", "inbox 1 is", "inbox 3 stands there twice", "need a Stream", "Goshen's own"} {
		assert.ErrorContains(t, err, fault)
	}
	assert.NotContains(t, err.Error(), "Agent@")

	_, err = goshen.New(goshen.Config{Key: "k", Handled: "a\nb"})
	require.ErrorContains(t, err, "no inbox")
	require.ErrorContains(t, err, "not a label")
}

func TestStream(t *testing.T) {
	t.Parallel()
	_, c := setup(t, goshentest.Config{})
	stream := c.Stream()
	assert.Equal(t, "goshen:"+agent, stream.Name)
	assert.Equal(t, "http://goshen.invalid/v1", stream.Origin)
	assert.Empty(t, stream.Environment)
	assert.NotEmpty(t, stream.Credential)

	c, err := goshen.New(goshen.Config{Key: "k", Inboxes: []string{"a@example.com", "b@example.com"}, Stream: "desk"})
	require.NoError(t, err)
	assert.Equal(t, "desk", c.Stream().Name)
	assert.Equal(t, goshen.DefaultBaseURL, c.Stream().Origin)
}

func TestKeyPrintsNowhere(t *testing.T) {
	t.Parallel()
	cfg := goshen.Config{Key: "bze_secret", Inboxes: []string{agent}}
	c, err := goshen.New(cfg)
	require.NoError(t, err)
	for _, v := range []any{cfg, &cfg, c, *c, c.Source()} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			assert.NotContains(t, fmt.Sprintf(verb, v), "bze_secret")
			assert.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", "bze_secret"))
		}
	}
}

// What each code means, whatever the status it comes with.
func TestErrorClasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		code   string
		class  client.Class
		cause  error
	}{
		"unauthorized":            {401, "unauthorized", client.ClassCredential, nil},
		"scope":                   {403, "insufficient_scope", client.ClassCredential, nil},
		"quarantined":             {403, "message_quarantined", client.ClassRequest, nil},
		"not found":               {404, "not_found", client.ClassRequest, client.ErrNotFound},
		"retired":                 {410, "inbox_retired", client.ClassRequest, client.ErrNotFound},
		"conflict":                {409, "idempotency_conflict", client.ClassRequest, client.ErrConflict},
		"pending":                 {409, "send_pending", client.ClassService, client.ErrInProgress},
		"uncertain, documented":   {502, "delivery_uncertain", client.ClassService, client.ErrUncertain},
		"uncertain, as sent":      {503, "delivery_uncertain", client.ClassService, client.ErrUncertain},
		"billing":                 {402, "billing_limit", client.ClassQuota, nil},
		"rate":                    {429, "rate_limited", client.ClassQuota, nil},
		"rate by another status":  {422, "rate_limited", client.ClassQuota, nil},
		"invalid":                 {422, "invalid_argument", client.ClassRequest, nil},
		"busy":                    {503, "delivery_busy", client.ClassService, nil},
		"new code":                {422, "teapot", client.ClassRequest, nil},
		"new code that may clear": {422, "teapot_transient", client.ClassService, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transient := tc.code == "teapot_transient"
			c := answering(t, tc.status, fmt.Sprintf(`{"error":{"code":%q,"message":"about victim@example.com","transient":%t}}`, tc.code, transient))
			_, err := c.Message(t.Context(), agent, "<id@example.com>")
			e := new(client.Error)
			require.ErrorAs(t, err, &e)
			assert.Equal(t, tc.class, e.Class)
			assert.Equal(t, tc.code, e.Code)
			assert.Equal(t, tc.status, e.Status)
			if tc.cause != nil {
				assert.ErrorIs(t, err, tc.cause)
			} else {
				assert.NoError(t, e.Cause)
			}
			assert.NotContains(t, err.Error(), "example.com")
			assert.NotContains(t, err.Error(), "goshen.invalid")
		})
	}
}

// An answer that is not the documented one is an error, and never "nothing".
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `null`, `[]`, `"x"`, `{}`, `{"messages":null}`, `{"messages":{}}`, `{"messages":[null]}`, `{"messages":[{}]}`,
		`{"messages":[{"messageId":"<a@b>"}]}`, `{"Messages":[]}`, `{"threads":[{}]}`, `{"threads":7}`,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			c := answering(t, 200, body)
			_, err := c.List(t.Context(), agent, goshen.Query{})
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Search(t.Context(), agent, "x", goshen.Query{})
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Source().Page(t.Context(), 0)
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Message(t.Context(), agent, "<a@b>")
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Threads(t.Context(), agent, goshen.Query{})
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Thread(t.Context(), agent, "t")
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Send(t.Context(), "k", client.Sealed{Inbox: agent, Body: []byte(`{}`)})
			require.ErrorIs(t, err, client.ErrBadAnswer)
		})
	}
}

// A stranger's words and addresses print as lengths, nested or not.
func TestStrangersTextIsHidden(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	got := srv.Inbound(goshentest.Mail{From: "xyzzy@example.com", ReplyTo: []string{"xyzzy@example.com"}, Subject: "xyzzy", Text: "xyzzy"})
	m, err := c.Message(t.Context(), agent, got.MessageID)
	require.NoError(t, err)
	encoded, err := json.Marshal(m)
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), "xyzzy")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", m, m, m), "xyzzy")
}
