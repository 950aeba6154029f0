package sqldb_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
)

// What a migration would have made is named; any other error is as it was.
func TestOldSchema(t *testing.T) {
	t.Parallel()
	errOld := errors.New("migrate")
	pg, lite := numbers(t, false), sqldb.SQLite(testdb.SQLite(t))
	for name, db := range map[string]*sqldb.DB{"postgres": pg, "pooler": numbers(t, true), "sqlite": lite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			db.Old = errOld
			run := func(query string) []error {
				none := func(sqldb.Scan) error { return nil }
				tx := db.Read()
				_, err := tx.Exec(ctx, query)
				two := []sqldb.Statement{{Query: "select 1", Row: none}, {Query: query, Row: none}}
				return []error{err, tx.Query(ctx, query, nil, none), tx.Together(ctx, two...)}
			}
			old := []string{"select 1 from missing", "select missing from (select 1 as n) as r"}
			if db.SQL() == nil {
				old = append(old, "select 1 from missing.missing")
			}
			for _, query := range old {
				for _, err := range run(query) {
					require.ErrorIs(t, err, errOld, query)
				}
			}
			for _, err := range run("select nonsense(") {
				require.Error(t, err)
				require.NotErrorIs(t, err, errOld)
			}
			_, err := db.Read().Exec(ctx, "select 1 from missing")
			if db.SQL() == nil {
				_, is := errors.AsType[*pgconn.PgError](err)
				require.True(t, is, "the driver's own error is still there")
			}
			db.Old = nil
			_, err = db.Read().Exec(ctx, "select 1 from missing")
			require.Error(t, err)
			require.NotErrorIs(t, err, errOld)
		})
	}
}
