package efatest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

func fill(srv *efatest.Server, n int) {
	e := efatest.Event{Type: efatest.MessageAccepted, Inbox: srv.Inbox(), Data: map[string]any{"inbox_id": srv.Inbox()}}
	for range n {
		srv.Emit(e)
	}
}

func TestCursorEdges(t *testing.T) {
	t.Parallel()
	const top = "9223372036854775807"
	for _, c := range []struct {
		name, query string
		want        []int // nil: refused with code
		next        any
		more        bool
		code        string
	}{
		{"no cursor", "limit=2", []int{1, 2}, "2", true, ""},
		{"strictly above", "cursor=2&limit=2", []int{3, 4}, "4", true, ""},
		{"zero", "cursor=0&limit=1", []int{1}, "1", true, ""},
		{"leading zeros", "cursor=0000000000000000002&limit=1", []int{3}, "3", true, ""},
		{"exactly the rest", "cursor=28&limit=2", []int{29, 30}, "30", false, ""},
		{"one more than the page", "cursor=27&limit=2", []int{28, 29}, "29", true, ""},
		{"at the head", "cursor=30", []int{}, nil, false, ""},
		{"far above", "cursor=" + top, []int{}, nil, false, ""},
		{"over int64", "cursor=9223372036854775808", nil, nil, false, "invalid_cursor"},
		{"twenty digits", "cursor=00000000000000000001", nil, nil, false, "invalid_cursor"},
		{"empty", "cursor=", nil, nil, false, "invalid_cursor"},
		{"null", "cursor=null", nil, nil, false, "invalid_cursor"},
		{"sign", "cursor=%2B1", nil, nil, false, "invalid_cursor"},
		{"negative", "cursor=-1", nil, nil, false, "invalid_cursor"},
		{"limit 0", "limit=0", nil, nil, false, "invalid_request"},
		{"limit 101", "limit=101", nil, nil, false, "invalid_request"},
		{"limit empty", "limit=", nil, nil, false, "invalid_request"},
		{"limit word", "limit=all", nil, nil, false, "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv, api := setup(t, efatest.Config{})
			fill(srv, 30)
			r := api.events(c.query)
			if c.want == nil {
				require.Equal(t, 400, r.status)
				require.Equal(t, c.code, r.code())
				require.Len(t, srv.Violations(), 1)
				return
			}
			require.Equal(t, c.want, sequences(r))
			require.Equal(t, c.next, r.body["next_cursor"])
			require.Equal(t, c.more, r.body["has_more"])
			require.Empty(t, srv.Violations())
		})
	}
}

func TestAPageHas25RowsUnlessAsked(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	fill(srv, 130)
	require.Len(t, api.events("").data(), 25)
	require.Len(t, api.events("limit=100").data(), 100)
}

func TestAPolledEventHasTheDocumentedFields(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 9, 23, 14, 40, 11, 903e6, time.UTC)
	srv, api := setup(t, efatest.Config{Now: func() time.Time { return at }})
	e := srv.Emit(efatest.Event{Type: "message.delivery_updated", Inbox: srv.Inbox(), Data: map[string]any{"message_id": "msg_1", "inbox_id": "ibx_main"}})
	r := api.events("")
	require.JSONEq(t, fmt.Sprintf(`{"data":[{"id":%q,"type":"message.delivery_updated","sequence":1,
		"occurred_at":"2026-09-23T14:40:11.903Z","data":{"message_id":"msg_1","inbox_id":"ibx_main"},
		"environment":"test","api_version":"2026-09-19"}],"next_cursor":"1","has_more":false}`, e.ID), r.raw)
	require.Equal(t, at.Format(http.TimeFormat), r.header.Get("Date"))
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	fill(srv, 10)
	srv.Expire(4)
	r := api.events("cursor=3")
	require.Equal(t, 410, r.status)
	require.Equal(t, "cursor_expired", r.code())
	require.Equal(t, false, r.body["error"].(map[string]any)["retryable"])
	require.Equal(t, []int{5}, sequences(api.events("cursor=4&limit=1")), "one below the oldest passes")
	require.Equal(t, []int{5}, sequences(api.events("limit=1")), "without a cursor nothing expires")
	srv.Expire(10)
	require.Empty(t, sequences(api.events("cursor=1")), "nothing remains: there is no oldest to lie before")
}

