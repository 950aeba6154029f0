package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
// event each. Both handlers written by hand use the reference verifier, one
// transaction a request and a pool of 10. "plain" takes four trips: begin,
// event ID, a row for a job, commit. "by-hand" does what Route does, in six:
// begin, event ID, the thread's workflow, its input, its status, commit.
func BenchmarkWebhook(b *testing.B) {
	b.Run("plain", func(b *testing.B) { hammer(b, plainReceiver(b)) })
	b.Run("by-hand", func(b *testing.B) { hammer(b, byHandReceiver(b)) })
	b.Run("replywake", func(b *testing.B) { hammer(b, receiver(b)) })
}

// hookBody is what a handler written by hand reads.
type hookBody struct {
	ID   string
	Data struct {
		Thread string `json:"thread_id"`
	}
}

func plainReceiver(b *testing.B) http.Handler {
	db := testdb.Postgres(b)
	pool := poolOf(b, db, 10)
	execSQL(b, pool, `create table %[1]s.processed_events (event_id text primary key);
		create table %[1]s.agent_jobs (id bigint generated always as identity primary key, payload jsonb not null)`, db.Schema)
	claim := fmt.Sprintf(`insert into %s.processed_events values ($1) on conflict do nothing`, db.Schema)
	effect := fmt.Sprintf(`insert into %s.agent_jobs (payload) values ($1)`, db.Schema)
	return written(b, pool, func(ctx context.Context, tx pgx.Tx, hook hookBody, body []byte) error {
		tag, err := tx.Exec(ctx, claim, hook.ID)
		if err == nil && tag.RowsAffected() == 1 {
			_, err = tx.Exec(ctx, effect, body)
		}
		return err
	})
}

func byHandReceiver(b *testing.B) http.Handler {
	db := testdb.Postgres(b)
	pool := poolOf(b, db, 10)
	execSQL(b, pool, `create table %[1]s.processed_events (event_id text primary key);
		create table %[1]s.workflows (id text primary key, status text not null, due timestamptz, state jsonb);
		create index on %[1]s.workflows (due) where due is not null;
		create table %[1]s.threads (thread text primary key, workflow text not null);
		create table %[1]s.inputs (id bigint generated always as identity primary key, workflow text not null, event_id text not null, payload jsonb not null);
		create index on %[1]s.inputs (workflow);
		insert into %[1]s.workflows select 'w' || n, 'waiting', null, '{}' from generate_series(0, %[2]d) n;
		insert into %[1]s.threads select 'thd_' || n, 'w' || n from generate_series(0, %[2]d) n;
		analyze %[1]s.workflows, %[1]s.threads`, db.Schema, flows-1)
	claim := fmt.Sprintf(`insert into %s.processed_events values ($1) on conflict do nothing`, db.Schema)
	owner := fmt.Sprintf(`select workflow from %s.threads where thread = $1`, db.Schema)
	input := fmt.Sprintf(`insert into %s.inputs (workflow, event_id, payload) values ($1, $2, $3)`, db.Schema)
	wake := fmt.Sprintf(`update %s.workflows set status = 'runnable', due = now() where id = $1`, db.Schema)
	return written(b, pool, func(ctx context.Context, tx pgx.Tx, hook hookBody, body []byte) error {
		tag, err := tx.Exec(ctx, claim, hook.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		var workflow string
		if err := tx.QueryRow(ctx, owner, hook.Data.Thread).Scan(&workflow); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, input, workflow, hook.ID, body); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, wake, workflow)
		return err
	})
}

// written is a handler as one writes it: verify, decode, work in a transaction.
func written(b *testing.B, pool *pgxpool.Pool, work func(context.Context, pgx.Tx, hookBody, []byte) error) http.Handler {
	v, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	require.NoError(b, err)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = v.Verify(body, r.Header)
		}
		var hook hookBody
		if err == nil {
			err = json.Unmarshal(body, &hook)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		err = pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error { return work(r.Context(), tx, hook, body) })
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
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

// hammer posts b.N signed webhooks over the connections. The requests are made
// beforehand and go through bare sockets, so that what is measured is the
// server: an HTTP client would cost as much as it does.
func hammer(b *testing.B, h http.Handler) {
	srv := httptest.NewServer(h)
	defer srv.Close()
	requests := make([][]byte, b.N)
	for n := range requests {
		requests[n] = request(b, n)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range connections {
		wg.Go(func() {
			if err := post(srv.Listener.Addr().String(), requests, &next); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func request(b *testing.B, n int) []byte {
	id := "evt_" + strconv.Itoa(n)
	body := fmt.Appendf(nil, `{"id":%q,"type":"message.received","api_version":"2026-09-19","data":{"message_id":"msg_%d","thread_id":"thd_%d","inbox_id":"ibx_main","environment":"test","simulated":true,"pad":%q}}`,
		id, n, n%flows, bytes.Repeat([]byte("x"), 400))
	header, err := verify.Sign(verify.RawSecret(secret), id, time.Now(), body)
	require.NoError(b, err)
	req := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
	req.Header = header
	var raw bytes.Buffer
	require.NoError(b, req.Write(&raw))
	return raw.Bytes()
}

// post sends requests over one connection, the next when the last is answered.
func post(addr string, requests [][]byte, next *atomic.Int64) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for n := next.Add(1); n <= int64(len(requests)); n = next.Add(1) {
		if _, err := conn.Write(requests[n-1]); err != nil {
			return err
		}
		status, err := answers.ReadString('\n')
		for line := status; err == nil && line != "\r\n"; {
			line, err = answers.ReadString('\n')
		}
		if err != nil || !strings.HasPrefix(status, "HTTP/1.1 204") {
			return fmt.Errorf("answered %q: %w", status, err)
		}
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
