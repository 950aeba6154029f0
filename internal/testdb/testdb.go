// Package testdb gives tests real databases.
//
//	db := testdb.Postgres(t)       // a fresh schema: db.Pool, db.Schema, db.URL
//	url := testdb.Database(t)      // a fresh database, for tests that run whole programs
//	srv := testdb.NewServer(t, testdb.ServerConfig{}) // a whole server, for tests in which it crashes
//	sdb := testdb.SQLite(t)        // a fresh SQLite file
//
// Postgres comes from TEST_DATABASE_URL; else from Docker, if an engine
// answers; else from server binaries on this machine (PGBIN, the usual folders,
// PATH). `make test` starts one server for all packages and puts it into the
// environment; without it each test process starts its own, on first use, and
// no server outlives its process, however that ends. If there is none at all a
// test skips and says why, or fails where CI is set.
//
// Every connection has an empty search_path, so that an unqualified table name
// fails at once, and the time zone Asia/Tokyo, so that a time that lost its
// zone shows.
package testdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TB is what this package needs of a [testing.TB].
type TB interface {
	Helper()
	Name() string
	Context() context.Context
	Cleanup(func())
	TempDir() string
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// DB is a fresh schema of a Postgres server.
type DB struct {
	URL    string        // connects with an empty search_path
	Schema string        // a plain lower-case identifier
	Pool   *pgxpool.Pool // up to 8 connections made from URL
}

const (
	timeZone = "Asia/Tokyo"

	// Pools are kept small: many tests of many packages share one server.
	poolConns = 8

	// How long a cleanup waits for what the test left open.
	cleanupWait = 5 * time.Second
)

// Postgres returns a fresh schema. It is dropped when tb has passed; a failed
// test keeps it and logs how to open it.
func Postgres(tb TB) *DB {
	tb.Helper()
	server := URL(tb)
	db := &DB{Schema: uniqueName(tb.Name()), URL: withOptions(server, "")}

	cfg, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		tb.Fatalf("testdb: database URL: %v", err)
	}
	cfg.MaxConns = poolConns
	db.Pool, err = pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		tb.Fatalf("testdb: open pool: %v", err)
	}
	tb.Cleanup(func() { db.drop(tb, server) })

	if _, err := db.Pool.Exec(tb.Context(), "CREATE SCHEMA "+db.Schema); err != nil {
		tb.Fatalf("testdb: create schema: %v", err)
	}
	return db
}

func (db *DB) drop(tb TB, server string) {
	tb.Helper()
	closePool(tb, db.Pool)
	if tb.Failed() {
		logKept(tb, "schema "+db.Schema, withOptions(server, db.Schema))
		return
	}
	err := run(server, "SET lock_timeout = '5s'", "DROP SCHEMA IF EXISTS "+db.Schema+" CASCADE")
	if err != nil {
		tb.Errorf("testdb: drop schema %s (is a transaction of this test still open?): %v", db.Schema, err)
	}
}

// closePool reports a connection that never came back instead of waiting for
// it for ever, as [pgxpool.Pool.Close] does.
func closePool(tb TB, pool *pgxpool.Pool) {
	tb.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(cleanupWait):
		tb.Errorf("testdb: the test ended with %d connections of its pool in use: close rows, end transactions, release connections",
			pool.Stat().AcquiredConns())
	}
}

// Database returns the URL of a fresh database, which is dropped when tb has
// passed and kept when it failed. Its search_path is the server's own.
func Database(tb TB) string {
	tb.Helper()
	server := URL(tb)
	name := uniqueName(tb.Name())
	// template0 has no connections that could be in the way.
	err := run(server, "CREATE DATABASE "+name+" TEMPLATE template0", "ALTER DATABASE "+name+" SET TimeZone = '"+timeZone+"'")
	if err != nil {
		tb.Fatalf("testdb: create database: %v", err)
	}
	u, err := url.Parse(server)
	if err != nil {
		tb.Fatalf("testdb: database URL: %v", err)
	}
	u.Path = "/" + name
	tb.Cleanup(func() {
		if tb.Failed() {
			logKept(tb, "database "+name, u.String())
			return
		}
		if err := run(server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("testdb: drop database %s: %v", name, err)
		}
	})
	return u.String()
}

// URL returns the server all tests of this process share. Its database is for
// nobody in particular: use [Postgres] or [Database] to have one's own.
func URL(tb TB) string {
	tb.Helper()
	src, err := shared()
	if err != nil {
		missing(tb, err)
	}
	return src.URL
}

// shared is opened by the first test that needs it and never closed: what it
// started ends with the process.
var shared = sync.OnceValues(func() (*Source, error) {
	return Open(context.Background(), log.New(os.Stderr, "testdb: ", 0).Printf)
})

func missing(tb TB, err error) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("testdb: no Postgres, and CI is set: %v", err)
	}
	tb.Skipf("testdb: SKIPPED, NOT TESTED: no Postgres. %v", err)
}

func logKept(tb TB, what, at string) {
	tb.Helper()
	tb.Logf("testdb: kept %s of the failed test: psql '%s'", what, at)
	if os.Getenv(envURL) == "" {
		tb.Logf("testdb: that server ends with this process; for one that stays, run `go run ./internal/testdb/cmd/testdb` in another terminal")
	}
}

// run executes statements one by one on a connection of their own, with a context
// that outlives the test's.
func run(server string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// withOptions sets search_path and time zone in a form that both pgx and psql
// accept in a URL.
func withOptions(server, searchPath string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // refused by whoever connects
	}
	query := u.Query()
	options := strings.TrimSpace(query.Get("options") + " -csearch_path=" + searchPath + " -cTimeZone=" + timeZone)
	query.Set("options", options)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq does not read + as a space
	return u.String()
}

// uniqueName makes a plain identifier that still tells which test it is of.
func uniqueName(test string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	if len(plain) > 40 { // Postgres cuts names at 63 bytes
		plain = plain[:40]
	}
	return fmt.Sprintf("t_%s_%s", strings.Trim(plain, "_"), strings.ToLower(rand.Text()[:10]))
}
