package efa_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events/doctor"
)

func TestEndpointsAreNeutral(t *testing.T) {
	t.Parallel()
	c, p := answeringBy(t, func(r *http.Request, _ int) (int, string) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/webhooks"):
			return 200, `{"data":[{"id":"whk_1","status":"active","secret_version":2},{"id":"whk_2","status":"disabled"}]}`
		case strings.Contains(r.URL.Path, "whk_2"):
			return 200, `{"data":[]}`
		}
		return 200, `{"data":[
			{"id":"dlv_1","event_id":"evt_1","state":"exhausted","next_attempt_at":"2026-09-23T15:00:00Z","attempts":[
				{"attempt_number":1,"attempted_at":"2026-09-23T14:40:11Z","outcome":"rejected","http_status":500},
				{"attempt_number":2,"attempted_at":"2026-09-23T14:40:21Z","outcome":"rejected","http_status":404,"safe_response_excerpt":"xyzzy"}]},
			{"id":"dlv_2","event_id":"evt_2","state":"exhausted","attempts":[{"outcome":"rejected","http_status":null}]},
			{"id":"dlv_3","event_id":"evt_3","state":"exhausted","attempts":[{"outcome":"rejected","http_status":429}]},
			{"id":"dlv_4","event_id":"evt_4","state":"canceled","next_attempt_at":"2026-09-23T15:00:00Z","attempts":[]},
			{"id":"dlv_5","event_id":"evt_5","state":"running"},
			{"id":"dlv_6","event_id":"evt_6","state":"pending"},
			{"id":"dlv_7","event_id":"evt_7","state":"succeeded","attempts":[{"http_status":204}]},
			{"id":"dlv_8","event_id":"evt_8","state":"resting"}]}`
	})
	got, err := c.Endpoints(t.Context())
	require.NoError(t, err)
	assert.Len(t, p.requests(), 3)
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return at.UTC()
	}
	assert.Equal(t, []doctor.Endpoint{
		{ID: "whk_1", SecretVersion: "2", Deliveries: []doctor.Delivery{
			{ID: "dlv_1", EventID: "evt_1", State: doctor.GivenUp, Attempts: 2, Status: 404, Final: true, At: at("2026-09-23T14:40:11Z")},
			{ID: "dlv_2", EventID: "evt_2", State: doctor.GivenUp, Attempts: 1},
			{ID: "dlv_3", EventID: "evt_3", State: doctor.GivenUp, Attempts: 1, Status: 429},
			{ID: "dlv_4", EventID: "evt_4", State: doctor.Canceled, At: at("2026-09-23T15:00:00Z")},
			{ID: "dlv_5", EventID: "evt_5", State: doctor.Pending},
			{ID: "dlv_6", EventID: "evt_6", State: doctor.Pending},
			{ID: "dlv_7", EventID: "evt_7", State: doctor.Delivered, Attempts: 1, Status: 204},
			{ID: "dlv_8", EventID: "evt_8", State: doctor.Unknown},
		}},
		{ID: "whk_2", Disabled: true},
	}, got)
	assert.False(t, c.Clock().At.IsZero(), "httptest says the time")
}

func TestEndpointsOfAKeyThatMayNotListThem(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 403, `{"error":{"code":"permission_denied"}}`)
	_, err := c.Endpoints(t.Context())
	assert.Equal(t, client.ClassCredential, problem(t, err).Class)
	assert.Len(t, p.requests(), 1)
}

func TestEndpointsAsksOfTenOnly(t *testing.T) {
	t.Parallel()
	rows := strings.Repeat(`{"id":"whk_1"},`, 30)
	c, p := answeringBy(t, func(r *http.Request, _ int) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/webhooks") {
			return 200, `{"data":[` + strings.TrimSuffix(rows, ",") + `]}`
		}
		return 200, `{"data":[]}`
	})
	list, err := c.Endpoints(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 10)
	assert.Len(t, p.requests(), 11)
}
