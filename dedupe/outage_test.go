package dedupe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/testdb"
)

func TestTheDatabaseGoesAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	srv := testdb.NewServer(t, testdb.ServerConfig{})
	pool, err := pgxpool.New(t.Context(), srv.URL())
	require.NoError(t, err)
	defer pool.Close()
	calls := 0
	in, err := dedupe.NewPostgres(pool, dedupe.Config{Stream: stream, CommitTimeout: 5 * time.Second},
		func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
			if calls++; calls == 1 {
				if err := srv.Crash(); err != nil {
					t.Error(err)
				}
			}
			for _, ev := range fresh {
				if _, err := tx.Exec(ctx, "insert into public.effects values ($1)", ev.ID); err != nil {
					return err
				}
			}
			return nil
		})
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	_, err = pool.Exec(t.Context(), "create table public.effects (id text not null)")
	require.NoError(t, err)

	_, err = in.Take(t.Context(), page(1, 5))
	require.ErrorIs(t, err, dedupe.Err)
	_, err = in.Push(t.Context(), pushed(6))
	require.ErrorIs(t, err, dedupe.Err, "the server is down")
	require.NotErrorIs(t, err, events.ErrParked)

	require.NoError(t, srv.Start(t.Context()))
	require.Equal(t, events.Result{Fresh: 5}, take(t, in, page(1, 5)), "nothing was parked, nothing lost")
	require.Equal(t, events.Result{Fresh: 1}, mustPush(t, in, pushed(6)))
	st, err := in.Status(t.Context())
	require.NoError(t, err)
	require.Zero(t, st.Parked)
	require.EqualValues(t, 5, st.Cursor)
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from public.effects").Scan(&n))
	require.Equal(t, 6, n)
}

// A process that stands still within its commit, frozen or in a handler that
// disregards its context, keeps its events from others no longer than a commit
// may take.
func TestAProcessThatStandsStillKeepsNothing(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	g := newGate()
	frozen := s.inbox(dedupe.Config{CommitTimeout: time.Second}, g.handler)
	other := s.inbox(dedupe.Config{LockTimeout: 100 * time.Millisecond}, nil)
	position(t, frozen)
	wait := pushAll(t.Context(), frozen, pushed(1))
	<-g.entered
	require.Eventually(t, func() bool {
		_, err := other.Push(t.Context(), pushed(1))
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	take(t, other, page(1, 2))
	close(g.open)
	results, errs := wait()
	require.NoError(t, errs[0])
	require.Equal(t, events.Result{Duplicate: 1}, results[0])
	require.Equal(t, ids(1, 2), s.effects())
}

// A pool in front of which a pooler stands keeps no statement; and one without
// the tables says what to do.
func TestPoolerAndMissingTables(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	in, err := dedupe.NewPostgres(db.Pool, dedupe.Config{Stream: stream, Schema: db.Schema, Pooler: true},
		func(context.Context, pgx.Tx, []events.Event) error { return nil })
	require.NoError(t, err)
	_, err = in.Push(t.Context(), pushed(1))
	require.ErrorIs(t, err, dedupe.ErrNotMigrated)

	require.NoError(t, in.Migrate(t.Context()))
	require.NoError(t, in.Migrate(t.Context()), "again is fine")
	mustPush(t, in, pushed(1))
	take(t, in, page(1, 3))
	settle(t, in)
	maintain(t, in)
	ok, err := in.Lease(t.Context(), "a", time.Minute)
	require.NoError(t, err)
	require.True(t, ok)

	for _, conn := range db.Pool.AcquireAllIdle(t.Context()) {
		rows, err := conn.Query(t.Context(), "select statement from pg_prepared_statements", pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, st := range statements {
			require.False(t, strings.Contains(st, "seen") || strings.Contains(st, "streams"), "a prepared statement is left: %s", st)
		}
		conn.Release()
	}
}
