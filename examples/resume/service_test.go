package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/verify"
)

func TestFaultsStartNothing(t *testing.T) {
	t.Parallel()
	p := newProcess(t, efatest.NewServer(t, efatest.Config{}), sqliteIn(t), "EFA_API_KEY=", "LEASE=soon", "EFA_WEBHOOK_SECRET=tooshort")
	p.start()
	require.Equal(t, 2, p.exit(10*time.Second))
	for _, want := range []string{"EFA_API_KEY: is required", "LEASE: ", "EFA_WEBHOOK_SECRET: "} {
		require.Contains(t, p.log.String(), want)
	}
	require.NotContains(t, p.log.String(), "tooshort")
	require.Zero(t, p.status("/healthz"))
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	other := newProcess(t, srv, sqliteIn(t), "LISTEN_ADDR="+strings.TrimPrefix(p.url, "http://"))
	other.start()
	require.Equal(t, 1, other.exit(10*time.Second))
	require.Contains(t, other.log.String(), "LISTEN_ADDR: ")
	require.Contains(t, other.log.String(), "address already in use")
}

func TestDoor(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	const other = `{"id":"evt_%s","type":%q,"api_version":"2026-09-19","data":{"message_id":"msg_1","thread_id":"thd_1","inbox_id":%q}}`
	genuine := fmt.Sprintf(other, "1", "message.received", "ibx_other")
	now := time.Now()

	// Other routes
	{
		for path, want := range map[string]int{
			"/hooks/efa": 405, "/healthz": 200, "/readyz": 200,
			"/": 404, "/hooks": 404, "/hooks/efa/": 404, "//hooks/efa": 404, "/unmatched": 404, "/metrics": 404, "/review/": 404, "/workflows/x": 404,
		} {
			require.Equal(t, want, p.status(path), path)
		}
	}
	// Genuine, of a foreign inbox, twice
	{
		require.Equal(t, 204, p.push(srv, "evt_1", now, genuine))
		require.Equal(t, 204, p.push(srv, "evt_1", now, genuine))
	}
	// Of a type nobody knows
	{
		require.Equal(t, 204, p.push(srv, "evt_2", now, fmt.Sprintf(other, "2", "message.folded", srv.Inbox())))
	}
	// Edges of the tolerance
	{
		require.Equal(t, 204, p.push(srv, "evt_1", now.Add(-4*time.Minute), genuine))
		require.Equal(t, 204, p.push(srv, "evt_1", now.Add(4*time.Minute), genuine))
		require.Equal(t, 400, p.push(srv, "evt_1", now.Add(-6*time.Minute), genuine))
		require.Equal(t, 400, p.push(srv, "evt_1", now.Add(6*time.Minute), genuine))
	}
	// Forged
	{
		header, err := verify.Sign(verify.RawSecret(secretBefore), "evt_3", now, []byte(genuine))
		require.NoError(t, err)
		require.Equal(t, 400, p.post(header, strings.NewReader(genuine)))
		header, err = verify.Sign(verify.RawSecret(srv.Secret()), "evt_1", now, []byte(genuine))
		require.NoError(t, err)
		require.Equal(t, 400, p.post(header, strings.NewReader(genuine+" ")))
		header.Set("webhook-id", "evt_4")
		require.Equal(t, 400, p.post(header, strings.NewReader(genuine)))
		require.Equal(t, 400, p.post(http.Header{}, strings.NewReader(genuine)))
	}
	// Too large
	{
		require.Equal(t, 413, p.push(srv, "evt_5", now, `{"id":"evt_5","x":"`+strings.Repeat("x", verify.DefaultMaxBody)+`"}`))
	}
	// Genuine and not an event
	{
		for range 10 { // a newer version may read it
			require.Equal(t, 500, p.push(srv, "evt_6", now, "no JSON"))
		}
		require.Equal(t, 204, p.push(srv, "evt_6", now, "no JSON"), "it does not come for ever")
		require.Equal(t, 500, p.push(srv, "evt_7", now, genuine), "another ID than its delivery's")
	}
	require.Empty(t, p.unmatched(), "none of this is anybody's mail")
	require.Empty(t, srv.Sends())
}

