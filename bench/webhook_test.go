package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/verify"
)

const (
	secret      = "0123456789abcdef0123456789abcdef"
	connections = 32
	flows       = 20_000 // workflows that wait, each with a thread of its own
)

// BenchmarkWebhook: a webhook accepted, from the request to the answer after
// the commit, over 32 keep-alive connections with a fresh signature and a new
// event each. "plain" is what a handler writes by hand: the reference verifier
// and four statements (begin, event ID, effect, commit), pool of 10.
func BenchmarkWebhook(b *testing.B) {
	b.Run("plain", func(b *testing.B) { hammer(b, plainReceiver(b)) })
	b.Run("replywake", func(b *testing.B) { hammer(b, receiver(b)) })
}

func plainReceiver(b *testing.B) http.Handler {
	db := testdb.Postgres(b)
	pool := poolOf(b, db, 10)
	execSQL(b, pool, `create table %s.processed_events (event_id text primary key)`, db.Schema)
	execSQL(b, pool, `create table %s.agent_jobs (id bigint generated always as identity primary key, payload jsonb not null)`, db.Schema)
	claim := fmt.Sprintf(`insert into %s.processed_events values ($1) on conflict do nothing`, db.Schema)
	effect := fmt.Sprintf(`insert into %s.agent_jobs (payload) values ($1)`, db.Schema)
	v, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	require.NoError(b, err)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = v.Verify(body, r.Header)
		}
		var ev struct{ ID, Type string }
		if err == nil {
			err = json.Unmarshal(body, &ev)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := inFourTrips(r.Context(), pool, claim, effect, ev.ID, body); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func inFourTrips(ctx context.Context, pool *pgxpool.Pool, claim, effect, id string, payload []byte) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	tag, err := tx.Exec(ctx, claim, id)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 1 {
		if _, err := tx.Exec(ctx, effect, payload); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// receiver is Handler, Inbox and Route over workflows that wait for replies:
// each event is verified, recorded, placed with its workflow and wakes it.
func receiver(b *testing.B) http.Handler {
	db := testdb.Postgres(b)
	pool := poolOf(b, db, 10)
	mail, err := efa.New(efa.Config{Project: "prj_bench", Key: "efa_test_bench"})
	require.NoError(b, err)
	step := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
	eng, err := resume.NewPostgres(pool, mail, step, resume.Config{
		Schema: db.Schema, Inboxes: map[string][]string{"ibx_main": {"agent@agents.example"}},
	})
	require.NoError(b, err)
	require.NoError(b, eng.Migrate(b.Context()))
	execSQL(b, pool, `insert into %[1]s.workflows (engine, id, run, kind, inbox, counterparty, status, created_at, updated_at)
		select 'default', 'w' || n, 'r' || n, '', 'ibx_main', 'c' || n || '@example.com', 'waiting', now(), now() from generate_series(0, %[2]d) n`, db.Schema, flows-1)
	execSQL(b, pool, `insert into %[1]s.threads (engine, stream, inbox, thread, workflow, run, matched_by, at)
		select 'default', '%[3]s', 'ibx_main', 'thd_' || n, 'w' || n, 'r' || n, 'send', now() from generate_series(0, %[2]d) n`, db.Schema, flows-1, mail.Stream().Name)
	execSQL(b, pool, `analyze %[1]s.workflows, %[1]s.threads`, db.Schema)
	inbox, err := dedupe.NewPostgres(pool, dedupe.Config{Stream: mail.Stream(), Schema: db.Schema}, eng.Route)
	require.NoError(b, err)
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(secret)}})
	require.NoError(b, err)
	h, err := events.NewHandler(v, efa.Profile, inbox, events.HandlerConfig{})
	require.NoError(b, err)
	return h
}

// hammer posts b.N signed webhooks over the connections.
func hammer(b *testing.B, h http.Handler) {
	srv := httptest.NewServer(h)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	var n atomic.Int64
	b.SetParallelism(connections / 2) // times two processors
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := post(client, srv.URL, n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func post(client *http.Client, url string, n int64) error {
	id := "evt_" + strconv.FormatInt(n, 10)
	body := fmt.Appendf(nil, `{"id":%q,"type":"message.received","api_version":"2026-09-19","data":{"message_id":"msg_%d","thread_id":"thd_%d","inbox_id":"ibx_main","environment":"test","simulated":true,"pad":%q}}`,
		id, n, n%flows, bytes.Repeat([]byte("x"), 400))
	header, err := verify.Sign(verify.RawSecret(secret), id, time.Now(), body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}

func poolOf(tb testing.TB, db *testdb.DB, conns int32) *pgxpool.Pool {
	cfg, err := pgxpool.ParseConfig(db.URL)
	require.NoError(tb, err)
	cfg.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(tb.Context(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}

func execSQL(tb testing.TB, pool *pgxpool.Pool, format string, args ...any) {
	tb.Helper()
	_, err := pool.Exec(context.Background(), fmt.Sprintf(format, args...))
	require.NoError(tb, err)
}
