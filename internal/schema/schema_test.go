package schema_test

import (
	"database/sql"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
)

func TestMigrateSQLite(t *testing.T) {
	t.Parallel()
	std, err := sql.Open("sqlite", "file:"+t.TempDir()+"/t.db")
	require.NoError(t, err)
	defer std.Close()
	db := sqldb.SQLite(std)
	current, err := schema.Current(t.Context(), db)
	require.NoError(t, err)
	require.False(t, current)

	require.NoError(t, schema.Migrate(t.Context(), db))
	require.NoError(t, schema.Migrate(t.Context(), db), "again is fine")
	current, err = schema.Current(t.Context(), db)
	require.NoError(t, err)
	require.True(t, current)
}

func TestMigrateSQLiteRefusesMemory(t *testing.T) {
	t.Parallel()
	std, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer std.Close()
	std.SetMaxOpenConns(1)
	require.ErrorContains(t, schema.Migrate(t.Context(), sqldb.SQLite(std)), "use a database in a file")
}

func TestMigrateTogetherSQLite(t *testing.T) {
	t.Parallel()
	std, err := sql.Open("sqlite", "file:"+t.TempDir()+"/t.db")
	require.NoError(t, err)
	defer std.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := schema.Migrate(t.Context(), sqldb.SQLite(std)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
