package sqldb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
)

var errRow = errors.New("row")

// one is a statement that returns one number into n.
func one(n *int, query string, args ...any) sqldb.Statement {
	return sqldb.Statement{Query: query, Args: args, Row: func(scan sqldb.Scan) error { return scan(n) }}
}

// numbers is a database with a table t of one row, n = 1.
func numbers(t *testing.T, pooler bool) *sqldb.DB {
	t.Helper()
	pg := testdb.Postgres(t)
	db := sqldb.Postgres(pg.Pool, pg.Schema, pooler)
	_, err := pg.Pool.Exec(t.Context(), db.Render("create table {s}t (id int primary key, n int not null); insert into {s}t values (1, 1)"))
	require.NoError(t, err)
	return db
}

// together runs statements with the marks of Render.
func together(ctx context.Context, db *sqldb.DB, tx sqldb.Tx, statements ...sqldb.Statement) error {
	for i := range statements {
		statements[i].Query = db.Render(statements[i].Query)
	}
	return tx.Together(ctx, statements...)
}

// Together goes in one round trip, or one by one for a pooler. Nobody sees which.
func onBothWays(t *testing.T, test func(t *testing.T, db *sqldb.DB)) {
	t.Helper()
	for name, pooler := range map[string]bool{"in one round trip": false, "one by one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, numbers(t, pooler))
		})
	}
}

func TestTogetherKeepsTheOrder(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		var before, after, none int
		require.NoError(t, db.Tx(ctx, func(tx sqldb.Tx) error {
			return together(ctx, db, tx,
				one(&before, "select n from {s}t where id = $1", 1),
				sqldb.Statement{Query: "update {s}t set n = n + $1", Args: []any{41}},
				one(&after, "select n from {s}t where id = $1", 1),
				one(&none, "select n from {s}t where id = $1", 2))
		}))
		require.Equal(t, []int{1, 42, 0}, []int{before, after, none})
		require.NoError(t, together(ctx, db, db.Read()))
		require.NoError(t, together(ctx, db, db.Read(), one(&before, "select n from {s}t"), one(&after, "select n + 1 from {s}t")))
		require.Equal(t, []int{42, 43}, []int{before, after})
	})
}

// A statement behind one that waited for a lock sees what was committed
// meanwhile.
func TestTogetherSeesWhatWasCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		holder, err := db.Pool().Begin(ctx)
		require.NoError(t, err)
		defer func() { _ = holder.Rollback(context.WithoutCancel(ctx)) }()
		_, err = holder.Exec(ctx, db.Render("update {s}t set n = 2"))
		require.NoError(t, err)

		var first, locked, again int
		done := make(chan error, 1)
		go func() {
			done <- db.Tx(ctx, func(tx sqldb.Tx) error {
				return together(ctx, db, tx, one(&first, "select count(*) from {s}t"), one(&locked, "select n from {s}t for update"), one(&again, "select count(*) from {s}t"))
			})
		}()
		require.Eventually(t, func() bool {
			var n int
			err := db.Pool().QueryRow(ctx, "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and strpos(query, $1) > 0", db.Schema).Scan(&n)
			return err == nil && n > 0
		}, 10*time.Second, time.Millisecond)
		_, err = holder.Exec(ctx, db.Render("insert into {s}t values (2, 2)"))
		require.NoError(t, err)
		require.NoError(t, holder.Commit(ctx))
		require.NoError(t, <-done)
		require.Equal(t, []int{1, 2, 2}, []int{first, locked, again})
	})
}

// Whatever goes wrong in the middle is what Together returns, and the
// connection is as good as before.
func TestTogetherFails(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, db *sqldb.DB) {
		ended, cancel := context.WithCancel(t.Context())
		for name, c := range map[string]struct {
			middle sqldb.Statement
			is     func(error) bool
		}{
			"in the database":  {sqldb.Statement{Query: "update {s}t set n = n / $1", Args: []any{0}}, hasCode("22012")},
			"no such table":    {sqldb.Statement{Query: "select n from {s}nowhere"}, hasCode("42P01")},
			"in a row":         {sqldb.Statement{Query: "select n from generate_series(1, 9) as n", Row: func(sqldb.Scan) error { return errRow }}, isErr(errRow)},
			"in the reading":   {sqldb.Statement{Query: "select 'x'", Row: func(scan sqldb.Scan) error { return scan(new(int)) }}, func(err error) bool { return err != nil }},
			"the context ends": {sqldb.Statement{Query: "select n from {s}t", Row: func(sqldb.Scan) error { cancel(); return ended.Err() }}, isErr(context.Canceled)},
		} {
			ctx := t.Context()
			if name == "the context ends" {
				ctx = ended
			}
			for range 20 { // more than the pool has connections
				err := db.Tx(ctx, func(tx sqldb.Tx) error {
					err := together(ctx, db, tx, sqldb.Statement{Query: "update {s}t set n = 7"}, c.middle, sqldb.Statement{Query: "update {s}t set n = 8"})
					require.True(t, c.is(err), "%s: %v", name, err)
					return err
				})
				require.Error(t, err, name)
			}
			var n int
			require.NoError(t, together(t.Context(), db, db.Read(), one(&n, "select n from {s}t"), one(&n, "select n from {s}t")), name)
			require.Equal(t, 1, n, name)
		}
	})
}

func hasCode(code string) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*pgconn.PgError](err)
		return ok && e.Code == code
	}
}

func isErr(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
