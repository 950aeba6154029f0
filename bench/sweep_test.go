package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/testdb"
)

const (
	swept     = 100_000 // events of a sweep of ours
	seedSwept = 5_000   // and of the seed's loop, which is slow
)

// BenchmarkSweep: new events from the cursor API into Postgres, one job row
// each. "seed" is the loop that the polling article prints: pages of 100, each
// event's ID and each job its own commit, then the cursor. The metric is
// events/s; both read the same fake provider over loopback HTTP.
func BenchmarkSweep(b *testing.B) {
	b.Run("seed", func(b *testing.B) { sweepBench(b, seedSwept, seedLoop) })
	b.Run("replywake", func(b *testing.B) { sweepBench(b, swept, sweeperLoop) })
}

func sweepBench(b *testing.B, n int, loop func(b *testing.B, mail *efa.Client, pool *pgxpool.Pool, schema string)) {
	srv, mail := provider(b, n)
	defer srv.Close()
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		db := testdb.Postgres(b)
		pool := poolOf(b, db, 4)
		execSQL(b, pool, `create table %s.processed_events (event_id text primary key)`, db.Schema)
		execSQL(b, pool, `create table %s.agent_jobs (event_id text not null, payload bytea not null)`, db.Schema)
		execSQL(b, pool, `create table %s.sweep_cursor (cursor text not null)`, db.Schema)
		b.StartTimer()
		loop(b, mail, pool, db.Schema)
		b.StopTimer()
		var jobs int
		require.NoError(b, pool.QueryRow(context.Background(), "select count(*) from "+db.Schema+".agent_jobs").Scan(&jobs))
		require.Equal(b, n, jobs)
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// provider has n events of another inbox and a client that reads them.
func provider(tb testing.TB, n int) (*efatest.Server, *efa.Client) {
	srv, err := efatest.Start(efatest.Config{Inboxes: map[string]string{"ibx_main": "agent@agents.example", "ibx_other": "other@agents.example"}})
	require.NoError(tb, err)
	for i := range n {
		srv.Emit(efatest.Event{Type: efatest.MessageReceived, Inbox: "ibx_other", Data: map[string]any{
			"message_id": fmt.Sprintf("msg_%d", i), "thread_id": fmt.Sprintf("thd_%d", i), "inbox_id": "ibx_other", "environment": "test", "simulated": true,
		}})
	}
	mail, err := efa.New(efa.Config{BaseURL: srv.URL(), Project: srv.Project(), Key: srv.Key()})
	require.NoError(tb, err)
	return srv, mail
}

func seedLoop(b *testing.B, mail *efa.Client, pool *pgxpool.Pool, schema string) {
	ctx := b.Context()
	claim := "insert into " + schema + ".processed_events values ($1) on conflict do nothing"
	push := "insert into " + schema + ".agent_jobs values ($1, $2)"
	for page, err := range events.Pages(ctx, mail.Source(), 0) {
		require.NoError(b, err)
		for _, ev := range page.Events {
			tag, err := pool.Exec(ctx, claim, ev.ID)
			require.NoError(b, err)
			if tag.RowsAffected() == 1 {
				_, err = pool.Exec(ctx, push, ev.ID, ev.Data.Bytes())
				require.NoError(b, err)
			}
		}
		_, err = pool.Exec(ctx, "delete from "+schema+".sweep_cursor")
		require.NoError(b, err)
		_, err = pool.Exec(ctx, "insert into "+schema+".sweep_cursor values ($1)", page.Last().String())
		require.NoError(b, err)
	}
}

func sweeperLoop(b *testing.B, mail *efa.Client, pool *pgxpool.Pool, schema string) {
	ctx := b.Context()
	inbox, err := dedupe.NewPostgres(pool, dedupe.Config{Stream: mail.Stream(), Schema: schema}, func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
		ids, data := make([]string, len(fresh)), make([][]byte, len(fresh))
		for i, ev := range fresh {
			ids[i], data[i] = ev.ID, ev.Data.Bytes()
		}
		_, err := tx.Exec(ctx, "insert into "+schema+".agent_jobs select * from unnest($1::text[], $2::bytea[])", ids, data)
		return err
	})
	require.NoError(b, err)
	require.NoError(b, inbox.Migrate(ctx))
	s, err := events.NewSweeper(mail.Source(), inbox, events.SweeperConfig{Start: events.FromBeginning})
	require.NoError(b, err)
	_, err = s.Sweep(ctx)
	require.NoError(b, err)
}
