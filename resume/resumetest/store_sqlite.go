package resumetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver: "sqlite"

	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// liteStore is a SQLite file. All its processes share one handle: SQLite is
// for one process, whose workers take turns.
type liteStore struct {
	dialect
	db     *sql.DB
	clocks clocks
	all    *sql.Stmt // selectAll
}

var lite = dialect{prefix: "replywake_", sqlite: true}

// template is a migrated database file, made once a test process.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "resumetest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	if err := schema.Migrate(context.Background(), sqldb.SQLite(db)); err != nil {
		_ = db.Close()
		return nil, err
	}
	if _, err := db.Exec(lite.create()); err != nil { //nolint:noctx // a file of ours
		_ = db.Close()
		return nil, err
	}
	if err := db.Close(); err != nil { // which also writes the log back into the file
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // the file just written
})

func newLite(tb testing.TB, script string) (*liteStore, error) {
	image, err := template()
	if err != nil {
		return nil, fmt.Errorf("make a SQLite template: %w", err)
	}
	path := filepath.Join(tb.TempDir(), "explore.db")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return nil, err
	}
	// Nothing here outlives a crash of the machine, so nothing is synced.
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=synchronous(off)"}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	tb.Cleanup(func() { _ = db.Close() })
	s := &liteStore{dialect: lite, db: db}
	if s.own, err = s.make(context.Background(), script); err != nil {
		return nil, fmt.Errorf("make the scenario's tables: %w", err)
	}
	if s.all, err = db.PrepareContext(context.Background(), s.selectAll()); err != nil {
		return nil, err
	}
	s.clocks, err = clocksOf()
	return s, err
}

// make runs a script and returns the tables that it makes.
func (s *liteStore) make(ctx context.Context, script string) ([]string, error) {
	before, err := s.named(ctx)
	if err == nil {
		_, err = s.db.ExecContext(ctx, script)
	}
	if err != nil {
		return nil, err
	}
	after, err := s.named(ctx)
	return slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) }), err
}

// named are the tables of the file, the last ones first.
func (s *liteStore) named(ctx context.Context) (out []string, err error) {
	rows, err := s.db.QueryContext(ctx, `select '"' || replace(name, '"', '""') || '"' from sqlite_master where type = 'table' order by rowid desc`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

func (s *liteStore) name() string   { return "sqlite" }
func (s *liteStore) overlaps() bool { return false }

func (s *liteStore) process(_ int, r *rig) (*process, error) {
	p := &process{rig: r, mail: &boundaryMail{rig: r}, db: sqldb.SQLite(s.db), dialect: s.dialect}
	eng, err := resume.NewSQLite(s.db, p.mail, p.step, r.config)
	if err != nil {
		return nil, err
	}
	p.lite, p.engine, p.file = eng, eng.Engine, s.db
	p.join = func(run *resume.Run, insert func(execer) error) {
		run.InSQL(func(ctx context.Context, tx *sql.Tx) error {
			return insert(func(_ context.Context, query string, args ...any) error {
				_, err := tx.ExecContext(ctx, query, args...)
				return err
			})
		})
	}
	p.inbox, err = newLiteInbox(s.db, r, eng)
	return p, err
}

func (s *liteStore) reset(ctx context.Context) error {
	return inSQL(ctx, s.db, func(exec execer) error { return s.resetAll(ctx, exec) })
}

func (s *liteStore) shift(ctx context.Context, _ int, d time.Duration) error {
	return inSQL(ctx, s.db, func(exec execer) error { return s.shiftAll(ctx, exec, s.clocks, d) })
}

func (s *liteStore) read(ctx context.Context) (*tables, error) {
	return decode(s.all.QueryRowContext(ctx).Scan)
}

func (s *liteStore) blocked(context.Context, int) (bool, error) { return false, nil }

func (s *liteStore) plan(ctx context.Context, query string, args []any) (string, error) {
	rows, err := s.db.QueryContext(ctx, "explain query plan "+query, args...)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			return "", err
		}
		plan.WriteString(line + "\n")
	}
	return plan.String(), rows.Err()
}
