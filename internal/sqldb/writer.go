package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"weak"
)

// writers is by weak.Pointer[sql.DB]: an inbox and an engine that share a
// database take turns, whoever made their DB.
var writers sync.Map

func writerOf(db *sql.DB) chan struct{} {
	if db == nil {
		return nil
	}
	key := weak.Make(db)
	turn, known := writers.LoadOrStore(key, make(chan struct{}, 1))
	if !known {
		runtime.AddCleanup(db, func(key weak.Pointer[sql.DB]) { writers.Delete(key) }, key)
	}
	return turn.(chan struct{})
}

// busyWait is how long a writer of another process is waited for, if the
// context does not end before.
const busyWait = 10 * time.Second

// beginSQLite begins a transaction that holds the write lock before anything
// is read, whatever the DSN says of BEGIN and of a busy timeout.
func beginSQLite(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	limit := time.Now().Add(busyWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		tx, err := lockSQLite(ctx, db)
		if err == nil || !isBusy(err) || time.Now().After(limit) {
			return tx, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

func lockSQLite(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "update replywake_writer set n = n + 1"); err != nil {
		_ = tx.Rollback()
		return nil, fmt.Errorf("lock: %w", err)
	}
	return tx, nil
}
