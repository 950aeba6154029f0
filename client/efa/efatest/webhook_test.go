package efatest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

// receiver answers every push with status and remembers it.
type receiver struct {
	mu     sync.Mutex
	status int
	answer string
	got    []push
}

type push struct {
	header http.Header
	body   []byte
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rc.mu.Lock()
	rc.got = append(rc.got, push{r.Header, body})
	status, answer := rc.status, rc.answer
	rc.mu.Unlock()
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (rc *receiver) pushes() []push {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return slices.Clone(rc.got)
}

func hook(t *testing.T, status int, cfg efatest.Config) (*efatest.Server, api, efatest.Webhook, *receiver) {
	srv, api := setup(t, cfg)
	rc := &receiver{status: status}
	return srv, api, srv.WebhookHandler(rc), rc
}

func TestTheReferenceLibraryVerifiesAPush(t *testing.T) {
	t.Parallel()
	srv, api, _, rc := hook(t, 204, efatest.Config{})
	in := srv.Inbound(efatest.Mail{})
	require.Equal(t, 1, srv.Drain(t.Context()))
	got := rc.pushes()[0]
	require.Regexp(t, "^[0-9a-f]{32}$", srv.Secret())
	wh, err := standardwebhooks.NewWebhookRaw([]byte(srv.Secret()))
	require.NoError(t, err)
	require.NoError(t, wh.Verify(got.body, got.header))
	require.Error(t, wh.Verify(append(got.body, ' '), got.header))
	require.Equal(t, in.EventID, got.header.Get("webhook-id"))

	var body map[string]any
	require.NoError(t, json.Unmarshal(got.body, &body))
	require.Equal(t, map[string]any{
		"id": in.EventID, "type": "message.received", "api_version": "2026-09-19",
		"data": api.events("").data()[0]["data"],
	}, body, "exactly four fields, and the same data at both doors")
}

func TestTheRetryTable(t *testing.T) {
	t.Parallel()
	srv, _, _, rc := hook(t, 500, efatest.Config{})
	start := srv.Now()
	srv.Inbound(efatest.Mail{})
	srv.Advance(24 * time.Hour)
	var at []time.Duration
	for _, a := range srv.Deliveries()[0].Attempts {
		at = append(at, a.At.Sub(start))
	}
	require.Equal(t, []time.Duration{
		0, 10 * time.Second, 70 * time.Second, 370 * time.Second, 2170 * time.Second,
		9370 * time.Second, 30970 * time.Second, 74170 * time.Second,
	}, at)
	require.Equal(t, efatest.StateExhausted, srv.Deliveries()[0].State)
	require.Equal(t, start.Add(24*time.Hour), srv.Now())

	got := rc.pushes()
	stamps := map[string]bool{}
	for _, p := range got {
		stamps[p.header.Get("webhook-timestamp")] = true
		require.Equal(t, got[0].header.Get("webhook-id"), p.header.Get("webhook-id"))
		require.Equal(t, got[0].body, p.body)
	}
	require.Len(t, stamps, 8, "each attempt is signed anew")
}

func TestWhichAnswersEndADelivery(t *testing.T) {
	t.Parallel()
	for status, state := range map[int]string{
		200: efatest.StateSucceeded, 204: efatest.StateSucceeded, 299: efatest.StateSucceeded,
		301: efatest.StatePending, 307: efatest.StatePending, 500: efatest.StatePending, 503: efatest.StatePending,
		408: efatest.StatePending, 409: efatest.StatePending, 425: efatest.StatePending, 429: efatest.StatePending,
		400: efatest.StateExhausted, 401: efatest.StateExhausted, 404: efatest.StateExhausted, 410: efatest.StateExhausted,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			srv, _, _, rc := hook(t, status, efatest.Config{})
			srv.Inbound(efatest.Mail{})
			srv.Drain(t.Context())
			d := srv.Deliveries()[0]
			require.Equal(t, state, d.State)
			require.Equal(t, status, d.Attempts[0].Status)
			require.Len(t, rc.pushes(), 1, "no redirect is followed")
		})
	}
}

func TestAnAttemptWithoutAnswerIsRetried(t *testing.T) {
	t.Parallel()
	srv, _ := setup(t, efatest.Config{PushTimeout: 20 * time.Millisecond})
	srv.WebhookHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	srv.Webhook("http://127.0.0.1:1/refused")
	srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	for _, d := range srv.Deliveries() {
		require.Equal(t, efatest.StatePending, d.State)
		require.Equal(t, 0, d.Attempts[0].Status)
		require.Equal(t, efatest.OutcomeRejected, d.Attempts[0].Outcome)
	}
}

