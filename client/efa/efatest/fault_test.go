package efatest_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

func TestFaultsOfRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fault  efatest.Fault
		sent   int // messages after the first request
		status int // 0: no whole answer
		code   any
	}{
		{"refused", efatest.Fault{Status: 502}, 0, 502, "temporarily_unavailable"},
		{"rate limited", efatest.Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}, 0, 429, "rate_limited"},
		{"a code of its own", efatest.Fault{Status: 402, Code: "quota"}, 0, 402, "quota"},
		{"request lost", efatest.Fault{Drop: efatest.DropRequest}, 0, 0, nil},
		{"answer lost", efatest.Fault{Drop: efatest.DropAnswer}, 1, 0, nil},
		{"answer cut", efatest.Fault{Drop: efatest.DropMidBody}, 1, 0, nil},
		{"slow", efatest.Fault{Delay: time.Millisecond, SlowBody: time.Millisecond}, 1, 202, nil},
	} {
		for _, memory := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				srv := efatest.NewServer(t, efatest.Config{InMemory: memory})
				api := api{t, srv, srv.Key()}
				armed := srv.Fault(c.fault)
				r, err := api.do("POST", "/inboxes/ibx_main/messages", hello, "Idempotency-Key", "k")
				require.Equal(t, c.status == 0, err != nil, "%v", err)
				require.Equal(t, c.status, r.status)
				if c.code != nil {
					require.Equal(t, c.code, r.code())
				}
				if c.fault.RetryAfter > 0 {
					require.Equal(t, "2", r.header.Get("Retry-After"))
				}
				require.Len(t, srv.Messages(""), c.sent)
				require.Equal(t, 1, armed.Hits())
				require.Equal(t, c.status, srv.Requests()[0].Status)

				require.Equal(t, 202, api.send("k", hello).status, "the fault has passed")
				require.Len(t, srv.Messages(""), 1)
			})
		}
	}
}

// Who does not wait for the second half of a body does not get it.
func TestSlowBodyAndAnImpatientClient(t *testing.T) {
	t.Parallel()
	for _, memory := range []bool{true, false} {
		srv := efatest.NewServer(t, efatest.Config{InMemory: memory})
		srv.Fault(efatest.Fault{SlowBody: time.Minute, When: efatest.When{Always: true}})
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL()+"/projects/prj_test/events", nil)
			require.NoError(t, err)
			if resp, err := srv.Client().Do(r); err == nil {
				_, err = io.ReadAll(resp.Body)
				require.Error(t, err)
				require.NoError(t, resp.Body.Close())
			}
			cancel()
		}
	}
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	srv.Fault(efatest.Fault{Op: efatest.OpSend, Garbage: "<html>"})
	srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 502, Garbage: "<html>bad gateway"})
	r := api.send("k1", hello)
	require.Equal(t, 202, r.status)
	require.Equal(t, "<html>", r.raw)
	require.Len(t, srv.Sends(), 1)
	require.Equal(t, "<html>bad gateway", api.send("k2", hello).raw)
	require.Len(t, srv.Sends(), 1)
}

func TestWhenAFaultStrikes(t *testing.T) {
	t.Parallel()
	statuses := func(f efatest.Fault, seed uint64) (out []int) {
		srv, api := setup(t, efatest.Config{Seed: seed})
		f.Status = 500
		armed := srv.Fault(f)
		for i := range 8 {
			if i == 6 {
				armed.Disarm()
			}
			out = append(out, api.events("").status)
			api.thread("thd_none", "")
		}
		return out
	}
	on := efatest.OpEvents
	require.Equal(t, []int{200, 200, 500, 500, 500, 200, 200, 200}, statuses(efatest.Fault{Op: on, When: efatest.When{Skip: 2, Times: 3}}, 1))
	require.Equal(t, []int{500, 500, 500, 500, 500, 500, 200, 200}, statuses(efatest.Fault{Op: on, When: efatest.When{Always: true}}, 1))
	chance := efatest.Fault{Op: on, When: efatest.When{Always: true, Chance: .5}}
	require.Equal(t, statuses(chance, 7), statuses(chance, 7), "the seed decides")
	require.Contains(t, statuses(chance, 7), 200)
	require.Contains(t, statuses(chance, 7), 500)
	never := efatest.Fault{Match: func(r *http.Request) bool { return r.PathValue("inbox") == "ibx_other" }}
	require.NotContains(t, statuses(never, 1), 500)
}