func TestFailStatus(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	p := newProcess(t, srv, sqliteIn(t), "EFA_VERIFY_FAIL_STATUS=503").startReady()
	require.Equal(t, 503, p.post(http.Header{}, strings.NewReader("{}")))
}

func TestSecretsRotate(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	body := `{"id":"evt_1","type":"webhook.test","api_version":"2026-09-19","data":{}}`
	header, err := verify.Sign(verify.RawSecret(secretBefore), "evt_1", time.Now(), []byte(body))
	require.NoError(t, err)

	p := newProcess(t, srv, sqliteIn(t), "EFA_WEBHOOK_SECRET_PREVIOUS="+secretBefore).startReady()
	require.Equal(t, 204, p.post(header, strings.NewReader(body)))
	require.Contains(t, p.log.String(), "the previous webhook secret is accepted too")
	require.NotContains(t, p.log.String(), secretBefore)

	p = newProcess(t, srv, sqliteIn(t), "EFA_WEBHOOK_SECRET_PREVIOUS="+secretBefore, "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL=2026-01-01T00:00:00Z").startReady()
	require.Equal(t, 400, p.post(header, strings.NewReader(body)))
}

func TestSweepAlone(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	p := newProcess(t, srv, sqliteIn(t), "EFA_WEBHOOK_SECRET=").startReady()
	require.Equal(t, 404, p.status("/hooks/efa"))
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	srv.Check(t)
}

func TestWithoutAdminToken(t *testing.T) {
	t.Parallel()
	p := newProcess(t, efatest.NewServer(t, efatest.Config{}), sqliteIn(t), "ADMIN_TOKEN=").startReady()
	require.Zero(t, p.ask("GET", "/unmatched", nil, nil), "nothing listens there")
}

// answerQuestions lets every counterparty answer its question once.
func answerQuestions(srv *efatest.Server) {
	srv.OnSend(func(m efatest.Send) {
		if m.ReplyTo == "" {
			srv.Inbound(efatest.Mail{From: m.To[0], Thread: m.ThreadID, Text: "yes"})
		}
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	srv.Webhook(p.url + "/hooks/efa")
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	page := p.page("/metrics")
	for _, want := range []string{`webhook_deliveries_total{`, `result="fresh"`, "sweep_age_seconds", "messaging_client_consumed_messages", "go_goroutines"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "ann@example.com")
}

// A webhook that reaches nobody is found, and so is that the sweep made up for it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	srv.Webhook(p.url + "/hooks/nowhere") // 404: the provider gives up at once
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	var report doctor.Report
	p.until("the provider gave up, the sweep did not", func() bool {
		require.NoError(t, json.Unmarshal([]byte(p.page("/doctor")), &report))
		return len(report.Endpoints) == 1 && report.Endpoints[0].GivenUp.BySweep > 0
	})
	require.NotEqual(t, doctor.OK, report.Worst())
	require.NotContains(t, p.page("/doctor"), "ann@example.com")
}

func (p *process) page(path string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.admin+path, http.NoBody)
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := local.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, resp.StatusCode)
	return string(b)
}

