package resume_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// Migrating takes SQLite most of a short test under the race detector, so it
// is done once and the file is copied.

var template struct {
	sync.Once
	file []byte
	err  error
}

// migrated is a fresh SQLite database that has the engine's tables.
func (r *rig) migrated() *sql.DB {
	r.t.Helper()
	template.Do(func() { template.file, template.err = r.makeTemplate() })
	require.NoError(r.t, template.err)
	path := filepath.Join(r.t.TempDir(), "test.db")
	require.NoError(r.t, os.WriteFile(path, template.file, 0o600))
	db, err := sql.Open("sqlite", path)
	require.NoError(r.t, err)
	db.SetMaxOpenConns(4)
	r.t.Cleanup(func() { require.NoError(r.t, db.Close()) })
	return db
}

func (r *rig) makeTemplate() ([]byte, error) {
	dir, err := os.MkdirTemp("", "resume")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	inboxes := map[string][]string{"ibx": {"agent@example.com"}}
	e, err := resume.NewSQLite(db, r.mail, listens, resume.Config{Inboxes: inboxes})
	if err == nil {
		_, err = dedupe.NewSQLite(db, dedupe.Config{Stream: events.Stream{Name: "template"}}, e.Route)
	}
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // moves what stands in the log into the file
		return nil, err
	}
	return os.ReadFile(path)
}
