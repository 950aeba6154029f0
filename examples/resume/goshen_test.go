package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/verify"
)

func askGoshen(id, counterparty string, srv *goshentest.Server) request {
	return request{ID: id, InboxID: srv.Inbox(), Counterparty: counterparty, Subject: "Quote " + id, Text: "How much?", Replies: 1}
}

// answerOnGoshen lets every counterparty answer its question once.
func answerOnGoshen(srv *goshentest.Server) {
	srv.OnSend(func(m goshentest.Send) {
		if m.InReplyTo == "" {
			srv.Inbound(goshentest.Mail{Inbox: m.Inbox, From: m.To[0], InReplyTo: m.MessageID, Text: "yes"})
		}
	})
}

func TestGoshenDoor(t *testing.T) {
	t.Parallel()
	srv := newGoshen(t)
	p := newGoshenProcess(t, srv, sqliteIn(t)).startReady()
	const event = `{"type":%q,"inboxId":"other@goshen.example","occurredAt":"2026-09-20T18:05:12.000Z",` +
		`"message":{"messageId":"<1@example.com>","threadId":"t1"}}`
	genuine, secret, now := fmt.Sprintf(event, "email.received"), verify.Base64Secret(srv.Secret()), time.Now()

	for path, want := range map[string]int{
		"/hooks/goshen": 405, "/healthz": 200, "/readyz": 200, "/hooks/efa": 404, "/hooks/goshen/": 404, "/metrics": 404, "/unmatched": 404,
	} {
		require.Equal(t, want, p.status(path), path)
	}
	require.Equal(t, 204, p.pushSigned(secret, "d1", now, genuine), "genuine, of a foreign inbox")
	require.Equal(t, 204, p.pushSigned(secret, "d1", now, genuine), "again")
	require.Equal(t, 204, p.pushSigned(secret, "d2", now, genuine), "again, as another delivery")
	require.Equal(t, 204, p.pushSigned(secret, "d3", now, fmt.Sprintf(event, "email.folded")), "of a type nobody knows")

	require.Equal(t, 400, p.pushSigned(secret, "d1", now.Add(-6*time.Minute), genuine), "stale")
	require.Equal(t, 400, p.pushSigned(verify.Base64Secret(goshenBefore), "d4", now, genuine), "another secret")
	require.Equal(t, 400, p.pushSigned(verify.RawSecret(srv.Secret()), "d4", now, genuine), "the secret's text is not its key")
	require.Equal(t, 400, p.post(http.Header{}, strings.NewReader(genuine)), "not signed")
	header, err := verify.Sign(secret, "d4", now, []byte(genuine))
	require.NoError(t, err)
	require.Equal(t, 400, p.post(header, strings.NewReader(genuine+" ")), "tampered")

	for range 10 {
		require.Equal(t, 500, p.pushSigned(secret, "d5", now, `{"type":"email.received"}`), "a newer version may read it")
	}
	require.Equal(t, 204, p.pushSigned(secret, "d5", now, `{"type":"email.received"}`), "it does not come for ever")
	require.Empty(t, p.unmatched(), "none of this is anybody's mail")
	require.Empty(t, srv.Sends())
	srv.Check(t)
}

// What comes several times by one door and once more by the other is
// acknowledged once, and so is what only the sweep brings.
func TestGoshenBothDoors(t *testing.T) {
	t.Parallel()
	srv := goshentest.NewServer(t, goshentest.Config{Speed: 100})
	answerOnGoshen(srv)
	p := newGoshenProcess(t, srv, sqliteIn(t)).startReady()
	srv.Webhook(p.url + p.door)
	for id, fault := range map[string]goshentest.EventFault{
		"pushed": {Type: goshentest.EmailReceived, Copies: 3},
		"swept":  {Type: goshentest.EmailReceived, DropPush: true},
	} {
		armed := srv.FaultEvents(fault)
		require.Equal(t, 201, p.ask("POST", "/workflows", askGoshen(id, id+"@example.com", srv), nil))
		p.until("done", func() bool { return p.workflow(id).Status == "done" })
		require.Equal(t, 1, armed.Hits())
		seen := p.workflow(id).RepliesSeen
		require.Len(t, seen, 1)
		p.until("handled", func() bool {
			labels := strings.Join(srv.Labels(srv.Inbox(), seen[0]), " ")
			return labels == "received handled"
		})
		require.Len(t, p.workflow(id).RepliesSeen, 1)
	}
	require.Len(t, srv.Sends(), 4)
	require.Empty(t, p.unmatched())
	srv.Check(t)
	require.Zero(t, p.terminate(10*time.Second))
	require.NotContains(t, p.log.String(), srv.Key())
	require.NotContains(t, p.log.String(), "@example.com")
}