// While the provider refuses or fails, nothing is lost and somebody can see it.
func TestProviderTrouble(t *testing.T) {
	t.Parallel()
	always := efatest.When{Always: true}
	for name, c := range map[string]struct {
		fault    efatest.Fault
		notReady string // which part of /readyz says so
	}{
		"sends 500":            {efatest.Fault{Op: efatest.OpSend, Status: 500, When: always}, ""},
		"sends 429":            {efatest.Fault{Op: efatest.OpSend, Status: 429, RetryAfter: time.Second, When: always}, ""},
		"sends garbage":        {efatest.Fault{Op: efatest.OpSend, Garbage: "<html>busy</html>", When: always}, ""},
		"sends break off":      {efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropMidBody, When: always}, ""},
		"threads 500":          {efatest.Fault{Op: efatest.OpThread, Status: 500, When: always}, ""},
		"threads garbage":      {efatest.Fault{Op: efatest.OpThread, Garbage: "[]", When: always}, ""},
		"bodies 500":           {efatest.Fault{Op: efatest.OpBody, Status: 500, When: always}, ""},
		"events 401":           {efatest.Fault{Op: efatest.OpEvents, Status: 401, When: always}, "sweep"},
		"events 500":           {efatest.Fault{Op: efatest.OpEvents, Status: 500, When: always}, ""},
		"events 429":           {efatest.Fault{Op: efatest.OpEvents, Status: 429, When: always}, ""},
		"events garbage":       {efatest.Fault{Op: efatest.OpEvents, Garbage: "{}", When: always}, ""},
		"events 410 for ever":  {efatest.Fault{Op: efatest.OpEvents, Status: 410, When: always}, ""},
		"everything is absent": {efatest.Fault{Drop: efatest.DropRequest, When: always}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := efatest.NewServer(t, efatest.Config{Speed: 100})
			answerQuestions(srv)
			p := newProcess(t, srv, sqliteIn(t)).startReady()
			srv.Webhook(p.url + "/hooks/efa")
			fault := srv.Fault(c.fault)
			require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
			p.until("the fault strikes", func() bool { return fault.Hits() >= 2 || c.notReady != "" && fault.Hits() > 0 })
			if c.notReady != "" {
				p.until("not ready", func() bool { return p.notReady()[c.notReady] != "" })
				p.kill() // a refused credential is tried again in 5 minutes, or after a restart
				fault.Disarm()
				p.startReady()
			}
			require.Equal(t, 200, p.status("/healthz"))
			fault.Disarm()
			p.until("done", func() bool { return p.workflow("w1").Status == "done" })
			require.Len(t, srv.Sends(), 2)
			require.Empty(t, p.unmatched())
			srv.Check(t)
		})
	}
}

// A refused key is seen, and settles nothing: it is tried again in 5 minutes.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 401, When: efatest.When{Always: true}})
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("not ready", func() bool { return strings.Contains(p.notReady()["engine"], "credential") })
	require.Equal(t, 200, p.status("/healthz"))
	require.Equal(t, "sending", p.workflow("w1").Status)
	require.Equal(t, 1, srv.Count(efatest.OpSend))
}

func TestWebhooksAreServedWhileTheEventsFail(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	srv.Webhook(p.url + "/hooks/efa")
	srv.Fault(efatest.Fault{Op: efatest.OpEvents, Status: 503, When: efatest.When{Always: true}})
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
}