func TestSubscription(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	rc := &receiver{status: 204}
	srv.Inbound(efatest.Mail{}) // before there is an endpoint: nobody hears of it
	srv.WebhookHandler(rc, efatest.MessageReceived)
	api.send("k", hello)
	srv.Inbound(efatest.Mail{})
	srv.Inbound(efatest.Mail{NoPush: true})
	srv.Drain(t.Context())
	require.Len(t, rc.pushes(), 1)
}

func TestRotationCancelsAndHasNoOverlap(t *testing.T) {
	t.Parallel()
	human := efatest.Key{Token: "person", Human: true}
	srv, api, hookInfo, rc := hook(t, 500, efatest.Config{Keys: []efatest.Key{{Token: "agent"}, human}})
	control := func(key, action string, revision int) reply {
		return api.as(key).must("POST", "/webhooks/"+hookInfo.ID+"/control", fmt.Sprintf(`{"action":%q,"expected_revision":%d}`, action, revision))
	}
	srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	srv.Inbound(efatest.Mail{})

	require.Equal(t, "permission_denied", control("agent", "rotate_secret", 1).code())
	require.Equal(t, "version_conflict", control("person", "rotate_secret", 2).code())
	require.Equal(t, "invalid_request", control("person", "explode", 1).code())
	old := srv.Secret()
	r := control("person", "rotate_secret", 1)
	require.Equal(t, 200, r.status)
	require.EqualValues(t, 2, r.body["canceled_deliveries"])
	require.EqualValues(t, 2, r.body["secret_version"])
	require.Equal(t, srv.Secret(), r.str("secret"))
	require.NotEqual(t, old, srv.Secret())
	srv.Advance(24 * time.Hour)
	require.Len(t, rc.pushes(), 1, "what was cancelled is not sent again")
	for _, d := range srv.Deliveries() {
		require.Equal(t, efatest.StateCanceled, d.State)
	}

	srv.Inbound(efatest.Mail{})
	require.EqualValues(t, 1, control("person", "disable", 2).body["canceled_deliveries"])
	srv.Inbound(efatest.Mail{})
	require.EqualValues(t, 0, control("person", "enable", 3).body["canceled_deliveries"])
	srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	last := rc.pushes()[1:]
	require.Len(t, last, 1)
	wh, _ := standardwebhooks.NewWebhookRaw([]byte(srv.Secret()))
	require.NoError(t, wh.VerifyIgnoringTimestamp(last[0].body, last[0].header))

	list := api.as("agent").get("/webhooks").data()
	require.Len(t, list, 1)
	require.EqualValues(t, 2, list[0]["secret_version"])
	require.EqualValues(t, 4, list[0]["revision"])
	require.NotContains(t, list[0], "secret")
}

func TestADeliveryCancelledWhileItRuns(t *testing.T) {
	t.Parallel()
	srv, _ := setup(t, efatest.Config{})
	srv.WebhookHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, canceled := srv.Rotate(srv.Webhooks()[0].ID)
		require.Equal(t, 2, canceled)
		w.WriteHeader(500)
	}))
	srv.Inbound(efatest.Mail{})
	srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	for i, d := range srv.Deliveries() {
		require.Equal(t, efatest.StateCanceled, d.State)
		require.Len(t, d.Attempts, 1-i)
	}
}

func TestTestEventIsAKnownAnswer(t *testing.T) {
	t.Parallel()
	srv, api, info, rc := hook(t, 204, efatest.Config{Keys: []efatest.Key{{Token: "k", Scopes: []string{
		efatest.ScopeWebhooksRead, efatest.ScopeWebhooksManage, efatest.ScopeEventsRead,
	}}}})
	other := &receiver{status: 204}
	srv.WebhookHandler(other, efatest.WebhookTest)
	path := "/webhooks/" + info.ID + "/test"
	r := api.must("POST", path, "")
	require.Equal(t, 202, r.status)
	require.Equal(t, "available", r.str("egress"))

	wh, _ := standardwebhooks.NewWebhookRaw([]byte(srv.Secret()))
	header := http.Header{}
	header.Set("webhook-id", r.str("event_id"))
	header.Set("webhook-timestamp", r.str("timestamp"))
	header.Set("webhook-signature", r.str("signature"))
	require.NoError(t, wh.Verify([]byte(r.str("body")), header))

	srv.Drain(t.Context())
	require.Empty(t, other.pushes(), "only the endpoint that is tested")
	got := rc.pushes()[0]
	require.NoError(t, wh.Verify(got.body, got.header))
	require.NotEqual(t, r.str("body"), string(got.body), "the order of keys may differ")
	require.JSONEq(t, r.str("body"), string(got.body))
	require.Equal(t, srv.Deliveries()[0].ID, r.str("delivery_id"))
	require.Equal(t, "webhook.test", api.events("").data()[0]["type"])

	limited := api.must("POST", path, "")
	require.Equal(t, 429, limited.status)
	require.Equal(t, "rate_limited", limited.code())
	require.Equal(t, "60", limited.header.Get("Retry-After"))
	srv.Advance(time.Minute)
	require.Equal(t, 202, api.must("POST", path, "").status)
	require.Equal(t, 404, api.must("POST", "/webhooks/whk_none/test", "").status)
}

