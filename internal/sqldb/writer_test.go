package sqldb_test

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
)

// Several DBs of one *sql.DB, and several *sql.DB of one file as other
// processes have them, without a busy timeout of the driver's.
func TestWritersOfOneFileWaitForEachOther(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "t.db")
	var dbs []*sqldb.DB
	for range 2 {
		std, err := sql.Open("sqlite", file)
		require.NoError(t, err)
		t.Cleanup(func() { _ = std.Close() })
		dbs = append(dbs, sqldb.SQLite(std), sqldb.SQLite(std))
	}
	require.NoError(t, schema.Migrate(t.Context(), dbs[0]))
	_, err := dbs[0].SQL().ExecContext(t.Context(), "create table counter (n integer not null); insert into counter values (0)")
	require.NoError(t, err)

	const each = 50
	var wg sync.WaitGroup
	for _, db := range dbs {
		for range 4 {
			wg.Go(func() {
				for range each {
					if err := db.Tx(t.Context(), func(tx sqldb.Tx) error {
						var n int
						if err := sqldb.One(t.Context(), tx, "select n from counter", nil, &n); err != nil {
							return err
						}
						_, err := tx.Exec(t.Context(), "update counter set n = ?", n+1)
						return err
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	var n int
	require.NoError(t, sqldb.One(t.Context(), dbs[0].Read(), "select n from counter", nil, &n))
	require.Equal(t, len(dbs)*4*each, n)
}
