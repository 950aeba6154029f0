package goshen_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
)

func TestSendAndReplay(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	first := ask(t, c, "run-1")
	assert.False(t, first.Held)
	assert.NotEmpty(t, first.Thread)
	assert.Equal(t, first, ask(t, c, "run-1"))
	require.Len(t, srv.Sends(), 1)
	sent := srv.Sends()[0]
	assert.Equal(t, 1, sent.Replays)
	assert.Equal(t, hello.To, sent.To)
	assert.Equal(t, hello.Subject, sent.Subject)
	assert.Equal(t, hello.Text, sent.Text)
	assert.Equal(t, first.Message, sent.MessageID)
}

func TestReplyJoinsTheThread(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	asked := ask(t, c, "run-1")
	answer := srv.Inbound(goshentest.Mail{From: "supplier@example.com", InReplyTo: asked.Message, MessageID: "<odd/id?#%@example.com>", Subject: hello.Subject, Text: "12"})
	require.Equal(t, asked.Thread, answer.ThreadID)

	sealed := seal(t, c, client.Outgoing{To: []string{"supplier@example.com"}, Subject: "not sent", Text: "thanks", ReplyTo: answer.MessageID})
	outcome, err := c.Send(t.Context(), "run-2", sealed)
	require.NoError(t, err)
	assert.Equal(t, asked.Thread, outcome.Thread)
	assert.Equal(t, "Re: "+hello.Subject, srv.Messages()[2].Subject)
	path := srv.Requests()[1].Path
	assert.Equal(t, "/v1/inboxes/agent%40mail.goshen.invalid/messages/%3Codd%2Fid%3F%23%25%40example.com%3E/reply", path)
}

func TestSealIsDeterministicAndPlain(t *testing.T) {
	t.Parallel()
	_, c := setup(t, goshentest.Config{})
	assert.JSONEq(t, `{"to":["supplier@example.com"],"subject":"Quote Q-1 & more","text":"How much <is> it?"}`, string(seal(t, c, hello).Body))
	assert.Equal(t, seal(t, c, hello), seal(t, c, hello))
	assert.Contains(t, string(seal(t, c, hello).Body), "Q-1 & more")
	reply := hello
	reply.ReplyTo, reply.HTML = "<a@b>", "<p>"
	sealed := seal(t, c, reply)
	assert.Equal(t, `{"to":["supplier@example.com"],"text":"How much <is> it?","html":"<p>"}`, string(sealed.Body))
	assert.Equal(t, "<a@b>", sealed.ReplyTo)
}

func TestSealRefuses(t *testing.T) {
	t.Parallel()
	_, c := setup(t, goshentest.Config{})
	for name, change := range map[string]func(*client.Outgoing){
		"nobody":         func(o *client.Outgoing) { o.To = nil },
		"too many":       func(o *client.Outgoing) { o.To = make([]string, 51) },
		"display name":   func(o *client.Outgoing) { o.To = []string{"xyzzy <a@example.com>"} },
		"no address":     func(o *client.Outgoing) { o.To = []string{"xyzzy"} },
		"line break":     func(o *client.Outgoing) { o.Subject = "xyzzy\r\nBcc: a@example.com" },
		"long subject":   func(o *client.Outgoing) { o.Subject = strings.Repeat("x", 999) },
		"empty":          func(o *client.Outgoing) { o.Text = "" },
		"large":          func(o *client.Outgoing) { o.Text = strings.Repeat("x", 512<<10+1) },
		"not UTF-8":      func(o *client.Outgoing) { o.Text = "\xff" },
		"odd Message-ID": func(o *client.Outgoing) { o.ReplyTo = "<xyzzy\n@example.com>" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := hello
			change(&out)
			_, err := c.Seal(agent, out)
			require.Error(t, err)
			assert.Equal(t, client.ClassRequest, client.ClassOf(err))
			assert.NotContains(t, err.Error(), "xyzzy")
		})
	}
	_, err := c.Seal("not an address", hello)
	require.ErrorIs(t, err, client.ErrAddress)
}

