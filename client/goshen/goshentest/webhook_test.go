package goshentest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/goshen/goshentest"
)

// receiver keeps what it is sent and answers as it is told.
type receiver struct {
	mu     sync.Mutex
	answer func(n int) int
	got    []pushed
}

type pushed struct {
	id, timestamp, signature string
	body                     []byte
	json                     map[string]any
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := pushed{req.Header.Get("svix-id"), req.Header.Get("svix-timestamp"), req.Header.Get("svix-signature"), body, nil}
	_ = json.Unmarshal(body, &p.json)
	r.got = append(r.got, p)
	status := 204
	if r.answer != nil {
		status = r.answer(len(r.got))
	}
	w.WriteHeader(status)
}

func TestBodiesAreAsDocumented(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	r := &receiver{}
	srv.WebhookHandler(r)
	srv.Inbound(goshentest.Mail{From: "a@example.com", Text: strings.Repeat("x", 65<<10)})
	srv.BounceAt(func(string) bool { return true })
	a.send("k", hello)
	require.Equal(t, 3, srv.Drain(t.Context()))
	received, bounced, update := r.got[0], r.got[1], r.got[2]

	for _, p := range r.got {
		for _, name := range []string{"id", "eventId", "event_id"} {
			assert.NotContains(t, p.json, name)
		}
		assert.Equal(t, srv.Inbox(), p.json["inboxId"])
		assert.NotEmpty(t, p.json["occurredAt"])
	}
	message := received.json["message"].(map[string]any)
	assert.Len(t, message["text"], 64<<10)
	assert.Equal(t, true, message["bodyTruncated"])
	assert.NotContains(t, message, "html")
	assert.NotContains(t, message, "cc")
	assert.NotContains(t, message, "replyTo")
	assert.Equal(t, []any{"supplier@example.com"}, bounced.json["recipients"])
	assert.Contains(t, bounced.json["message"].(map[string]any)["labels"], "bounced")
	assert.Equal(t, "delivery:"+bounced.id+":1", update.id, "both are named after the stored message")
	assert.Len(t, update.json["message"], 3)
	delivery := update.json["delivery"].(map[string]any)
	assert.EqualValues(t, 1, delivery["version"])
	assert.Equal(t, "bounced", delivery["recipients"].([]any)[0].(map[string]any)["status"])
}

// What the reference library says is genuine, at each attempt anew.
func TestRetriesForEverSignedAnew(t *testing.T) {
	t.Parallel()
	srv, _ := setup(t, goshentest.Config{})
	statuses := []int{400, 401, 404, 410, 302, 500, 503, 422, 409, 429}
	r := &receiver{answer: func(n int) int {
		if n <= len(statuses) {
			return statuses[n-1]
		}
		if n < 200 {
			return 410
		}
		return 200
	}}
	srv.WebhookHandler(r)
	srv.Inbound(goshentest.Mail{From: "a@example.com"})
	srv.Advance(14 * 24 * time.Hour)
	d := srv.Deliveries()[0]
	require.Equal(t, goshentest.StateDelivered, d.State)
	require.Len(t, d.Attempts, 200)
	for i, want := range []int{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600} {
		assert.Equal(t, time.Duration(want)*time.Second, d.Attempts[i+1].At.Sub(d.Attempts[i].At))
	}
	assert.NotEqual(t, r.got[0].timestamp, r.got[1].timestamp)
	assert.Equal(t, r.got[0].body, r.got[199].body)
	assert.Equal(t, r.got[0].id, r.got[199].id)
	wh, err := standardwebhooks.NewWebhook(srv.Secret())
	require.NoError(t, err)
	for _, p := range r.got {
		require.NoError(t, wh.VerifyIgnoringTimestamp(p.body, http.Header{
			"Webhook-Id": {p.id}, "Webhook-Timestamp": {p.timestamp}, "Webhook-Signature": {p.signature},
		}))
	}
}

func TestSlowReceiverIsGivenUpAtTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := goshentest.NewServer(t, goshentest.Config{InMemory: true, Manual: true})
		srv.WebhookHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		srv.Inbound(goshentest.Mail{From: "a@example.com"})
		began := time.Now()
		srv.Drain(t.Context())
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.Zero(t, srv.Deliveries()[0].Attempts[0].Status)
		synctest.Wait()
	})
}

func TestDeliversByItselfInRealTime(t *testing.T) {
	t.Parallel()
	srv := goshentest.NewServer(t, goshentest.Config{Speed: 1000})
	r := &receiver{answer: func(n int) int { return map[bool]int{true: 500, false: 204}[n < 3] }}
	receiving := httptest.NewServer(r)
	defer receiving.Close()
	srv.Webhook(receiving.URL)
	srv.Inbound(goshentest.Mail{From: "a@example.com"})
	require.Eventually(t, func() bool { return srv.Deliveries()[0].State == goshentest.StateDelivered }, 10*time.Second, time.Millisecond)
	assert.Len(t, srv.Deliveries()[0].Attempts, 3)
}

func TestDeliverySnapshots(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	r := &receiver{}
	srv.WebhookHandler(r)
	sent := a.send("k", `{"to":["a@example.com","b@example.com"],"text":"x"}`).str("messageId")
	assert.Equal(t, 2, srv.DeliveryUpdate(sent, "A@example.com", goshentest.Delivered, ""))
	assert.Zero(t, srv.DeliveryUpdate(sent, "a@example.com", goshentest.Deferred, ""), "a final state does not give way")
	assert.Equal(t, 3, srv.DeliveryUpdate(sent, "b@example.com", goshentest.Bounced, "no such user"))
	assert.Equal(t, 4, srv.DeliveryUpdate(sent, "a@example.com", goshentest.Complained, ""))
	assert.Zero(t, srv.DeliveryUpdate(sent, "a@example.com", goshentest.Delivered, ""))
	assert.Zero(t, srv.DeliveryUpdate("<unknown@x>", "a@example.com", goshentest.Delivered, ""))
	srv.Drain(t.Context())
	require.Len(t, r.got, 4)
	assert.Contains(t, string(r.got[3].body), "no such user", "each is a whole snapshot")
	assert.Contains(t, a.get(a.message(sent)).raw, `"version":4`)
}

func TestEventFaultsAndReleases(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{true, false} {
		srv, _ := setup(t, goshentest.Config{SilentRelease: silent})
		r := &receiver{}
		srv.Inbound(goshentest.Mail{From: "early@example.com"}) // nobody listens yet
		srv.WebhookHandler(r)
		srv.FaultEvents(goshentest.EventFault{Copies: 1})
		srv.FaultEvents(goshentest.EventFault{DropPush: true})
		srv.Inbound(goshentest.Mail{From: "twice@example.com"})
		srv.Inbound(goshentest.Mail{From: "never@example.com"})
		held := srv.Inbound(goshentest.Mail{From: "held@example.com", Quarantined: true})
		assert.Equal(t, 2, srv.Drain(t.Context()))
		assert.Equal(t, r.got[0].id, r.got[1].id)
		srv.Release(srv.Inbox(), held.MessageID)
		srv.Release(srv.Inbox(), held.MessageID)
		assert.Equal(t, map[bool]int{true: 0, false: 1}[silent], srv.Drain(t.Context()))
		srv.Redeliver(r.got[0].id)
		assert.Equal(t, 1, srv.Drain(t.Context()))
	}
}