// With SWEEP_START=now nothing is opened before the head is known: else a
// reply to what is sent could count as history.
func TestNothingIsOpenBeforeTheStreamHasAPosition(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	old := srv.Inbound(efatest.Mail{From: "ann@example.com", Text: "last year's mail"})
	answerQuestions(srv)
	fault := srv.Fault(efatest.Fault{Op: efatest.OpEvents, Status: 503, When: efatest.When{Always: true}})
	p := newProcess(t, srv, sqliteIn(t))
	p.start()
	p.until("not attached", func() bool { return strings.Contains(p.notReady()["sweep"], "not attached") })
	require.Contains(t, p.notReady(), "start")
	require.Equal(t, 200, p.status("/healthz"))
	require.Equal(t, 503, p.push(srv, "evt_1", time.Now(), "{}"), "it may clear")
	require.Equal(t, 400, p.push(srv, "evt_1", time.Now().Add(-time.Hour), "{}"), "it never will")
	require.Equal(t, 503, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	fault.Disarm()
	p.until("ready", func() bool { return p.status("/readyz") == 200 })
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" })
	require.NotContains(t, p.workflow("w1").RepliesSeen, old.MessageID)
	require.Empty(t, p.unmatched())
}

func TestBeginning(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	old := srv.Inbound(efatest.Mail{From: "ann@example.com", Text: "last year's mail"})
	p := newProcess(t, srv, sqliteIn(t), "SWEEP_START=beginning").startReady()
	p.until("before a person", func() bool { return len(p.unmatched()) == 1 })
	require.Equal(t, old.EventID, p.unmatched()[0].EventID)
}

func TestDatabaseGoesAndComes(t *testing.T) {
	t.Parallel()
	database := testdb.NewServer(t, testdb.ServerConfig{})
	srv := efatest.NewServer(t, efatest.Config{Speed: 100})
	answerQuestions(srv)
	require.NoError(t, database.Stop())

	p := newProcess(t, srv, database.URL())
	p.start()
	p.until("alive", func() bool { return p.status("/healthz") == 200 })
	require.NotEmpty(t, p.notReady(), "it waits for its database")
	require.NoError(t, database.Start(t.Context()))
	p.until("ready", func() bool { return p.status("/readyz") == 200 })
	srv.Webhook(p.url + "/hooks/efa")

	for i, end := range []func() error{database.Stop, database.Crash} {
		id := fmt.Sprintf("w%d", i)
		require.NoError(t, end())
		p.until("not ready", func() bool { return p.notReady()["engine"] == "the database does not answer" })
		require.Equal(t, 200, p.status("/healthz"))
		event := fmt.Sprintf(`{"id":"evt_%d","type":"webhook.test","api_version":"2026-09-19","data":{}}`, i)
		require.Equal(t, 503, p.push(srv, fmt.Sprintf("evt_%d", i), time.Now(), event))
		require.Equal(t, 400, p.post(http.Header{}, strings.NewReader(event)), "a forgery is one, whatever the database does")
		require.Equal(t, 503, p.ask("POST", "/workflows", ask(id, "ann@example.com", 1, srv), nil))
		require.Equal(t, 503, p.ask("GET", "/workflows/x", nil, nil))
		require.Equal(t, 503, p.ask("GET", "/unmatched", nil, nil))
		require.Equal(t, 503, p.ask("POST", "/unmatched/x/bind", map[string]string{"workflow_id": "x"}, nil))
		require.Equal(t, 503, p.ask("GET", "/review/", nil, nil))
		require.NoError(t, database.Start(t.Context()))
		p.until("ready again", func() bool { return p.status("/readyz") == 200 })
		require.Equal(t, 201, p.ask("POST", "/workflows", ask(id, "ann@example.com", 1, srv), nil))
		p.until("done", func() bool { return p.workflow(id).Status == "done" })
	}
	require.NotContains(t, strings.Join(valuesOf(p.notReady()), " "), "postgres")
	srv.Check(t)
}

func valuesOf(m map[string]string) (out []string) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func TestTheDatabaseIsWaitedForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, began, away := slog.New(slog.DiscardHandler), time.Now(), errors.New("connection refused")
		minute, end := context.WithTimeout(t.Context(), databasePatience)
		defer end()
		err := waitForDatabase(minute, log, func(context.Context) error { return away })
		require.ErrorIs(t, err, away)
		require.ErrorContains(t, err, "was not there within 1m")
		require.Equal(t, time.Minute, time.Since(began))

		tries := 0
		require.NoError(t, waitForDatabase(t.Context(), log, func(context.Context) error {
			if tries++; tries < 10 {
				return away
			}
			return nil
		}))

		foreign := fmt.Errorf("migrate: %w", resume.ErrStream)
		require.ErrorIs(t, waitForDatabase(t.Context(), log, func(context.Context) error { return foreign }), resume.ErrStream, "it will not clear")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, waitForDatabase(ctx, log, func(context.Context) error { return away }), context.Canceled)
	})
}

// A file that is no database does not become one by waiting.
func TestABrokenFileIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "replywake.db")
	require.NoError(t, os.WriteFile(path, []byte(sqliteBegins+strings.Repeat("garbage ", 1000)), 0o600))
	p := newProcess(t, newEFA(t), "sqlite:"+path)
	p.start()
	require.Equal(t, 1, p.exit(10*time.Second))
	require.Contains(t, p.log.String(), "the database cannot be used")
}

func TestForeignStreamIsRefused(t *testing.T) {
	t.Parallel()
	database := sqliteIn(t)
	one, other := efatest.NewServer(t, efatest.Config{}), efatest.NewServer(t, efatest.Config{})
	p := newProcess(t, one, database).startReady()
	require.Zero(t, p.terminate(10*time.Second))
	p = newProcess(t, other, database) // the same project at another address
	p.start()
	require.Equal(t, 1, p.exit(10*time.Second))
	require.Contains(t, p.log.String(), "another project or environment")
}

