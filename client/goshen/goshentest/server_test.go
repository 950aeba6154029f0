package goshentest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/goshen/goshentest"
)

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]goshentest.Config{
		"speed":       {Speed: -1},
		"inbox":       {Inboxes: []string{"no address"}},
		"upper case":  {Inboxes: []string{"Agent@example.com"}},
		"inbox twice": {Inboxes: []string{"a@b", "a@b"}},
		"key":         {Keys: []goshentest.Key{{}}},
		"key's inbox": {Keys: []goshentest.Key{{Token: "gme_1", Inbox: "other@example.com"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := goshentest.Start(cfg)
			require.Error(t, err)
		})
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	inboxes := []string{"a@mail.goshen.invalid", "b@mail.goshen.invalid"}
	srv, a := setup(t, goshentest.Config{Inboxes: inboxes, Keys: []goshentest.Key{
		{Token: "bze_all"}, {Token: "gme_b", Inbox: inboxes[1]}, {Token: "bze_read", Scopes: []string{goshentest.ScopeMessagesRead}},
	}})
	assert.Equal(t, 401, a.as("nobody").get(a.inbox()+"/messages").status)
	assert.Equal(t, "forbidden", a.as("gme_b").get(a.inbox()+"/messages").code())
	assert.Equal(t, 200, a.as("gme_b").get("/inboxes/b%40mail.goshen.invalid/messages").status)
	assert.Len(t, a.as("gme_b").get("/inboxes").rows("inboxes"), 1)
	assert.Len(t, a.get("/inboxes").rows("inboxes"), 2)
	assert.Equal(t, inboxes[1], a.get("/inboxes/b%40mail.goshen.invalid").str("address"))
	assert.Equal(t, "insufficient_scope", a.as("bze_read").must("POST", a.inbox()+"/messages/send", hello).code())
	assert.Equal(t, "not_found", a.get("/inboxes/c%40mail.goshen.invalid/messages").code())
	assert.Equal(t, "not_configured", a.get("/usage").code())
	assert.Empty(t, srv.Violations())
	srv.RevokeKey("bze_all")
	assert.Equal(t, 401, a.get("/inboxes").status)
	srv.AddKey(goshentest.Key{Token: "bze_all"})
	assert.Equal(t, 200, a.get("/inboxes").status)
}

func TestViolations(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(api) reply{
		"path":             func(a api) reply { return a.get("/events") },
		"method":           func(a api) reply { return a.must("DELETE", a.message("<a@b>"), "") },
		"query":            func(a api) reply { return a.get(a.inbox() + "/messages?cursor=1") },
		"query on a send":  func(a api) reply { return a.must("POST", a.inbox()+"/messages/send?x=1", hello) },
		"limit":            func(a api) reply { return a.get(a.inbox() + "/messages?limit=101") },
		"token of its own": func(a api) reply { return a.get(a.inbox() + "/messages?pageToken=20") },
		"empty search":     func(a api) reply { return a.get(a.inbox() + "/messages/search") },
		"bodies":           func(a api) reply { return a.get(a.inbox() + "/threads/x?includeBodies=yes") },
		"no key":           func(a api) reply { return a.must("POST", a.inbox()+"/messages/send", hello) },
		"no recipient":     func(a api) reply { return a.send("k", `{"text":"x"}`) },
		"no content":       func(a api) reply { return a.send("k", `{"to":["a@b"]}`) },
		"display name":     func(a api) reply { return a.send("k", `{"to":["A <a@b>"],"text":"x"}`) },
		"field":            func(a api) reply { return a.send("k", `{"to":["a@b"],"text":"x","from":"c@d"}`) },
		"no JSON":          func(a api) reply { return a.send("k", `xyzzy`) },
		"two keys":         func(a api) reply { return a.send("k", `{"to":["a@b"],"text":"x","idempotencyKey":"l"}`) },
		"subject of a reply": func(a api) reply {
			return a.must("POST", a.message("<a@b>")+"/reply", `{"text":"x","subject":"y"}`, "Idempotency-Key", "k")
		},
		"labels": func(a api) reply { return a.must("PATCH", a.message("<a@b>")+"/labels", `{"labels":["x"]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, a := setup(t, goshentest.Config{})
			assert.Contains(t, []int{400, 404}, request(a).status)
			assert.Len(t, srv.Violations(), 1)
			assert.Empty(t, srv.Sends())
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	srv, a := setup(t, goshentest.Config{})
	armed := srv.Fault(goshentest.Fault{Op: goshentest.OpListMessages, When: goshentest.When{Skip: 1, Times: 2}, Status: 503, RetryAfter: 1})
	var got []int
	for range 4 {
		r := a.get(a.inbox() + "/messages")
		got = append(got, r.status)
		if r.status == 503 {
			assert.Equal(t, true, r.transient())
			assert.Equal(t, "1", r.header.Get("Retry-After"))
		}
	}
	assert.Equal(t, []int{200, 503, 503, 200}, got)
	assert.Equal(t, 2, armed.Hits())

	srv.Fault(goshentest.Fault{Status: 422, Code: "odd", Transient: true})
	r := a.get("/inboxes")
	assert.Equal(t, "odd", r.code())
	assert.Equal(t, true, r.transient())
	srv.Fault(goshentest.Fault{Garbage: "<html>"})
	assert.Equal(t, "<html>", a.get("/inboxes").raw)
	srv.Fault(goshentest.Fault{Op: goshentest.OpSend, Drop: goshentest.DropRequest})
	_, err := a.do("POST", a.inbox()+"/messages/send", hello, "Idempotency-Key", "k")
	require.Error(t, err)
	assert.Empty(t, srv.Sends())
	srv.Fault(goshentest.Fault{Drop: goshentest.DropAnswer}).Disarm()
	assert.Equal(t, 200, a.send("k", hello).status)
}

func TestRealSocket(t *testing.T) {
	t.Parallel()
	srv := goshentest.NewServer(t, goshentest.Config{})
	a := api{t, srv, srv.Key()}
	srv.Inbound(goshentest.Mail{From: "a@example.com", MessageID: "<odd/#?%@example.com>", Text: "hi"})
	r := a.get(a.message("<odd/#?%@example.com>"))
	assert.Equal(t, "hi", r.str("text"), fmt.Sprint(r))
	cut := false
	srv.OnRequest(func(_ goshentest.Op, at goshentest.Point, _ *http.Request) {
		if cut && at == goshentest.AfterEffect {
			panic(http.ErrAbortHandler)
		}
	})
	cut = true
	_, err := a.do("GET", "/inboxes", "")
	require.Error(t, err)
}
