package goshen_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/events"
)

// drain reads the source as a sweeper does and returns the messages in order.
func drain(t *testing.T, source *goshen.Source) []string {
	t.Helper()
	var got []string
	for page, err := range events.Pages(t.Context(), source, 0) {
		require.NoError(t, err)
		for _, ev := range page.Events {
			got = append(got, ev.Message)
		}
		require.NoError(t, source.Settle(t.Context(), page.Events))
	}
	return got
}

// Taking labels away shrinks the list under its page tokens; nothing may be
// passed over for it, also if mail goes on coming.
func TestSourceDrainsMoreThanAPage(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	want := map[string]bool{}
	inbound := func(n int) {
		for i := range n {
			want[srv.Inbound(goshentest.Mail{From: "a@example.com", Text: fmt.Sprint(i)}).MessageID] = true
		}
	}
	inbound(250)
	reads := 0
	srv.OnRequest(func(op goshentest.Op, at goshentest.Point, _ *http.Request) {
		if op == goshentest.OpListMessages && at == goshentest.AfterEffect && reads < 3 {
			reads++
			inbound(10)
		}
	})
	got := drain(t, c.Source())
	assert.Len(t, got, 280)
	for _, id := range got {
		assert.True(t, want[id])
		delete(want, id)
		assert.Equal(t, []string{"received", "handled"}, srv.Labels(agent, id))
	}
	assert.Empty(t, want)
	for _, r := range srv.Requests() {
		assert.Empty(t, r.Query.Get("pageToken"))
	}
}

func TestFollowingTokensWhileSettlingSkips(t *testing.T) {
	t.Parallel()
	srv := goshentest.NewServer(t, goshentest.Config{InMemory: true, Manual: true})
	c := clientOf(t, srv, goshen.Config{})
	for range 6 {
		srv.Inbound(goshentest.Mail{From: "a@example.com"})
	}
	seen := 0
	for token := "start"; token != ""; {
		q := goshen.Query{Labels: []string{"unread"}, Limit: 2, Token: token}
		if token == "start" {
			q.Token = ""
		}
		page, err := c.List(t.Context(), agent, q)
		require.NoError(t, err)
		for _, m := range page.Messages {
			seen++
			require.NoError(t, c.LabelMessage(t.Context(), agent, m.ID, goshen.Labels{Remove: []string{"unread"}}))
		}
		token = page.Next
	}
	assert.Less(t, seen, 6, "the trap that Source avoids")
	assert.NotEmpty(t, srv.Violations())
}

func TestSourceEvent(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	asked := ask(t, c, "k")
	first := srv.Inbound(goshentest.Mail{From: "a@example.com", InReplyTo: asked.Message, Text: "1"})
	second := srv.Inbound(goshentest.Mail{From: "a@example.com", Text: "2"})
	page, err := c.Source().Page(t.Context(), 17)
	require.NoError(t, err)
	require.Len(t, page.Events, 2, "what was sent is not shown")
	assert.Equal(t, second.MessageID, page.Events[1].Message, "oldest first")
	assert.False(t, page.Date.IsZero())
	ev := page.Events[0]
	assert.Contains(t, string(ev.Data.Bytes()), `"preview":"1"`)
	assert.Equal(t, srv.Now().UnixMilli(), ev.OccurredAt.UnixMilli())
	ev.Data, ev.OccurredAt = client.Raw{}, page.Events[1].OccurredAt
	assert.Equal(t, events.Event{
		ID: "received:" + agent + ":" + first.MessageID, Kind: events.KindReceived, Type: "email.received",
		Inbox: agent, Thread: asked.Thread, Message: first.MessageID, OccurredAt: page.Events[1].OccurredAt,
	}, ev)
}

func TestSourceKeepsEachMessagesBytes(t *testing.T) {
	t.Parallel()
	older := "{ \"messageId\":\"<1@b>\" , \"\\u0069nboxId\":\"a@b\",\n\"labels\":[\"received\" ,\"unread\"], \"preview\":\"}],{[\\\\\" }"
	newer := `{"messageId":"<2@b>","inboxId":"a@b","labels":["sent"],"labels":["unread","received"]}`
	page, err := answering(t, 200, "{\"messages\" : [ "+newer+" ,\r\n"+older+" ]}\n").Source().Page(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, page.Events, 2)
	assert.Equal(t, older, string(page.Events[0].Data.Bytes()))
	assert.Equal(t, newer, string(page.Events[1].Data.Bytes()))
}

func TestSourceTakesTurns(t *testing.T) {
	t.Parallel()
	inboxes := []string{"a@mail.goshen.invalid", "b@mail.goshen.invalid", "c@mail.goshen.invalid"}
	srv, _ := setup(t, goshentest.Config{Inboxes: inboxes})
	c := clientOf(t, srv, goshen.Config{Inboxes: inboxes, Stream: "desk"})
	for range 150 {
		srv.Inbound(goshentest.Mail{Inbox: inboxes[0], From: "flood@example.com"})
	}
	last := srv.Inbound(goshentest.Mail{Inbox: inboxes[2], From: "a@example.com"})
	got := drain(t, c.Source())
	assert.Len(t, got, 151)
	assert.Equal(t, last.MessageID, got[100], "it does not wait for the flood to end")
}

