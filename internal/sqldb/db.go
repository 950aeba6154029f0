package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB runs transactions. It is safe for concurrent use.
type DB struct {
	Dialect
	// Old is wrapped around the error of a table or column that is not there,
	// which a migration would have made.
	Old    error
	pool   *pgxpool.Pool
	lite   *sql.DB
	writer chan struct{} // SQLite has one writer; waiting here beats waiting in BUSY
	pooler bool
}

// Postgres runs on a pool, in a schema. pooler keeps to what works behind a
// transaction pooler: no prepared statement outlives its transaction.
func Postgres(pool *pgxpool.Pool, schema string, pooler bool) *DB {
	return &DB{Dialect: Dialect{Schema: schema}, pool: pool, pooler: pooler}
}

// SQLite runs on a database that the caller opened.
func SQLite(db *sql.DB) *DB {
	return &DB{Dialect: Dialect{SQLite: true}, lite: db, writer: writerOf(db)}
}

// Pool is the Postgres pool, nil on SQLite.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// SQL is the SQLite database, nil on Postgres.
func (d *DB) SQL() *sql.DB { return d.lite }

// Tx is a transaction, ours or the caller's.
type Tx interface {
	// Exec returns the number of rows it changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query calls row once a row; scan reads the row's columns.
	Query(ctx context.Context, query string, args []any, row func(scan Scan) error) error
	// Together runs statements in their order, on Postgres in one round trip. Each
	// sees what is committed when it begins, as if it came alone.
	Together(ctx context.Context, statements ...Statement) error
	// Native is the pgx.Tx or *sql.Tx.
	Native() any
}

// Statement is one of several that run together.
type Statement struct {
	Query string
	Args  []any
	Row   func(scan Scan) error // as for Query; nil: it returns no rows
}

// apart runs statements one by one.
func apart(ctx context.Context, tx Tx, statements []Statement) error {
	for _, s := range statements {
		var err error
		if s.Row == nil {
			_, err = tx.Exec(ctx, s.Query, s.Args...)
		} else {
			err = tx.Query(ctx, s.Query, s.Args, s.Row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Scan reads a row's columns. A NULL read into a *time.Time is the zero time.
type Scan func(dst ...any) error

// ErrNoRows is what [One] returns when there is no row.
var ErrNoRows = errors.New("no rows")

// One reads the first row into dst.
func One(ctx context.Context, tx Tx, query string, args []any, dst ...any) error {
	found := false
	err := tx.Query(ctx, query, args, func(scan Scan) error {
		if found {
			return nil
		}
		found = true
		return scan(dst...)
	})
	if err == nil && !found {
		err = ErrNoRows
	}
	return err
}

const retries = 10

// Tx runs fn in a transaction of its own and commits it. A deadlock, a
// serialization failure or a busy SQLite database runs it again as a whole, so
// fn must change nothing outside the transaction that it cannot change twice.
func (d *DB) Tx(ctx context.Context, fn func(Tx) error) error {
	for try := 0; ; try++ {
		err := d.once(ctx, fn)
		if err == nil || try >= retries || !IsTransient(err) || ctx.Err() != nil {
			return err
		}
		wait := time.Duration(rand.Int64N(int64(5*time.Millisecond) << min(try, 5)))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

func (d *DB) once(ctx context.Context, fn func(Tx) error) error {
	if d.lite != nil {
		return d.onceSQLite(ctx, fn)
	}
	if err := at(ctx, "begin"); err != nil {
		return err
	}
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginQuery(ctx)})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx.Rollback)
	if err := fn(d.FromPgx(tx)); err != nil {
		return err
	}
	if err := at(ctx, "before commit"); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return at(ctx, "after commit")
}

const (
	idleFor     = time.Minute    // where the work has no deadline
	longestIdle = 24 * time.Hour // far below the setting's largest value
)

// beginQuery begins a transaction that the server ends, and with it the locks,
// if this process stands still in it for longer than its work may take: frozen,
// cut off, or in a handler that disregards its context.
func beginQuery(ctx context.Context) string {
	idle := idleFor
	if deadline, ok := ctx.Deadline(); ok {
		idle = min(max(time.Until(deadline), 0)+time.Second, longestIdle)
	}
	return "begin isolation level read committed; set local idle_in_transaction_session_timeout = " +
		strconv.FormatInt(idle.Milliseconds(), 10)
}

func (d *DB) onceSQLite(ctx context.Context, fn func(Tx) error) error {
	if err := at(ctx, "begin"); err != nil {
		return err
	}
	done, err := d.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	tx, err := beginSQLite(ctx, d.lite)
	if err != nil {
		return err
	}
	defer rollback(ctx, func(context.Context) error { return tx.Rollback() })
	if err := fn(d.FromSQL(tx)); err != nil {
		return err
	}
	if err := at(ctx, "before commit"); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return at(ctx, "after commit")
}

// Turn waits until no other transaction of this process writes to the SQLite
// database; on Postgres it does nothing.
func (d *DB) Turn(ctx context.Context) (done func(), err error) {
	if d.lite == nil {
		return func() {}, nil
	}
	select {
	case d.writer <- struct{}{}:
		return func() { <-d.writer }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rollback outlives the request; after a commit it does nothing.
func rollback(ctx context.Context, fn func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = fn(ctx)
}

// Read runs fn for reading, outside a transaction: each statement sees what is
// committed when it runs.
func (d *DB) Read() Tx {
	if d.lite != nil {
		return liteTx{q: d.lite, old: d.Old}
	}
	return pgTx{q: d.pool, pooler: d.pooler, old: d.Old}
}

// FromPgx wraps a pgx transaction.
func (d *DB) FromPgx(tx pgx.Tx) Tx { return pgTx{q: tx, native: tx, pooler: d.pooler, old: d.Old} }

// FromSQL wraps a database/sql transaction.
func (d *DB) FromSQL(tx *sql.Tx) Tx { return liteTx{q: tx, native: tx, old: d.Old} }

// Hook is called at every statement and commit boundary of a context that
// carries it; an error stops the work there, as a crash would. Tests use it.
type Hook func(point string) error

type hookKey struct{}

// WithHook makes the boundaries of ctx's work call h.
func WithHook(ctx context.Context, h Hook) context.Context {
	return context.WithValue(ctx, hookKey{}, h)
}

func at(ctx context.Context, point string) error {
	if h, ok := ctx.Value(hookKey{}).(Hook); ok {
		return h(point)
	}
	return nil
}

// HookOf is ctx's hook, nil if it has none: for work on a context of its own.
func HookOf(ctx context.Context) Hook {
	h, _ := ctx.Value(hookKey{}).(Hook)
	return h
}