// One message whose labels Goshen will not change stops no sweep.
func TestGoshenMailThatCannotBeLabelled(t *testing.T) {
	t.Parallel()
	srv := newGoshen(t)
	p := newGoshenProcess(t, srv, sqliteIn(t), "GOSHEN_WEBHOOK_SECRET=").startReady()
	bad := srv.Inbound(goshentest.Mail{From: "who@example.com", MessageID: "<..>", Text: "?"}).MessageID
	srv.Fault(goshentest.Fault{Op: goshentest.OpLabelMessage, Status: 400, When: goshentest.When{Always: true}, Match: func(r *http.Request) bool {
		return r.PathValue("message") == bad
	}})
	p.until("before a person", func() bool { return len(p.unmatched()) == 1 })
	answerOnGoshen(srv)
	require.Equal(t, 201, p.ask("POST", "/workflows", askGoshen("w1", "ann@example.com", srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	require.Equal(t, 200, p.status("/readyz"))
	require.Contains(t, p.log.String(), "events are taken and cannot be settled")
	require.Equal(t, bad, p.unmatched()[0].MessageID)
	srv.Check(t)
}

// Two inboxes, no webhook, labels of one's own.
func TestGoshenSweepAlone(t *testing.T) {
	t.Parallel()
	inboxes := []string{"agent@goshen.example", "sales@goshen.example"}
	srv := goshentest.NewServer(t, goshentest.Config{Inboxes: inboxes})
	answerOnGoshen(srv)
	p := newGoshenProcess(t, srv, sqliteIn(t), "GOSHEN_WEBHOOK_SECRET=",
		"GOSHEN_INBOXES="+strings.Join(inboxes, ","), "GOSHEN_STREAM=office", "GOSHEN_HANDLED_LABEL=seen").startReady()
	require.Equal(t, 404, p.status(p.door))
	for _, inbox := range inboxes {
		r := askGoshen(inbox, "ann@example.com", srv)
		r.InboxID = inbox
		require.Equal(t, 201, p.ask("POST", "/workflows", r, nil))
		p.until("done", func() bool { return p.workflow(inbox).Status == "done" })
		require.Equal(t, []string{"received", "seen"}, srv.Labels(inbox, p.workflow(inbox).RepliesSeen[0]))
	}
	require.Len(t, srv.Sends(), 4)
	srv.Check(t)
}

// What was unread before is history, or is handed over; unread it is no more.
func TestGoshenStart(t *testing.T) {
	t.Parallel()
	for _, start := range []string{"now", "beginning"} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			srv := newGoshen(t)
			old := srv.Inbound(goshentest.Mail{From: "ann@example.com", Text: "last year's mail"})
			p := newGoshenProcess(t, srv, sqliteIn(t), "SWEEP_START="+start).startReady()
			want := []string{srv.Inbound(goshentest.Mail{From: "bob@example.com", Text: "today's"}).MessageID}
			if start == "beginning" {
				want = append(want, old.MessageID)
			}
			p.until("before a person", func() bool { return len(p.unmatched()) == len(want) })
			got := []string{}
			for _, it := range p.unmatched() {
				got = append(got, it.MessageID)
			}
			require.ElementsMatch(t, want, got)
			require.Equal(t, []string{"received", "handled"}, srv.Labels(srv.Inbox(), old.MessageID))
		})
	}
}

func TestGoshenSecretsRotate(t *testing.T) {
	t.Parallel()
	srv := newGoshen(t)
	p := newGoshenProcess(t, srv, sqliteIn(t), "GOSHEN_WEBHOOK_SECRET_PREVIOUS="+goshenBefore).startReady()
	const other = `{"type":"email.folded"}`
	require.Equal(t, 204, p.pushSigned(verify.Base64Secret(goshenBefore), "d1", time.Now(), other))
	require.Equal(t, 204, p.pushSigned(verify.Base64Secret(srv.Secret()), "d2", time.Now(), other))
	require.NotContains(t, p.log.String(), goshenBefore)

	p = newGoshenProcess(t, srv, sqliteIn(t),
		"GOSHEN_WEBHOOK_SECRET_PREVIOUS="+goshenBefore, "GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL=2026-01-01T00:00:00Z").startReady()
	require.Equal(t, 400, p.pushSigned(verify.Base64Secret(goshenBefore), "d1", time.Now(), other))
}

