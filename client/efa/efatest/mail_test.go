package efatest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

func TestSendAndReplyShareAThread(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	sent := api.send("k1", hello)
	require.Equal(t, 202, sent.status)
	require.Equal(t, "queued", sent.str("result"))
	require.Equal(t, srv.Inbox(), sent.str("inbox_id"))

	in := srv.Inbound(efatest.Mail{ReplyTo: sent.str("message_id"), Subject: "AW: something else", Text: "12 EUR"})
	require.Equal(t, sent.str("thread_id"), in.ThreadID)

	answer := api.send("k2", fmt.Sprintf(`{"text":"thanks","reply_to_message_id":%q}`, in.MessageID))
	require.Equal(t, sent.str("thread_id"), answer.str("thread_id"))

	list := api.thread(in.ThreadID, "limit=100")
	require.Equal(t, false, list.body["has_more"])
	rows := list.data()
	require.Len(t, rows, 3)
	require.Equal(t, map[string]any{
		"id": sent.str("message_id"), "direction": "outbound", "subject": "Quote Q-1",
		"from": map[string]any{"email": srv.Address(srv.Inbox())},
		"to":   []any{map[string]any{"email": "supplier@example.com"}},
	}, rows[0])
	require.Equal(t, "inbound", rows[1]["direction"])
	require.Equal(t, []any{map[string]any{"email": "supplier@example.com"}}, rows[2]["to"])

	require.JSONEq(t, `{"text":"12 EUR","html":null,"body_available":true}`, api.body(in.MessageID).raw)
	require.Empty(t, srv.Violations())
}

func TestAReplyToNothingKnownOpensAThread(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	a, b := srv.Inbound(efatest.Mail{}), srv.Inbound(efatest.Mail{ReplyTo: "msg_elsewhere"})
	require.NotEqual(t, a.ThreadID, b.ThreadID)
	r := api.send("k", `{"to":["a@example.com"],"text":"x","reply_to_message_id":"msg_elsewhere"}`)
	require.Equal(t, 404, r.status)
	require.Equal(t, "not_found", r.code())
	require.Empty(t, srv.Sends(), "a refused send uses no key")
}

func TestAThreadIsPagedInSequence(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	first := srv.Inbound(efatest.Mail{})
	want := []string{first.MessageID}
	for range 6 {
		want = append(want, srv.Inbound(efatest.Mail{Thread: first.ThreadID}).MessageID)
	}
	got, q := []string{}, "limit=3"
	for {
		page := api.thread(first.ThreadID, q)
		for _, row := range page.data() {
			got = append(got, row["id"].(string))
		}
		if page.body["has_more"] == false {
			break
		}
		q = "limit=3&" + query("cursor", page.str("next_cursor"))
	}
	require.Equal(t, want, got)
	require.Equal(t, "invalid_cursor", api.thread(first.ThreadID, "cursor=3").code())
	require.Equal(t, "invalid_request", api.thread(first.ThreadID, "limit=101").code())
	require.Equal(t, 404, api.thread("thd_none", "").status)
}

func TestMailThatCannotBeReadYet(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	m := srv.Inbound(efatest.Mail{Text: "later", ListedAfter: time.Minute, BodyAfter: 2 * time.Minute})
	require.Empty(t, api.thread(m.ThreadID, "").data())
	require.JSONEq(t, `{"text":null,"html":null,"body_available":false}`, api.body(m.MessageID).raw)
	srv.Advance(2 * time.Minute)
	require.Len(t, api.thread(m.ThreadID, "").data(), 1)
	require.Equal(t, "later", api.body(m.MessageID).str("text"))
	srv.Hide(m.MessageID)
	require.Empty(t, api.thread(m.ThreadID, "").data())
	require.Equal(t, 404, api.body(m.MessageID).status)
	srv.Reveal(m.MessageID)
	require.Equal(t, 200, api.body(m.MessageID).status)
}

func TestEchoComesBackOnTheThread(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	srv.Echo(efatest.All)
	sent := api.send("k", hello)
	rows := api.thread(sent.str("thread_id"), "").data()
	require.Len(t, rows, 2)
	require.Equal(t, "inbound", rows[1]["direction"])
	require.Equal(t, rows[0]["from"], rows[1]["from"])
}

func TestDeliveryUpdateSaysAStatusOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	sent := api.send("k", hello)
	id, inbox := sent.str("message_id"), srv.Inbox()
	require.Equal(t, map[string]any{"message_id": id, "inbox_id": inbox}, srv.DeliveryUpdate(id, "").Data)
	require.NotContains(t, api.thread(sent.str("thread_id"), "").data()[0], "status")
	require.Equal(t, map[string]any{"message_id": id, "inbox_id": inbox, "status": "bounced"}, srv.DeliveryUpdate(id, "bounced").Data)
	require.Equal(t, "bounced", api.thread(sent.str("thread_id"), "").data()[0]["status"])
}

func TestSimulatedInboundAlwaysOpensAThread(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	body := fmt.Sprintf(`{"inbox_id":%q,"from":"x@example.com","subject":"s","text":"t"}`, srv.Inbox())
	a, b := api.must("POST", "/test/inbound", body), api.must("POST", "/test/inbound", body)
	require.Equal(t, 202, a.status)
	require.NotEqual(t, a.str("thread_id"), b.str("thread_id"))
	e := api.events("").data()[0]
	require.Equal(t, "message.received", e["type"])
	require.Equal(t, map[string]any{
		"message_id": a.str("message_id"), "thread_id": a.str("thread_id"), "inbox_id": srv.Inbox(),
		"environment": "test", "simulated": true,
	}, e["data"])

	live, liveAPI := setup(t, efatest.Config{Environment: "live"})
	require.Equal(t, "permission_denied", liveAPI.must("POST", "/test/inbound", body).code())
	live.Inbound(efatest.Mail{})
	require.Equal(t, false, live.Events()[0].Data["simulated"])
}

func TestAMessageAnnouncedAgainHasAnotherEvent(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	first := srv.Inbound(efatest.Mail{})
	second := srv.Announce(first.MessageID)
	require.NotEqual(t, first.EventID, second.EventID)
	rows := api.events("").data()
	require.Equal(t, rows[0]["data"], rows[1]["data"])
	require.EqualValues(t, 2, srv.Head())
}

func TestAStatusThatOnlyTheListingSays(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	sent := api.send("k", hello)
	srv.SetStatus(sent.str("message_id"), "bounced")
	require.NotContains(t, srv.DeliveryUpdate(sent.str("message_id"), "").Data, "status")
	require.Equal(t, "bounced", api.thread(sent.str("thread_id"), "").data()[0]["status"])
}
