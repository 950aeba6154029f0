package e2e_test

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb" // it brings the SQLite driver, too
)

// exec writes in a handler's transaction; $1 is the same in both databases.
type exec func(query string, args ...any) error

// store is a database with a table of the user's own. Every world on it has a
// stream of its own, so that many fit into one.
type store struct {
	name    string
	pool    *pgxpool.Pool // nil on SQLite
	lite    []*sql.DB     // one a process: they share a file as programs do
	dbs     []*sqldb.DB   // for the test's own statements, one a process
	effects string
}

// processes at work at one time.
const processes = 2

// onBoth runs a test on both stores.
func onBoth(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, sqliteStore(t))
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgresStore(t))
	})
}

func postgresStore(tb testing.TB) *store {
	db := testdb.Postgres(tb)
	s := &store{name: "Postgres", pool: db.Pool, effects: db.Schema + ".effects"}
	for range processes {
		s.dbs = append(s.dbs, sqldb.Postgres(db.Pool, db.Schema, false))
	}
	s.create(tb)
	return s
}

func sqliteStore(tb testing.TB) *store {
	file := filepath.Join(tb.TempDir(), "test.db")
	s := &store{name: "SQLite", effects: "effects"}
	for range processes {
		// Nothing here outlives a crash of the machine, so nothing is synced.
		db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: file, RawQuery: "_pragma=synchronous(off)"}).String())
		require.NoError(tb, err)
		db.SetMaxOpenConns(4)
		db.SetMaxIdleConns(4)
		tb.Cleanup(func() { _ = db.Close() })
		s.lite, s.dbs = append(s.lite, db), append(s.dbs, sqldb.SQLite(db))
	}
	s.create(tb)
	return s
}

func (s *store) create(tb testing.TB) {
	require.NoError(tb, schema.Migrate(tb.Context(), s.dbs[0]))
	require.NoError(tb, s.run(tb.Context(), 0, "create table "+s.effects+" (stream text not null, id text not null, at bigint not null)"))
	require.NoError(tb, s.run(tb.Context(), 0, "create index effects_stream on "+s.effects+" (stream)"))
}

// inbox is the Inbox of the i-th process.
func (s *store) inbox(i int, cfg dedupe.Config, h func(context.Context, exec, []events.Event) error) (*dedupe.Inbox, error) {
	if s.pool == nil {
		return dedupe.NewSQLite(s.lite[i], cfg, func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
			return h(ctx, func(query string, args ...any) error {
				_, err := tx.ExecContext(ctx, strings.ReplaceAll(query, "$", "?"), args...)
				return err
			}, fresh)
		})
	}
	cfg.Schema = s.dbs[0].Schema
	return dedupe.NewPostgres(s.pool, cfg, func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
		return h(ctx, func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		}, fresh)
	})
}

// run runs a statement as the i-th process.
func (s *store) run(ctx context.Context, i int, query string, args ...any) error {
	return s.dbs[i].Tx(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, s.dbs[i].Render(query), args...)
		return err
	})
}

// took is when each event of a stream took effect, as often as it did.
func (s *store) took(ctx context.Context, stream string) (map[string][]time.Time, error) {
	at := map[string][]time.Time{}
	err := s.dbs[0].Read().Query(ctx, "select id, at from "+s.effects+" where stream = $1", []any{stream}, func(scan sqldb.Scan) error {
		var id string
		var micros int64
		err := scan(&id, &micros)
		at[id] = append(at[id], time.UnixMicro(micros))
		return err
	})
	return at, err
}

// clocks are the columns that hold times, by table.
var clocks = []struct {
	table, key string
	columns    []string
}{
	{"seen", "stream", []string{"first_seen", "last_seen"}},
	{"streams", "name", []string{"attached_at", "through", "lease_until", "lost_at"}},
	{"parked", "stream", []string{"parked_at", "first_failed", "due", "failed_at"}},
	{"floors", "stream", []string{"pushed_from", "pushed_until"}},
}

// age moves the store's clock on by d, by making everything of a stream older.
func (s *store) age(ctx context.Context, stream string, d time.Duration) error {
	return s.dbs[0].Tx(ctx, func(tx sqldb.Tx) error {
		for _, c := range clocks {
			var sets []string
			for _, column := range c.columns {
				by := " - $2::bigint * interval '1 microsecond'"
				if s.pool == nil {
					by = " - $2"
				}
				sets = append(sets, column+" = "+column+by)
			}
			query := "update {s}" + c.table + " set " + strings.Join(sets, ", ") + " where " + c.key + " = $1"
			if _, err := tx.Exec(ctx, s.dbs[0].Render(query), stream, d); err != nil {
				return err
			}
		}
		return nil
	})
}

// endLease is what the i-th process finds if another stood still for longer
// than its lease.
func (s *store) endLease(ctx context.Context, i int, stream string) error {
	return s.run(ctx, i, "update {s}streams set lease_until = {now} where name = $1", stream)
}