func TestStopWhileBusy(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	database := testdb.Database(t)
	p := newProcess(t, srv, database).startReady()
	srv.Webhook(p.url + "/hooks/efa")
	// Every read and every send is under way when the signal comes.
	slow := srv.Fault(efatest.Fault{Op: efatest.OpBody, Delay: 2 * time.Second, When: efatest.When{Always: true}})
	slowSends := srv.Fault(efatest.Fault{Op: efatest.OpSend, Linger: 500 * time.Millisecond, When: efatest.When{Always: true}})
	for i := range 12 {
		id := fmt.Sprintf("w%d", i)
		require.Equal(t, 201, p.ask("POST", "/workflows", ask(id, id+"@example.com", 1, srv), nil))
	}
	p.until("reading", func() bool { return slow.Hits() > 0 })
	began := time.Now()
	require.Zero(t, p.terminate(10*time.Second))
	t.Logf("stopped in %s", time.Since(began))
	slow.Disarm()
	slowSends.Disarm()

	p = newProcess(t, srv, database).startReady()
	p.until("done", func() bool {
		for i := range 12 {
			if p.workflow(fmt.Sprintf("w%d", i)).Status != "done" {
				return false
			}
		}
		return true
	})
	require.Len(t, srv.Sends(), 24)
	srv.Check(t)
}

// A provider that never answers, and clients that never end, delay a stop by
// no more than the 10 s.
func TestStopWithinTheTime(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	stuck := srv.Fault(efatest.Fault{Op: efatest.OpBody, Delay: 20 * time.Second, When: efatest.When{Always: true}})
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("reading", func() bool { return stuck.Hits() > 0 })
	body, _ := io.Pipe()
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.admin+"/workflows", body)
		req.SetBasicAuth("", adminToken)
		if resp, err := local.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	require.Zero(t, p.terminate(10*time.Second))
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	answerQuestions(srv)
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	stuck := srv.Fault(efatest.Fault{Op: efatest.OpBody, Delay: 20 * time.Second, When: efatest.When{Always: true}})
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "ann@example.com", 1, srv), nil))
	p.until("reading", func() bool { return stuck.Hits() > 0 })
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.until("stopping", func() bool { return strings.Contains(p.log.String(), "stopping") })
	began := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NotZero(t, p.exit(2*time.Second))
	require.Less(t, time.Since(began), 2*time.Second)
}

func TestStopBeforeTheDatabaseIsThere(t *testing.T) {
	t.Parallel()
	p := newProcess(t, efatest.NewServer(t, efatest.Config{}), "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable")
	p.start()
	p.until("alive", func() bool { return p.status("/healthz") == 200 })
	require.Zero(t, p.terminate(5*time.Second))
}

// The counterparty's words, addresses and subjects are in no log.
func TestNoStrangersTextIsLogged(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{})
	srv.OnSend(func(m efatest.Send) {
		if m.ReplyTo == "" {
			srv.Inbound(efatest.Mail{From: m.To[0], Thread: m.ThreadID, Subject: "STRANGE subject", Text: "STRANGE text"})
			srv.Inbound(efatest.Mail{From: "STRANGE@example.com", Subject: "STRANGE", Text: "STRANGE"})
		}
	})
	p := newProcess(t, srv, sqliteIn(t)).startReady()
	srv.Webhook(p.url + "/hooks/efa")
	require.Equal(t, 201, p.ask("POST", "/workflows", ask("w1", "STRANGE-ann@example.com", 1, srv), nil))
	p.until("done", func() bool { return p.workflow("w1").Status == "done" && len(p.unmatched()) == 1 })
	require.Zero(t, p.terminate(10*time.Second))
	require.NotContains(t, strings.ToLower(p.log.String()), "strange")
	require.NotContains(t, p.log.String(), srv.Key())
	require.False(t, bytes.Contains([]byte(p.log.String()), []byte(adminToken)))
}