// PROVIDER may be changed and changed back: nothing of one provider's is sent
// or shown by the other.
func TestProvidersShareADatabase(t *testing.T) {
	t.Parallel()
	one, other, database := newEFA(t), newGoshen(t), sqliteIn(t)
	held := one.Fault(efatest.Fault{Op: efatest.OpSend, Status: 503, When: efatest.When{Always: true}})
	p := newProcess(t, one, database).startReady()
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, one), nil))
	p.until("tried", func() bool { return held.Hits() > 0 })
	require.Zero(t, p.terminate(10*time.Second))

	answerOnGoshen(other)
	p = newGoshenProcess(t, other, database).startReady()
	require.Equal(t, 404, p.ask("GET", "/workflows/w1", nil, nil))
	require.Equal(t, 201, p.ask("POST", "/workflows", askGoshen("w1", "bob@example.com", other), nil), "the same ID is another workflow")
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	require.Zero(t, p.terminate(10*time.Second))
	require.Len(t, other.Sends(), 2)
	other.Check(t)

	held.Disarm()
	answerQuestions(one)
	p = newProcess(t, one, database).startReady()
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	require.Len(t, one.Sends(), 2)
	one.Check(t)
}

// A key that is taken away makes the service not ready, and nothing else. The
// trouble of two inboxes is told once.
func TestGoshenReadiness(t *testing.T) {
	t.Parallel()
	inboxes := []string{"agent@goshen.example", "sales@goshen.example"}
	srv := goshentest.NewServer(t, goshentest.Config{Inboxes: inboxes})
	p := newGoshenProcess(t, srv, sqliteIn(t), "GOSHEN_INBOXES="+strings.Join(inboxes, ","), "GOSHEN_STREAM=office").startReady()
	srv.RevokeKey(srv.Key())
	p.until("not ready", func() bool { return p.notReady()["sweep"] != "" })
	require.Equal(t, "events: page: goshen: list messages: 401 unauthorized", p.notReady()["sweep"])
	require.Equal(t, 200, p.status("/healthz"))
	require.Equal(t, 200, p.ask("GET", "/unmatched", nil, nil))
	require.Equal(t, 201, p.ask("POST", "/workflows", askGoshen("w1", "ann@example.com", srv), nil), "it is sent once the key is good")
}

// Before the provider has accepted the key once, nothing is started or taken;
// people can look and decide, and metrics tell.
func TestRefusedKeyAtTheStart(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(t *testing.T) *process{
		"efa": func(t *testing.T) *process {
			return newProcess(t, newEFA(t), sqliteIn(t), "EFA_API_KEY=efa_test_wrong")
		},
		"goshen": func(t *testing.T) *process {
			return newGoshenProcess(t, newGoshen(t), sqliteIn(t), "GOSHEN_API_KEY=bze_wrong")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := of(t)
			p.start()
			p.until("not ready", func() bool { return strings.Contains(p.notReady()["sweep"], "401 unauth") })
			require.Contains(t, p.notReady(), "start")
			require.Contains(t, p.page("/metrics"), "go_goroutines")
			require.Contains(t, p.page("/review/"), "Nothing")
			require.Equal(t, 200, p.ask("GET", "/unmatched", nil, nil))
			require.Equal(t, 404, p.ask("POST", "/unmatched/x/bind", map[string]string{"workflow_id": "w1"}, nil))
			require.Equal(t, 503, p.ask("POST", "/workflows", request{"w1", "ibx", "ann@example.com", "s", "t", 1}, nil))
			require.Contains(t, p.log.String(), `level=WARN msg="the provider refuses the key: check it`)
			require.NotContains(t, p.log.String(), "_wrong")
			require.Zero(t, p.terminate(10*time.Second))
		})
	}
}

func newEFA(t *testing.T) *efatest.Server { return efatest.NewServer(t, efatest.Config{}) }

func newGoshen(t *testing.T) *goshentest.Server { return goshentest.NewServer(t, goshentest.Config{}) }