func TestSendErrors(t *testing.T) {
	t.Parallel()
	t.Run("conflict", func(t *testing.T) {
		t.Parallel()
		srv := goshentest.NewServer(t, goshentest.Config{InMemory: true, Manual: true})
		c := clientOf(t, srv, goshen.Config{})
		ask(t, c, "k")
		other := hello
		other.Text = "another"
		_, err := c.Send(t.Context(), "k", seal(t, c, other))
		require.ErrorIs(t, err, client.ErrConflict)
		assert.False(t, client.IsRetryable(err))
		assert.Len(t, srv.Violations(), 1)
	})
	t.Run("in progress", func(t *testing.T) {
		t.Parallel()
		srv, c := setup(t, goshentest.Config{})
		var second error
		first := true
		srv.OnRequest(func(op goshentest.Op, at goshentest.Point, _ *http.Request) {
			if op == goshentest.OpSend && at == goshentest.AfterEffect && first {
				first = false
				_, second = c.Send(t.Context(), "k", seal(t, c, hello))
			}
		})
		ask(t, c, "k")
		require.ErrorIs(t, second, client.ErrInProgress)
		assert.True(t, client.IsRetryable(second))
		assert.Len(t, srv.Sends(), 1)
	})
	t.Run("uncertain until a person finds out", func(t *testing.T) {
		t.Parallel()
		srv, c := setup(t, goshentest.Config{})
		srv.Fault(goshentest.Fault{Op: goshentest.OpSend, Uncertain: true})
		for range 3 {
			_, err := c.Send(t.Context(), "k", seal(t, c, hello))
			require.ErrorIs(t, err, client.ErrUncertain)
			assert.Equal(t, client.ClassService, client.ClassOf(err))
		}
		assert.Equal(t, 3, srv.Count(goshentest.OpSend), "a POST is never repeated by the client")
		assert.Empty(t, srv.Messages())
		srv.Resolve("k", true)
		assert.Equal(t, srv.Sends()[0].ThreadID, ask(t, c, "k").Thread)
		assert.Len(t, srv.Messages(), 1)
	})
	t.Run("lost answer", func(t *testing.T) {
		t.Parallel()
		srv, c := setup(t, goshentest.Config{})
		srv.Fault(goshentest.Fault{Op: goshentest.OpSend, Drop: goshentest.DropAnswer})
		_, err := c.Send(t.Context(), "k", seal(t, c, hello))
		require.ErrorIs(t, err, client.ErrUnavailable)
		ask(t, c, "k")
		assert.Len(t, srv.Sends(), 1)
		assert.Len(t, srv.Messages(), 1)
	})
	t.Run("daily limit", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t, goshentest.Config{SendLimit: 1})
		ask(t, c, "k")
		_, err := c.Send(t.Context(), "l", seal(t, c, hello))
		assert.Equal(t, client.ClassQuota, client.ClassOf(err))
	})
	t.Run("reply to what is held or gone", func(t *testing.T) {
		t.Parallel()
		srv, c := setup(t, goshentest.Config{})
		held := srv.Inbound(goshentest.Mail{From: "spam@example.com", Quarantined: true})
		out := hello
		out.ReplyTo = held.MessageID
		_, err := c.Send(t.Context(), "k", seal(t, c, out))
		assert.Equal(t, client.ClassRequest, client.ClassOf(err), "the key is not at fault")
		out.ReplyTo = "<gone@example.com>"
		_, err = c.Send(t.Context(), "l", seal(t, c, out))
		require.ErrorIs(t, err, client.ErrNotFound)
	})
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		srv, c := setup(t, goshentest.Config{})
		for _, key := range []string{"", strings.Repeat("k", 201), "two words"} {
			_, err := c.Send(t.Context(), key, seal(t, c, hello))
			assert.Equal(t, client.ClassRequest, client.ClassOf(err))
		}
		assert.Zero(t, srv.Count(goshentest.OpAny))
	})
}
