package dedupe_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
)

var stream = events.Stream{Name: "mail", Origin: "https://provider.example/p1", Environment: "test", Credential: "key-1"}

// exec writes in a handler's transaction; $1 is the same in both databases.
type exec func(query string, args ...any) error

// handler is a handler of either store.
type handler func(ctx context.Context, exec exec, fresh []events.Event) error

// store is a database with a table of the user's own.
type store struct {
	tb    testing.TB
	pool  *pgxpool.Pool
	lite  *sql.DB
	db    *sqldb.DB // for a test's own statements
	table string    // the user's
}

// onBoth runs a test on both stores.
func onBoth(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(t))
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, sqlite(t))
	})
}

func postgres(tb testing.TB) *store {
	db := testdb.Postgres(tb)
	s := &store{tb: tb, pool: db.Pool, db: sqldb.Postgres(db.Pool, db.Schema, false), table: db.Schema + ".effects"}
	s.migrate()
	return s
}

func sqlite(tb testing.TB) *store {
	db := testdb.SQLite(tb)
	s := &store{tb: tb, lite: db, db: sqldb.SQLite(db), table: "effects"}
	s.migrate()
	return s
}

func (s *store) migrate() {
	in, err := s.open(dedupe.Config{Stream: stream}, func(context.Context, exec, []events.Event) error { return nil })
	require.NoError(s.tb, err)
	require.NoError(s.tb, in.Migrate(s.tb.Context()))
	s.exec("create table " + s.table + " (id text not null, n bigint not null)")
}

// open is a process that has an inbox.
func (s *store) open(cfg dedupe.Config, h handler) (*dedupe.Inbox, error) {
	if s.lite != nil {
		return dedupe.NewSQLite(s.lite, cfg, func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
			return h(ctx, func(query string, args ...any) error {
				_, err := tx.ExecContext(ctx, strings.ReplaceAll(query, "$", "?"), args...)
				return err
			}, fresh)
		})
	}
	cfg.Schema = s.db.Schema
	return dedupe.NewPostgres(s.pool, cfg, func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
		return h(ctx, func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		}, fresh)
	})
}

// inbox opens an inbox whose handler writes a row an event and then does then.
func (s *store) inbox(cfg dedupe.Config, then handler) *dedupe.Inbox {
	s.tb.Helper()
	if cfg.Stream.Name == "" {
		cfg.Stream = stream
	}
	in, err := s.open(cfg, func(ctx context.Context, exec exec, fresh []events.Event) error {
		for _, ev := range fresh {
			if err := exec("insert into "+s.table+" (id, n) values ($1, $2)", ev.ID, len(fresh)); err != nil {
				return err
			}
		}
		if then == nil {
			return nil
		}
		return then(ctx, exec, fresh)
	})
	require.NoError(s.tb, err)
	return in
}

// exec runs a statement of the test's own, with the marks of package sqldb.
func (s *store) exec(query string, args ...any) {
	s.tb.Helper()
	err := s.db.Tx(context.WithoutCancel(s.tb.Context()), func(tx sqldb.Tx) error {
		_, err := tx.Exec(s.tb.Context(), s.db.Render(query), args...)
		return err
	})
	require.NoError(s.tb, err)
}

// age makes everything stored look so much older.
func (s *store) age(d time.Duration) {
	s.tb.Helper()
	older := func(col string) string {
		if s.lite != nil {
			return col + " = " + col + " - $1"
		}
		return col + " = " + col + " - $1::bigint * interval '1 microsecond'"
	}
	s.exec("update {s}seen set "+older("first_seen")+", "+older("last_seen"), d)
	s.exec("update {s}parked set "+older("parked_at")+", "+older("first_failed")+", "+older("due")+", "+older("failed_at")+", "+older("discarded_at"), d)
	s.exec("update {s}unreadable set "+older("last_seen"), d)
	s.exec("update {s}floors set "+older("pushed_from")+", "+older("pushed_until"), d)
	s.exec("update {s}streams set "+older("through"), d)
}

// effects are the events that took effect, in order of their IDs.
func (s *store) effects() []string {
	s.tb.Helper()
	var ids []string
	err := s.db.Read().Query(s.tb.Context(), "select id from "+s.table+" order by id", nil, func(scan sqldb.Scan) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	require.NoError(s.tb, err)
	return ids
}

func (s *store) count(table string) (n int) {
	s.tb.Helper()
	require.NoError(s.tb, sqldb.One(s.tb.Context(), s.db.Read(), s.db.Render("select count(*) from "+table), nil, &n))
	return n
}

// event n of a stream, as the pull door sees it; the push door sees no sequence.
func event(n int) events.Event {
	return events.Event{
		ID: fmt.Sprintf("evt_%04d", n), Kind: events.KindReceived, Type: "message.received",
		Inbox: "ibx_1", Thread: "thr_1", Message: fmt.Sprintf("msg_%d", n), Sequence: events.Cursor(n),
		OccurredAt: time.Unix(1_800_000_000, 0).UTC(), Data: client.NewRaw([]byte("{\"n\":\"\x00\xff\"}")),
	}
}

func pushed(n int) events.Event {
	ev := event(n)
	ev.Sequence, ev.OccurredAt = 0, time.Time{}
	return ev
}

func page(from, to int) events.Batch {
	b := events.Batch{Cursor: events.Cursor(to)}
	for n := from; n <= to; n++ {
		b.Events = append(b.Events, event(n))
	}
	return b
}

func ids(ns ...int) []string {
	list := make([]string, 0, len(ns))
	for _, n := range ns {
		list = append(list, event(n).ID)
	}
	return list
}

func span(from, to int) []string {
	var list []string
	for n := from; n <= to; n++ {
		list = append(list, event(n).ID)
	}
	return list
}

func position(tb testing.TB, in *dedupe.Inbox) events.Position {
	tb.Helper()
	pos, err := in.Position(tb.Context())
	require.NoError(tb, err)
	return pos
}

// commits counts the commits of a context's work.
func commits(ctx context.Context, n *atomic.Int64) context.Context {
	return sqldb.WithHook(ctx, func(point string) error {
		if point == "before commit" {
			n.Add(1)
		}
		return nil
	})
}

// errCrash is what a hook stops a process with.
var errCrash = fmt.Errorf("crash: %w", io.ErrUnexpectedEOF)
