// Package schema holds the tables of dedupe and resume and brings a database
// to them. Both packages share one set: an engine and an inbox usually share a
// database, and a deadline must know how far receiving has come.
package schema

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/replywake/replywake/internal/sqldb"
)

//go:embed migrations/*.sql
var files embed.FS

const latest = 2

// Migrate brings the database to the newest schema. Several processes may call
// it at once; where nothing is to be done it takes no lock.
func Migrate(ctx context.Context, db *sqldb.DB) error {
	var err error
	for try := 0; try < 20; try++ {
		if current, cerr := Current(ctx, db); cerr == nil && current {
			return nil
		}
		if err = migrate(ctx, db); err == nil || !isRace(err) && !sqldb.IsTransient(err) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, db *sqldb.DB) error {
	std, done, err := open(ctx, db)
	if err != nil {
		return err
	}
	defer done()
	unlock, err := db.Turn(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := provider(db.Dialect, std)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// open gives database/sql access to db, with the schema present.
func open(ctx context.Context, db *sqldb.DB) (std *sql.DB, done func(), err error) {
	if db.SQLite {
		return db.SQL(), func() {}, wal(ctx, db.SQL())
	}
	// Connections of its own: the pool may be smaller than what a migration with
	// its lock needs, and nothing may stay prepared behind a pooler.
	cfg := db.Pool().Config().ConnConfig.Copy()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	std = stdlib.OpenDB(*cfg)
	if err := createSchema(ctx, std, db.Schema); err != nil {
		return nil, nil, errors.Join(err, std.Close())
	}
	return std, func() { _ = std.Close() }, nil
}

// createSchema needs a right that using a schema does not.
func createSchema(ctx context.Context, std *sql.DB, name string) error {
	var exists bool
	err := std.QueryRowContext(ctx, "select exists(select from pg_namespace where nspname = $1)", name).Scan(&exists)
	if err == nil && !exists {
		_, err = std.ExecContext(ctx, "create schema if not exists "+pgx.Identifier{name}.Sanitize())
	}
	return err
}

// wal sets write-ahead logging, without which readers block the writer.
func wal(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("sqlite: journal mode is %q, want wal: use a database in a file", mode)
	}
	return nil
}

func provider(d sqldb.Dialect, db *sql.DB) (*goose.Provider, error) {
	store, err := database.NewStore(dialectName(d), versionTable(d))
	if err != nil {
		return nil, err
	}
	opts := []goose.ProviderOption{goose.WithStore(store), goose.WithDisableGlobalRegistry(true)}
	if !d.SQLite {
		locker, err := lock.NewPostgresTableLocker(lock.WithTableName(d.Schema+".migration_lock"),
			lock.WithTableLeaseDuration(3*time.Second), lock.WithTableHeartbeatInterval(time.Second), // a killed migrator holds others up no longer
			lock.WithTableLockTimeout(100*time.Millisecond, 600))
		if err != nil {
			return nil, err
		}
		opts = append(opts, goose.WithLocker(locker))
	}
	rendered, err := render(d)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider("", db, rendered, opts...)
}

func dialectName(d sqldb.Dialect) database.Dialect {
	if d.SQLite {
		return database.DialectSQLite3
	}
	return database.DialectPostgres
}

func versionTable(d sqldb.Dialect) string {
	if d.SQLite {
		return "replywake_migrations"
	}
	return d.Schema + ".migrations"
}

// Current says whether the database has the newest schema.
func Current(ctx context.Context, db *sqldb.DB) (bool, error) {
	var version int64
	err := sqldb.One(ctx, db.Read(), db.Render("select coalesce(max(version_id), 0) from {s}migrations"), nil, &version)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == "42P01" || e.Code == "3F000") {
		return false, nil
	}
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return false, nil
	}
	return err == nil && version >= latest, err
}

// SQL is the schema as one script, for those who run their own migrations.
func SQL(d sqldb.Dialect) (string, error) {
	rendered, err := render(d)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = fs.WalkDir(rendered, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(rendered, path)
		fmt.Fprintf(&b, "-- %s\n%s\n", path, text)
		return err
	})
	return b.String(), err
}

// render writes the migrations' marks out for one database.
func render(d sqldb.Dialect) (fs.FS, error) {
	types := strings.NewReplacer("{id}", `text collate "C"`, "{time}", "timestamptz", "{bytes}", "bytea", "{bool}", "boolean",
		"{serial}", "bigint generated always as identity primary key", "{i}", "")
	if d.SQLite {
		types = strings.NewReplacer("{id}", "text", "{time}", "integer", "{bytes}", "blob", "{bool}", "boolean",
			"{serial}", "integer primary key autoincrement", "{i}", "replywake_")
	}
	out := fstest.MapFS{}
	entries, err := files.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := files.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, err
		}
		sql := d.Render(types.Replace(string(text)))
		if d.SQLite && strings.HasPrefix(e.Name(), "00001") {
			sql += "\n-- Every transaction writes here first, so that it holds the write lock before it reads.\n" +
				"create table replywake_writer (n integer not null);\ninsert into replywake_writer values (0);\n"
		}
		out[e.Name()] = &fstest.MapFile{Data: bytes.TrimSpace([]byte(sql))}
	}
	return out, nil
}

// isRace says whether another process created the same thing at the same time.
func isRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return strings.Contains(err.Error(), "already exists") || ok && (e.Code == "23505" || e.Code == "42P07" || e.Code == "42P06" || e.Code == "42710")
}