func TestDeliveriesListing(t *testing.T) {
	t.Parallel()
	srv, api, info, rc := hook(t, 503, efatest.Config{})
	rc.answer = strings.Repeat("ü", 300)
	for range 30 {
		srv.Inbound(efatest.Mail{})
		srv.Advance(time.Second)
	}
	r := api.get("/webhooks/" + info.ID + "/deliveries")
	rows := r.data()
	require.Len(t, rows, 25)
	require.True(t, slices.IsSortedFunc(rows, func(a, b map[string]any) int {
		return strings.Compare(b["next_attempt_at"].(string), a["next_attempt_at"].(string))
	}))
	require.Equal(t, "pending", rows[0]["state"])
	attempt := rows[0]["attempts"].([]any)[0].(map[string]any)
	require.EqualValues(t, 1, attempt["attempt_number"])
	require.EqualValues(t, 503, attempt["http_status"])
	require.Equal(t, "rejected", attempt["outcome"])
	require.Equal(t, strings.Repeat("ü", 200), attempt["safe_response_excerpt"])
}

func TestWithoutEgressAttemptsAreHeld(t *testing.T) {
	t.Parallel()
	srv, api, info, rc := hook(t, 204, efatest.Config{NoEgress: true})
	srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	require.Empty(t, rc.pushes())
	attempt := api.get("/webhooks/" + info.ID + "/deliveries").data()[0]["attempts"].([]any)[0].(map[string]any)
	require.Equal(t, "held_egress_unavailable", attempt["outcome"])
	require.Nil(t, attempt["http_status"])
}

func TestOnlyAPersonCreatesAWebhookAndOnlyAtAPublicOrigin(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{Keys: []efatest.Key{
		{Token: "agent", Scopes: []string{efatest.ScopeWebhooksManage}}, {Token: "person", Human: true},
	}})
	create := func(key, url string) reply {
		return api.as(key).must("POST", "/webhooks", fmt.Sprintf(`{"url":%q,"event_types":["message.received"]}`, url))
	}
	require.Equal(t, "permission_denied", create("agent", "https://agent.example/hooks").code())
	for _, bad := range []string{
		"http://agent.example/", "https://agent.example:8443/", "https://u@agent.example/", "https://agent.example/#x",
		"https://localhost/", "https://10.0.0.1/", "https://169.254.1.1/", "https://a.internal/", "https://a.local/", "https://a.example./", "://",
	} {
		require.Equal(t, "invalid_request", create("person", bad).code(), bad)
	}
	r := create("person", "https://agent.example:443/hooks")
	require.Equal(t, 201, r.status)
	require.Equal(t, srv.Secret(), r.str("secret"))
	require.Len(t, srv.Webhooks(), 1)
}

func TestRedeliverAndRetarget(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{Manual: true})
	a, b := &receiver{status: 204}, &receiver{status: 204}
	serverA, serverB := httptest.NewServer(a), httptest.NewServer(b)
	defer serverA.Close()
	defer serverB.Close()
	w := srv.Webhook(serverA.URL)
	in := srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	srv.Retarget(w.ID, serverB.URL)
	srv.Redeliver(in.EventID)
	srv.Drain(t.Context())
	require.Equal(t, a.pushes()[0].body, b.pushes()[0].body)
}

func TestTheDashboardControlsAWebhook(t *testing.T) {
	t.Parallel()
	srv, _, info, rc := hook(t, 204, efatest.Config{})
	srv.Inbound(efatest.Mail{})
	require.Equal(t, 1, srv.Disable(info.ID))
	srv.Inbound(efatest.Mail{})
	require.Equal(t, 0, srv.Enable(info.ID))
	in := srv.Inbound(efatest.Mail{})
	srv.Drain(t.Context())
	require.Len(t, rc.pushes(), 1)
	require.Equal(t, in.EventID, rc.pushes()[0].header.Get("webhook-id"))
	require.Panics(t, func() { srv.Enable("whk_none") })
}