func TestHooksStandAtEachPoint(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	type moment struct {
		at   efatest.Point
		sent int
	}
	var seen []moment
	srv.OnRequest(func(_ efatest.Op, at efatest.Point, _ *http.Request) {
		seen = append(seen, moment{at, len(srv.Sends())})
	})
	api.send("k", hello)
	srv.Close() // waits for the last hook
	require.Equal(t, []moment{{efatest.BeforeEffect, 0}, {efatest.AfterEffect, 1}, {efatest.AfterAnswer, 1}}, seen)
}

func TestAHookMayCutTheConnection(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	cut := true
	srv.OnRequest(func(_ efatest.Op, at efatest.Point, _ *http.Request) {
		if cut && at == efatest.AfterEffect {
			cut = false
			panic(http.ErrAbortHandler)
		}
	})
	_, err := api.do("POST", "/inboxes/ibx_main/messages", hello, "Idempotency-Key", "k")
	require.Error(t, err)
	require.Equal(t, 202, api.send("k", hello).status, "the key is not in progress for ever")
	require.Len(t, srv.Messages(""), 1)
}

func TestFaultsOfEvents(t *testing.T) {
	t.Parallel()
	order := func(f efatest.EventFault) (got []string) {
		srv, _ := setup(t, efatest.Config{})
		names := map[string]string{}
		srv.WebhookHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, names[r.Header.Get("webhook-id")]) }))
		srv.FaultEvents(f)
		for _, name := range []string{"a", "b", "c"} {
			names[srv.Inbound(efatest.Mail{}).EventID] = name
		}
		srv.Drain(t.Context())
		got = append(got, "|")
		srv.Advance(time.Minute)
		return got
	}
	require.Equal(t, []string{"a", "b", "c", "|"}, order(efatest.EventFault{Type: "other"}))
	require.Equal(t, []string{"b", "c", "|"}, order(efatest.EventFault{DropPush: true}))
	require.Equal(t, []string{"a", "a", "a", "b", "c", "|"}, order(efatest.EventFault{Copies: 2}))
	require.Equal(t, []string{"b", "c", "|", "a"}, order(efatest.EventFault{DelayPush: time.Second}))
	require.Equal(t, []string{"b", "c", "a", "|"}, order(efatest.EventFault{Reorder: true}))
	require.Equal(t, []string{"c", "a", "b", "|"}, order(efatest.EventFault{Reorder: true, When: efatest.When{Times: 2}}))
	require.Equal(t, []string{"a", "b", "c", "|"}, order(efatest.EventFault{Reorder: true, When: efatest.When{Times: 3}}))
}

func TestALateEventByFault(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	srv.FaultEvents(efatest.EventFault{Type: efatest.MessageReceived, Late: time.Second})
	srv.Inbound(efatest.Mail{})
	srv.Inbound(efatest.Mail{})
	require.Equal(t, []int{2}, sequences(api.events("")))
	srv.Advance(time.Second)
	require.Equal(t, []int{1, 2}, sequences(api.events("")))
}

func TestUndocumentedRequests(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	for _, c := range [][2]string{
		{"GET", "/messages"},
		{"DELETE", "/events"},
		{"HEAD", "/events"},
		{"GET", "/events/"},
		{"GET", "//events"},
		{"GET", "/inboxes/ibx_main/messages"},
		{"POST", "/events"},
	} {
		require.Equal(t, 404, api.must(c[0], c[1], "").status, "%v", c)
	}
	require.Len(t, srv.Undocumented(), 7)
	require.Len(t, srv.Violations(), 7)
	api.events("after=3")
	require.Len(t, srv.Violations(), 8)
	require.Len(t, srv.Undocumented(), 7)
	require.Equal(t, 1, srv.Count(efatest.OpEvents))
}
