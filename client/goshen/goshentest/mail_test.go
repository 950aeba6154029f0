package goshentest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/goshen/goshentest"
)

func TestPagingIsAnOffset(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	var sent []string
	for i := range 45 {
		sent = append(sent, srv.Inbound(goshentest.Mail{From: "a@example.com", Text: fmt.Sprint(i)}).MessageID)
	}
	slices.Reverse(sent)
	list := a.inbox() + "/messages?labels=received&labels=unread"
	first := a.get(list)
	assert.Equal(t, sent[:20], ids(first.rows("messages")), "newest first, 20 by default")
	second := a.get(list + "&pageToken=" + url.QueryEscape(first.str("nextPageToken")))
	assert.Equal(t, sent[20:40], ids(second.rows("messages")))
	third := a.get(list + "&pageToken=" + url.QueryEscape(second.str("nextPageToken")))
	assert.Equal(t, sent[40:], ids(third.rows("messages")))
	assert.NotContains(t, third.body, "nextPageToken")
	assert.Empty(t, srv.Violations())

	srv.Label(srv.Inbox(), sent[0], nil, []string{"unread"})
	skipped := a.get(list + "&pageToken=" + url.QueryEscape(first.str("nextPageToken")))
	assert.Equal(t, sent[21], ids(skipped.rows("messages"))[0], "sent[20] is passed over")
	assert.Len(t, srv.Violations(), 1)
	again := a.get(list + "&limit=100")
	assert.Len(t, again.rows("messages"), 44)
}

func TestThreadingRule(t *testing.T) {
	t.Parallel()
	srv, _ := setup(t, goshentest.Config{Inboxes: []string{"a@mail.goshen.invalid", "b@mail.goshen.invalid"}})
	in := func(m goshentest.Mail) string { m.From = "a@example.com"; return srv.Inbound(m).ThreadID }
	first := in(goshentest.Mail{MessageID: "<1@x>", Subject: "same"})
	second := in(goshentest.Mail{MessageID: "<2@x>", Subject: "same"})
	held := in(goshentest.Mail{MessageID: "<3@x>", Quarantined: true, InReplyTo: "<1@x>"})
	assert.NotEqual(t, first, second, "no subject")
	assert.NotEqual(t, first, held, "what is held joins nothing")
	assert.Equal(t, first, in(goshentest.Mail{InReplyTo: "<1@x>", References: []string{"<2@x>"}}), "In-Reply-To first")
	assert.Equal(t, second, in(goshentest.Mail{InReplyTo: "<unknown@x>", References: []string{"<1@x>", "<2@x>"}}), "then the newest reference")
	assert.NotEqual(t, held, in(goshentest.Mail{InReplyTo: "<3@x>"}), "nothing joins what is held")
	assert.NotEqual(t, first, in(goshentest.Mail{Inbox: "b@mail.goshen.invalid", InReplyTo: "<1@x>"}), "within one inbox")
	assert.True(t, srv.Inbound(goshentest.Mail{MessageID: "<1@x>", From: "b@example.com"}).Duplicate)
	assert.Equal(t, first, in(goshentest.Mail{MessageID: "<1@x>"}))
	assert.Len(t, srv.Messages(), 7)
}

func TestSendReplyAndDeduplication(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	sent := a.send("k", hello)
	require.Equal(t, 200, sent.status)
	assert.NotContains(t, sent.body, "deduplicated")
	again := a.send("k", `{"text":"please quote","subject":"Quote Q-1", "to":["supplier@example.com"],"idempotencyKey":"k"}`)
	assert.Equal(t, true, again.body["deduplicated"])
	assert.Equal(t, sent.str("messageId"), again.str("messageId"))
	conflict := a.send("k", strings.Replace(hello, "please", "now", 1))
	assert.Equal(t, "idempotency_conflict", conflict.code())
	assert.Equal(t, false, conflict.transient())
	assert.Equal(t, 1, srv.Sends()[0].Conflict)

	answer := srv.Inbound(goshentest.Mail{From: "supplier@example.com", ReplyTo: []string{"desk@example.com"}, Subject: "Re: Quote Q-1", InReplyTo: sent.str("messageId")})
	reply := a.must("POST", a.message(answer.MessageID)+"/reply", `{"text":"thanks"}`, "Idempotency-Key", "l")
	assert.Equal(t, sent.str("threadId"), reply.str("threadId"))
	assert.Equal(t, []string{"desk@example.com"}, srv.Sends()[1].To)
	assert.Equal(t, "Re: Quote Q-1", srv.Sends()[1].Subject)
	own := a.must("POST", a.message(sent.str("messageId"))+"/reply", `{"text":"any news?","replyAll":true}`, "Idempotency-Key", "m")
	assert.Equal(t, 200, own.status)
	assert.Equal(t, []string{"supplier@example.com"}, srv.Sends()[2].To)
	thread := a.get(a.inbox() + "/threads/" + sent.str("threadId"))
	assert.Equal(t, []string{sent.str("messageId"), answer.MessageID, reply.str("messageId"), own.str("messageId")}, ids(thread.rows("messages")))
	assert.EqualValues(t, 4, thread.body["messageCount"])
	assert.NotContains(t, thread.raw, `"text"`)
	assert.Contains(t, a.get(a.inbox()+"/threads/"+sent.str("threadId")+"?includeBodies=true").raw, `"text":"thanks"`)
}

