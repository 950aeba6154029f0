package testdb_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
)

func TestPostgresGivesEachTestItsOwnSchema(t *testing.T) {
	t.Parallel()
	a, b := testdb.Postgres(t), testdb.Postgres(t)
	require.NotEqual(t, a.Schema, b.Schema)

	for _, db := range []*testdb.DB{a, b} {
		createThings(t, db)
	}
}

func TestPostgresHasNoSearchPathAndAZoneOfItsOwn(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	createThings(t, db)

	_, err := db.Pool.Exec(t.Context(), "SELECT FROM things")
	require.ErrorContains(t, err, `relation "things" does not exist`)
	require.Equal(t, "Asia/Tokyo", ask(t, db.URL, "SHOW TimeZone"))
	require.Empty(t, ask(t, db.URL, "SHOW search_path"))
}

func TestPostgresDropsTheSchemaOfAPassedTest(t *testing.T) {
	t.Parallel()
	tb := newFakeTB(t)
	db := testdb.Postgres(tb)
	createThings(t, db)
	tb.end()

	require.False(t, tb.Failed(), tb.said())
	require.Equal(t, "0", ask(t, testdb.URL(t), schemaCount(db)))
}

func TestPostgresKeepsTheSchemaOfAFailedTest(t *testing.T) {
	t.Parallel()
	tb := newFakeTB(t)
	db := testdb.Postgres(tb)
	createThings(t, db)
	tb.Errorf("the test fails")
	tb.end()

	shown := regexp.MustCompile(`psql '([^']+)'`).FindStringSubmatch(tb.said())
	require.NotNil(t, shown, tb.said())
	require.Equal(t, "0", ask(t, shown[1], "SELECT count(*) FROM things"), "the URL opens the schema itself")

	_, err := connect(t, testdb.URL(t)).Exec(t.Context(), "DROP SCHEMA "+db.Schema+" CASCADE")
	require.NoError(t, err)
}

func TestPostgresReportsAConnectionThatNeverCameBack(t *testing.T) {
	t.Parallel()
	tb := newFakeTB(t)
	db := testdb.Postgres(tb)
	conn, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	tb.end()
	conn.Release()

	require.True(t, tb.Failed())
	require.Contains(t, tb.said(), "1 connections of its pool in use")
	_, err = connect(t, testdb.URL(t)).Exec(t.Context(), "DROP SCHEMA "+db.Schema+" CASCADE")
	require.NoError(t, err)
}

func TestDatabaseIsFreshAndDropped(t *testing.T) {
	t.Parallel()
	tb := newFakeTB(t)
	at := testdb.Database(tb)
	require.Equal(t, "Asia/Tokyo", ask(t, at, "SHOW TimeZone"))
	_, err := connect(t, at).Exec(t.Context(), "CREATE TABLE things (id int)")
	require.NoError(t, err)

	tb.end() // although connect's connection is still open
	require.False(t, tb.Failed(), tb.said())
	u, err := url.Parse(at)
	require.NoError(t, err)
	count := fmt.Sprintf("SELECT count(*) FROM pg_database WHERE datname = '%s'", filepath.Base(u.Path))
	require.Equal(t, "0", ask(t, testdb.URL(t), count))
}

func TestSQLiteServesSeveralConnections(t *testing.T) {
	t.Parallel()
	db := testdb.SQLite(t)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE things (id int)")
	require.NoError(t, err)

	for range 2 { // two at once, held until the test ends
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		var n int
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM things").Scan(&n))
	}
}

func createThings(t *testing.T, db *testdb.DB) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), "CREATE TABLE "+db.Schema+".things (id int)")
	require.NoError(t, err)
}

func schemaCount(db *testdb.DB) string {
	return fmt.Sprintf("SELECT count(*) FROM pg_namespace WHERE nspname = '%s'", db.Schema)
}

func connect(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func ask(t *testing.T, at, query string) string {
	t.Helper()
	var answer string
	row := connect(t, at).QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, row.Scan(&answer))
	return answer
}

// fakeTB is a test that can end, and fail, inside a test.
type fakeTB struct {
	*testing.T

	mu      sync.Mutex
	failed  bool
	lines   []string
	cleanup []func()
}

func newFakeTB(t *testing.T) *fakeTB { return &fakeTB{T: t} }

func (f *fakeTB) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *fakeTB) Cleanup(fn func()) { f.cleanup = append(f.cleanup, fn) }

func (f *fakeTB) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.Logf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
}

func (f *fakeTB) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.lines, "\n")
}

func (f *fakeTB) end() {
	for _, fn := range f.cleanup {
		defer fn() // last come, first served, as in a real test
	}
}
