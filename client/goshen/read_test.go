package goshen_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/events"
)

func TestThreadOldestFirst(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	asked := ask(t, c, "k")
	srv.Advance(time.Minute)
	answer := srv.Inbound(goshentest.Mail{From: "Supplier@Example.com", InReplyTo: asked.Message, Subject: "Re: Quote", Text: "12 EUR", HTML: "<p>12"})

	list := messagesOf(t, c, agent, asked.Thread)
	require.Len(t, list, 2)
	assert.Equal(t, asked.Message, list[0].ID)
	assert.True(t, list[0].Outbound)
	assert.Equal(t, agent, list[0].From.Text())
	assert.Equal(t, "supplier@example.com", list[0].To[0].Text())
	assert.Equal(t, answer.MessageID, list[1].ID)
	assert.False(t, list[1].Outbound)
	assert.Equal(t, "supplier@example.com", list[1].From.Text())
	assert.Equal(t, "Re: Quote", list[1].Subject.Text())
	assert.Equal(t, agent, list[1].Inbox)
	assert.Equal(t, asked.Thread, list[1].Thread)
	assert.WithinDuration(t, srv.Now(), list[1].At, time.Second)

	body, err := c.Body(t.Context(), agent, list[1])
	require.NoError(t, err)
	assert.True(t, body.Available)
	assert.Equal(t, "12 EUR", body.Text.Text())
	assert.Empty(t, body.HTML.Text(), "nobody made it safe")

	full, err := c.Message(t.Context(), agent, answer.MessageID)
	require.NoError(t, err)
	assert.Equal(t, "<p>12", full.HTML.Text())
}

func TestMessagesErrors(t *testing.T) {
	t.Parallel()
	_, c := setup(t, goshentest.Config{})
	n := 0
	for m, err := range c.Messages(t.Context(), agent, "no-such-thread") {
		n++
		require.ErrorIs(t, err, client.ErrNotFound)
		assert.Empty(t, m.ID)
	}
	assert.Equal(t, 1, n)
	_, err := c.Body(t.Context(), agent, client.Message{ID: "<gone@example.com>"})
	require.ErrorIs(t, err, client.ErrNotFound)
}

// A thread past the provider's 500 is collected from the inbox's list, also
// while mail goes on coming.
func TestLongThread(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	first := srv.Inbound(goshentest.Mail{From: "a@example.com", Text: "0"})
	for i := 1; i <= 550; i++ {
		srv.Inbound(goshentest.Mail{From: "a@example.com", InReplyTo: first.MessageID, Text: fmt.Sprint(i)})
		if i%50 == 0 {
			srv.Inbound(goshentest.Mail{From: "b@example.com", Text: "another thread"})
		}
	}
	_, err := c.Thread(t.Context(), agent, first.ThreadID)
	assert.Equal(t, client.ClassRequest, client.ClassOf(err))

	n := 0
	for m, err := range c.Messages(t.Context(), agent, first.ThreadID) {
		require.NoError(t, err)
		if n == 0 {
			assert.Equal(t, first.MessageID, m.ID)
			srv.Inbound(goshentest.Mail{From: "c@example.com", Text: "meanwhile"})
		}
		n++
	}
	assert.Equal(t, 551, n)
}

func TestListGoingRoundEnds(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	srv.Fault(goshentest.Fault{Op: goshentest.OpGetThread, Status: 413, Code: "thread_too_large"})
	srv.Fault(goshentest.Fault{Op: goshentest.OpListMessages, When: goshentest.When{Always: true}, Garbage: `{"messages":[],"nextPageToken":"x"}`, Status: 200})
	for _, err := range c.Messages(t.Context(), agent, "t") {
		require.ErrorIs(t, err, events.ErrNoProgress)
	}
}

func TestQuarantineIsNotShown(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{Keys: []goshentest.Key{{Token: "bze_account"}, {Token: "gme_mailbox", Inbox: agent}}})
	held := srv.Inbound(goshentest.Mail{From: "spam@example.com", Text: "buy"})
	kept := srv.Inbound(goshentest.Mail{From: "spam@example.com", InReplyTo: held.MessageID, Text: "buy now", Quarantined: true})
	for _, key := range []string{"bze_account", "gme_mailbox"} {
		c := clientOf(t, srv, goshen.Config{Key: key})
		assert.Empty(t, messagesOf(t, c, agent, kept.ThreadID))
		body, err := c.Body(t.Context(), agent, client.Message{ID: kept.MessageID})
		require.NoError(t, err, "a message that is held says nothing about the key")
		assert.False(t, body.Available)
		assert.Empty(t, body.Text.Text())
	}
	page, err := c.List(t.Context(), agent, goshen.Query{Labels: []string{goshen.LabelQuarantined}})
	require.NoError(t, err)
	require.Len(t, page.Messages, 1)
	assert.True(t, page.Messages[0].Quarantined())

	srv.Release(agent, kept.MessageID)
	body, err := c.Body(t.Context(), agent, client.Message{ID: kept.MessageID})
	require.NoError(t, err)
	assert.True(t, body.Available)
	assert.Equal(t, "buy now", body.Text.Text())
}

