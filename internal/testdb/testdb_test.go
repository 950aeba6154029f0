package testdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
)

func TestPostgresGivesEachTestItsOwnSchema(t *testing.T) {
	t.Parallel()
	a, b := testdb.Postgres(t), testdb.Postgres(t)
	require.NotEqual(t, a.Schema, b.Schema)

	for _, db := range []*testdb.DB{a, b} {
		_, err := db.Pool.Exec(t.Context(), "CREATE TABLE "+db.Schema+".things (id int)")
		require.NoError(t, err)
	}
	_, err := a.Pool.Exec(t.Context(), "SELECT FROM things")
	require.ErrorContains(t, err, `relation "things" does not exist`, "an unqualified name must fail")
}