func TestPendingAndUncertain(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	var during reply
	srv.OnRequest(func(op goshentest.Op, at goshentest.Point, r *http.Request) {
		if op == goshentest.OpSend && at == goshentest.AfterEffect && r.Header.Get("X-First") != "" {
			during = a.send("k", hello)
		}
	})
	a.must("POST", a.inbox()+"/messages/send", hello, "Idempotency-Key", "k", "X-First", "1")
	assert.Equal(t, "send_pending", during.code())
	assert.Equal(t, 409, during.status)

	for _, left := range []bool{true, false} {
		key := fmt.Sprint(left)
		srv.Fault(goshentest.Fault{Op: goshentest.OpSend, Uncertain: true})
		assert.Equal(t, "delivery_uncertain", a.send(key, hello).code())
		assert.Equal(t, "delivery_uncertain", a.send(key, hello).code())
		srv.Resolve(key, left)
	}
	assert.Equal(t, true, a.send("true", hello).body["deduplicated"])
	failed := a.send("false", hello)
	assert.Equal(t, "provider_error", failed.code())
	assert.Equal(t, false, failed.transient())
	assert.Len(t, srv.Messages(), 2)
	assert.Panics(t, func() { srv.Resolve("true", true) })
}

func TestQuarantineAndTrashAreHidden(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{Keys: []goshentest.Key{{Token: "bze_1"}, {Token: "gme_1", Inbox: "agent@mail.goshen.invalid"}}})
	held := srv.Inbound(goshentest.Mail{From: "a@example.com", Text: "xyzzy", Quarantined: true})
	binned := srv.Inbound(goshentest.Mail{From: "a@example.com"})
	srv.Label(srv.Inbox(), binned.MessageID, []string{"trash"}, nil)
	assert.Empty(t, a.get(a.inbox()+"/messages").rows("messages"))
	assert.Empty(t, a.get(a.inbox()+"/threads").rows("threads"))
	assert.Len(t, a.get(a.inbox()+"/threads?includeTrash=true").rows("threads"), 1)
	assert.Len(t, a.get(a.inbox()+"/messages?labels=trash").rows("messages"), 1)
	listed := a.get(a.inbox() + "/messages?labels=quarantined")
	assert.Equal(t, []string{held.MessageID}, ids(listed.rows("messages")))
	assert.NotContains(t, listed.raw, "xyzzy")
	assert.NotContains(t, a.get(a.message(held.MessageID)).raw, "xyzzy")
	assert.Equal(t, "message_quarantined", a.as("gme_1").get(a.message(held.MessageID)).code())
	r := a.must("PATCH", a.message(held.MessageID)+"/labels", `{"removeLabels":["quarantined"]}`)
	assert.Equal(t, "quarantine_review_required", r.code())
	assert.Equal(t, "message_quarantined", a.must("POST", a.message(held.MessageID)+"/reply", `{"text":"x"}`, "Idempotency-Key", "k").code())
	srv.Release(srv.Inbox(), held.MessageID)
	assert.Contains(t, a.get(a.message(held.MessageID)).raw, "xyzzy")
	assert.Equal(t, []string{"received", "unread"}, srv.Labels(srv.Inbox(), held.MessageID))
}

func TestSearchAndLabels(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	got := srv.Inbound(goshentest.Mail{From: "a@example.com", Subject: "Invoice", HTML: "<p>twelve <b>euro</b>"})
	assert.Len(t, a.get(a.inbox()+"/messages/search?query=invoice+TWELVE").rows("messages"), 1)
	assert.Empty(t, a.get(a.inbox()+"/messages/search?query=thirteen").rows("messages"))
	r := a.must("PATCH", a.message(got.MessageID)+"/labels", `{"addLabels":["done"],"removeLabels":["unread"]}`)
	assert.Equal(t, "null", r.raw)
	r = a.must("PATCH", a.inbox()+"/threads/"+got.ThreadID+"/labels", `{"addLabels":["thread-wide"]}`)
	assert.Equal(t, 200, r.status)
	assert.Equal(t, []string{"received", "done", "thread-wide"}, srv.Labels(srv.Inbox(), got.MessageID))
	assert.Equal(t, 404, a.must("PATCH", a.message("<gone@x>")+"/labels", `{}`).status)
	assert.Contains(t, a.get(a.message(got.MessageID)+"?includeHtml=true").str("html"), "<b>")
	assert.NotContains(t, a.get(a.message(got.MessageID)).body, "html")
}