func TestListSearchThreadsLabels(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	asked := ask(t, c, "k")
	answer := srv.Inbound(goshentest.Mail{From: "supplier@example.com", InReplyTo: asked.Message, Text: "invoice follows"})
	srv.Inbound(goshentest.Mail{From: "other@example.com", Text: "hello"})

	page, err := c.List(t.Context(), agent, goshen.Query{Limit: 2})
	require.NoError(t, err)
	require.Len(t, page.Messages, 2)
	assert.Equal(t, "hello", page.Messages[0].Preview.Text(), "newest first")
	next, err := c.List(t.Context(), agent, goshen.Query{Limit: 2, Token: page.Next})
	require.NoError(t, err)
	require.Len(t, next.Messages, 1)
	assert.Equal(t, asked.Message, next.Messages[0].ID)
	assert.Empty(t, next.Next)

	found, err := c.Search(t.Context(), agent, "invoice", goshen.Query{})
	require.NoError(t, err)
	require.Len(t, found.Messages, 1)
	assert.Equal(t, answer.MessageID, found.Messages[0].ID)

	threads, err := c.Threads(t.Context(), agent, goshen.Query{Labels: []string{goshen.LabelSent}})
	require.NoError(t, err)
	require.Len(t, threads.Threads, 1)
	assert.Equal(t, asked.Thread, threads.Threads[0].ID)
	assert.Equal(t, answer.MessageID, threads.Threads[0].LastMessage)
	assert.EqualValues(t, 2, threads.Threads[0].Count)

	require.NoError(t, c.LabelMessage(t.Context(), agent, answer.MessageID, goshen.Labels{Add: []string{"invoice"}, Remove: []string{"unread"}}))
	assert.Equal(t, []string{"received", "invoice"}, srv.Labels(agent, answer.MessageID))
	require.NoError(t, c.LabelThread(t.Context(), agent, asked.Thread, goshen.Labels{Add: []string{"done"}}))
	assert.Contains(t, srv.Labels(agent, asked.Message), "done")
	err = c.LabelMessage(t.Context(), agent, answer.MessageID, goshen.Labels{Add: []string{goshen.LabelQuarantined}})
	assert.Equal(t, client.ClassRequest, client.ClassOf(err))
	err = c.LabelMessage(t.Context(), agent, answer.MessageID, goshen.Labels{Add: []string{""}})
	assert.Equal(t, client.ClassRequest, client.ClassOf(err))
}

func TestOutboundGoesByLabelsFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, labels string
		outbound     bool
	}{
		"sent":                   {agent, `"sent"`, true},
		"sent from an alias":     {"alias@example.com", `"sent"`, true},
		"forged sender":          {agent, `"received","unread"`, false},
		"labels were taken away": {agent, ``, true},
		"neither":                {"a@example.com", ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answering(t, 200, fmt.Sprintf(`{"messageId":"<a@b>","inboxId":%q,"from":%q,"labels":[%s]}`, agent, tc.from, tc.labels))
			m, err := c.Message(t.Context(), agent, "<a@b>")
			require.NoError(t, err)
			assert.Equal(t, tc.outbound, m.Outbound)
		})
	}
}

func TestDeliveryOfASentMessage(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	srv.BounceAt(func(a string) bool { return strings.HasPrefix(a, "bad") })
	good := ask(t, c, "k")
	bad, err := c.Send(t.Context(), "l", seal(t, c, client.Outgoing{To: []string{"bad@example.com"}, Text: "x"}))
	require.NoError(t, err)

	assert.Equal(t, client.DeliveryUnknown, messagesOf(t, c, agent, good.Thread)[0].Delivery, "a thread's listing has no snapshot")
	assert.Equal(t, client.DeliveryBounced, messagesOf(t, c, agent, bad.Thread)[0].Delivery, "but a label")
	m, err := c.Message(t.Context(), agent, good.Message)
	require.NoError(t, err)
	assert.Equal(t, client.DeliveryAccepted, m.Delivery)
	srv.DeliveryUpdate(good.Message, "supplier@example.com", goshentest.Delivered, "")
	m, err = c.Message(t.Context(), agent, good.Message)
	require.NoError(t, err)
	assert.Equal(t, client.DeliveryDelivered, m.Delivery)
}
