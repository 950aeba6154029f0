package efatest_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

func TestTheSamePayloadReplaysTheStoredAnswer(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	first := api.send("k", hello)
	again := api.send("k", `{ "text":"please quote", "subject":"Quote Q-1", "to":["supplier@example.com"] }`)
	require.Equal(t, 202, again.status)
	require.Equal(t, first.raw, again.raw)

	sends := srv.Sends()
	require.Len(t, sends, 1)
	require.Equal(t, "k", sends[0].Key)
	require.Equal(t, hello, string(sends[0].Body))
	require.Equal(t, 1, sends[0].Replays)
	require.Equal(t, first.str("message_id"), sends[0].MessageID)
	require.Equal(t, first.str("thread_id"), sends[0].ThreadID)
	require.Len(t, srv.Messages(""), 1)
	require.Empty(t, srv.Violations())
}

func TestAnotherPayloadConflicts(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	api.send("k", hello)
	r := api.send("k", `{"to":["supplier@example.com"],"subject":"Quote Q-1","text":"please quote!"}`)
	require.Equal(t, 409, r.status)
	require.Equal(t, "idempotency_conflict", r.code())
	require.Equal(t, 1, srv.Sends()[0].Conflict)
	require.Len(t, srv.Violations(), 1)
}

func TestAKeyExpiresAfterItsWindow(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	api.send("k", hello)
	srv.Advance(30 * 24 * time.Hour)
	require.Equal(t, 202, api.send("k", hello).status, "the last moment of the window")
	srv.Advance(time.Second)
	require.Equal(t, "idempotency_expired", api.send("k", hello).code())
	require.Len(t, srv.Messages(""), 1)
	require.Len(t, srv.Violations(), 1)
}

func TestASendInProgress(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	var meanwhile reply
	var asked atomic.Bool
	srv.OnRequest(func(_ efatest.Op, at efatest.Point, _ *http.Request) {
		if at == efatest.AfterEffect && !asked.Swap(true) {
			meanwhile = api.send("k", hello)
		}
	})
	require.Equal(t, 202, api.send("k", hello).status)
	require.Equal(t, 503, meanwhile.status)
	require.Equal(t, "temporarily_unavailable", meanwhile.code())
	require.Equal(t, 202, api.send("k", hello).status)
}

func TestOneKeyFromManyAtOnceIsOneMessage(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	srv.Fault(efatest.Fault{Op: efatest.OpSend, When: efatest.When{Always: true}, Linger: time.Millisecond})
	answers := make(chan reply, 50)
	var wg sync.WaitGroup
	for range cap(answers) {
		wg.Go(func() {
			r, _ := api.do("POST", "/inboxes/ibx_main/messages", hello, "Idempotency-Key", "k")
			answers <- r
		})
	}
	wg.Wait()
	close(answers)
	threads := map[string]bool{}
	for r := range answers {
		if r.status == 202 {
			threads[r.raw] = true
		} else {
			require.Equal(t, 503, r.status)
		}
	}
	require.Len(t, threads, 1)
	require.Len(t, srv.Messages(""), 1)
	require.Len(t, srv.Sends(), 1)
}

func TestSendsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, body string }{
		"no key":            {"", hello},
		"no JSON":           {"k", "to=a@example.com"},
		"two objects":       {"k", hello + hello},
		"no recipient":      {"k", `{"subject":"s","text":"t"}`},
		"not an address":    {"k", `{"to":["nobody"],"text":"t"}`},
		"no content":        {"k", `{"to":["a@example.com"],"subject":"s"}`},
		"unknown field":     {"k", `{"to":["a@example.com"],"text":"t","reply_to":"msg_1"}`},
		"text not a string": {"k", `{"to":["a@example.com"],"text":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, api := setup(t, efatest.Config{})
			r := api.send(c.key, c.body)
			require.Equal(t, 400, r.status)
			require.Equal(t, "invalid_request", r.code())
			require.Empty(t, srv.Sends())
			require.Len(t, srv.Violations(), 1)
		})
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	var left atomic.Int32
	srv.OnSend(func(efatest.Send) { left.Add(1) })
	srv.HoldSends(efatest.All)
	r := api.send("k", hello)
	require.Equal(t, 202, r.status)
	require.Equal(t, "approval_required", r.str("result"))
	require.NotContains(t, r.body, "thread_id")
	require.Empty(t, srv.Messages(""))
	require.EqualValues(t, 0, left.Load())
	approval := r.str("approval_id")

	requested := srv.Events()[0]
	require.Equal(t, efatest.ApprovalRequested, requested.Type)
	require.Equal(t, approval, requested.Data["approval_id"])

	sent, err := srv.Approve(approval)
	require.NoError(t, err)
	queued := srv.Events()[1]
	require.Equal(t, efatest.MessageQueued, queued.Type)
	require.Equal(t, map[string]any{"message_id": sent.MessageID, "thread_id": sent.ThreadID, "inbox_id": srv.Inbox()}, queued.Data)
	require.EqualValues(t, 1, left.Load())
	require.Equal(t, r.raw, api.send("k", hello).raw, "a replay still answers approval_required")
	require.Equal(t, sent.MessageID, srv.Sends()[0].MessageID)

	_, err = srv.Approve(approval)
	require.Error(t, err)
	require.Error(t, srv.Reject("apr_none"))
}

func TestARejectedApproval(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	in := srv.Inbound(efatest.Mail{})
	srv.HoldSends(func(d efatest.Send) bool { return d.ReplyTo != "" })
	require.Equal(t, "queued", api.send("k1", hello).str("result"))
	r := api.send("k2", `{"to":["a@example.com"],"text":"t","reply_to_message_id":"`+in.MessageID+`"}`)
	require.NoError(t, srv.Reject(r.str("approval_id")))
	events := srv.Events()
	last := events[len(events)-1]
	require.Equal(t, efatest.ApprovalRejected, last.Type)
	require.Equal(t, r.str("approval_id"), last.Data["approval_id"])
	require.True(t, srv.Sends()[1].Rejected)
	require.Len(t, srv.Messages(in.ThreadID), 1)
}
