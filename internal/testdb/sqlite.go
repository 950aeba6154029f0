package testdb

import (
	"database/sql"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver the tests use; users bring their own
)

// SQLite returns a fresh database in a file of tb's own folder. It is opened
// as plainly as a user might: no pragma in the name, and several connections.
func SQLite(tb TB) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", filepath.Join(tb.TempDir(), "test.db"))
	if err != nil {
		tb.Fatalf("testdb: open SQLite: %v", err)
	}
	db.SetMaxOpenConns(4)
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("testdb: close SQLite: %v", err)
		}
	})
	return db
}