func TestRefusedInboxDelaysNoOther(t *testing.T) {
	t.Parallel()
	inboxes := []string{"a@mail.goshen.invalid", "b@mail.goshen.invalid"}
	srv, _ := setup(t, goshentest.Config{Inboxes: inboxes[1:]})
	c := clientOf(t, srv, goshen.Config{Inboxes: inboxes, Stream: "desk"})
	want := srv.Inbound(goshentest.Mail{Inbox: inboxes[1], From: "a@example.com"})
	source := c.Source()
	var got []string
	var end error
	for page, err := range events.Pages(t.Context(), source, 0) {
		if end = err; err != nil {
			break
		}
		got = append(got, page.Events[0].Message)
		require.NoError(t, source.Settle(t.Context(), page.Events))
	}
	assert.Equal(t, []string{want.MessageID}, got)
	require.ErrorIs(t, end, client.ErrNotFound, "and it is not forgotten")
	assert.NotContains(t, end.Error(), "goshen.invalid")
}

func TestSourceStopsAtTheServicesTrouble(t *testing.T) {
	t.Parallel()
	inboxes := []string{"a@mail.goshen.invalid", "b@mail.goshen.invalid"}
	srv, _ := setup(t, goshentest.Config{Inboxes: inboxes})
	c := clientOf(t, srv, goshen.Config{Inboxes: inboxes, Stream: "desk"})
	srv.Fault(goshentest.Fault{Status: 500, When: goshentest.When{Always: true}})
	_, err := c.Source().Page(t.Context(), 0)
	assert.Equal(t, client.ClassService, client.ClassOf(err))
	assert.Equal(t, 1, srv.Count(goshentest.OpAny))
}

func TestSourceRefusesAListWithoutItsLabels(t *testing.T) {
	t.Parallel()
	c := answering(t, 200, `{"messages":[{"messageId":"<1@b>","inboxId":"a@b","from":"a@b","labels":["sent"]}]}`)
	_, err := c.Source().Page(t.Context(), 0)
	require.ErrorIs(t, err, client.ErrBadAnswer)

	c = answering(t, 200, `{"messages":[{"messageId":"<1@b>","inboxId":"a@b","labels":["received","unread"],"protection":{"status":"quarantined"}}]}`)
	page, err := c.Source().Page(t.Context(), 0)
	require.NoError(t, err)
	assert.Empty(t, page.Events)

	c = answering(t, 200, `{"messages":[],"nextPageToken":"more"}`)
	for _, err := range events.Pages(t.Context(), c.Source(), 0) {
		require.ErrorIs(t, err, events.ErrNoProgress)
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	srv, _ := setup(t, goshentest.Config{})
	c := clientOf(t, srv, goshen.Config{Handled: "seen-by-agent"})
	source := c.Source()
	gone := srv.Inbound(goshentest.Mail{From: "a@example.com"})
	bad := srv.Inbound(goshentest.Mail{From: "a@example.com"})
	good := srv.Inbound(goshentest.Mail{From: "a@example.com"})
	page, err := source.Page(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, page.Events, 3)
	srv.Delete(agent, gone.MessageID)
	srv.Fault(goshentest.Fault{Op: goshentest.OpLabelMessage, Status: 500, Match: func(r *http.Request) bool {
		return r.PathValue("message") == bad.MessageID
	}})
	err = source.Settle(t.Context(), page.Events)
	assert.Equal(t, client.ClassService, client.ClassOf(err))
	assert.Equal(t, []string{"received", "seen-by-agent"}, srv.Labels(agent, good.MessageID), "one that fails keeps no other")
	require.NoError(t, source.Settle(t.Context(), page.Events))
	require.NoError(t, source.Settle(t.Context(), page.Events))
	assert.Equal(t, []string{"received", "seen-by-agent"}, srv.Labels(agent, bad.MessageID))
	assert.Empty(t, drain(t, source))
}

// A message whose labels Goshen will not change is left out for an hour, and
// no other with it.
func TestWhatCannotBeSettledIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := setup(t, goshentest.Config{InMemory: true})
		source := c.Source()
		bad := srv.Inbound(goshentest.Mail{From: "a@example.com"})
		good := srv.Inbound(goshentest.Mail{From: "a@example.com"})
		srv.Fault(goshentest.Fault{Op: goshentest.OpLabelMessage, Status: 400, When: goshentest.When{Always: true}, Match: func(r *http.Request) bool {
			return r.PathValue("message") == bad.MessageID
		}})
		shown := func() (ids []string) {
			page, err := source.Page(t.Context(), 0)
			require.NoError(t, err)
			for _, ev := range page.Events {
				ids = append(ids, ev.Message)
			}
			return ids
		}
		page, err := source.Page(t.Context(), 0)
		require.NoError(t, err)
		srv.Fault(goshentest.Fault{Op: goshentest.OpLabelMessage, Status: 503})
		assert.Equal(t, client.ClassService, client.ClassOf(source.Settle(t.Context(), page.Events)), "the other may be settled later")
		assert.Equal(t, client.ClassRequest, client.ClassOf(source.Settle(t.Context(), page.Events)))
		assert.Equal(t, []string{"received", "handled"}, srv.Labels(agent, good.MessageID))
		assert.Equal(t, []string{bad.MessageID}, shown(), "nobody said that it is committed")

		source.LeaveOut(page.Events)
		assert.Empty(t, shown())
		srv.Label(agent, good.MessageID, []string{"unread"}, nil)
		assert.Equal(t, []string{good.MessageID}, shown())
		require.NoError(t, source.Settle(t.Context(), page.Events[1:]))
		time.Sleep(time.Hour)
		assert.Equal(t, []string{bad.MessageID}, shown())
	})
}

// A person who marks a message as unread again must not keep a sweep busy.
func TestSourceEndsWhenNothingIsSettled(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	srv.Inbound(goshentest.Mail{From: "a@example.com"})
	n := 0
	for _, err := range events.Pages(context.Background(), c.Source(), 0) {
		if err != nil {
			require.ErrorIs(t, err, events.ErrNoProgress)
		}
		n++
	}
	assert.Equal(t, 2, n)
}