func TestExpiryInTheMiddleOfASweep(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	fill(srv, 10)
	srv.OnRequest(func(op efatest.Op, at efatest.Point, r *http.Request) {
		if at == efatest.AfterAnswer && r.URL.Query().Get("cursor") == "2" {
			srv.Expire(8)
		}
	})
	require.Equal(t, []int{3, 4}, sequences(api.events("cursor=2&limit=2")))
	require.Equal(t, 410, api.events("cursor=4&limit=2").status)
	require.Equal(t, []int{9, 10}, sequences(api.events("limit=2")))
}

func TestALateSequenceBecomesVisibleBelowTheCursor(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	fill(srv, 1)
	late := srv.Inbound(efatest.Mail{Late: time.Minute})
	fill(srv, 1)
	require.Equal(t, []int{1, 3}, sequences(api.events("")))
	require.Equal(t, false, api.events("cursor=1&limit=1").body["has_more"], "has_more does not count what is not visible")
	srv.Advance(time.Minute)
	require.Equal(t, []int{1, 2, 3}, sequences(api.events("")))
	require.EqualValues(t, 2, late.Sequence)
}

func TestAScopedKeySeesGapsAndOnlyItsInboxes(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{
		Inboxes: map[string]string{"ibx_a": "a@test.mail.invalid", "ibx_b": "b@test.mail.invalid"},
		Keys:    []efatest.Key{{Token: "all"}, {Token: "b", Inboxes: []string{"ibx_b"}}},
	})
	for i := range 6 {
		srv.Inbound(efatest.Mail{Inbox: []string{"ibx_a", "ibx_b"}[i%2]})
	}
	scoped := api.as("b")
	r := scoped.events("limit=2")
	require.Equal(t, []int{2, 4}, sequences(r))
	require.Equal(t, true, r.body["has_more"])
	r = scoped.events("limit=1&cursor=4")
	require.Equal(t, []int{6}, sequences(r))
	require.Equal(t, false, r.body["has_more"])
	require.Len(t, api.events("").data(), 6)

	m := srv.Messages("")[0]
	path := "/inboxes/ibx_a/messages/" + m.ID + "/body"
	require.Equal(t, 200, api.get(path).status)
	require.Equal(t, "not_found", scoped.get(path).code())
	require.Equal(t, "not_found", scoped.get("/inboxes/ibx_a/threads/"+m.Thread+"/messages").code())
	require.Equal(t, "not_found", scoped.must("POST", "/inboxes/ibx_a/messages", hello, "Idempotency-Key", "k").code())
	require.Equal(t, "not_found", scoped.get("/inboxes/ibx_b/messages/"+m.ID+"/body").code(), "a message of another inbox")
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{Keys: []efatest.Key{{Token: "events", Scopes: []string{efatest.ScopeEventsRead}}}})
	require.Equal(t, 200, api.events("").status)
	require.Equal(t, "permission_denied", api.send("k", hello).code())
	require.Equal(t, "permission_denied", api.body("msg").code())
	require.Equal(t, 401, api.as("wrong").events("").status)
	srv.AddKey(efatest.Key{Token: "next"})
	require.Equal(t, 202, api.as("next").send("k", hello).status)
	srv.RevokeKey("events")
	require.Equal(t, 401, api.events("").status)
}

func TestAHundredThousandEventsByCursor(t *testing.T) {
	t.Parallel()
	const n = 100_000
	srv, api := setup(t, efatest.Config{})
	fill(srv, n)
	began, seen, cursor := time.Now(), 0, 0
	for more := true; more; {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("/v1/projects/prj_test/events?limit=100&cursor=%d", cursor), nil)
		r.Header.Set("Authorization", "Bearer "+srv.Key())
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		page := w.Body.String()
		seen += strings.Count(page, `"sequence":`)
		cursor += 100
		more = strings.HasSuffix(page, `"has_more":true}`)
	}
	require.Equal(t, n, seen)
	t.Logf("%d events in %v", n, time.Since(began))
	require.Equal(t, []int{n}, sequences(api.events("cursor="+strconv.Itoa(n-1))))
}
