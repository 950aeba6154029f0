package resumetest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// store is a database in which one run after another takes place.
type store interface {
	name() string

	// process is a program that uses the database, the i-th: an engine with an
	// inbox before it, and connections of its own where the database can tell
	// who waits for whom.
	process(i int, r *rig) (*process, error)

	// reset empties the tables.
	reset(ctx context.Context) error

	// shift moves the clock on by d, as the i-th process.
	shift(ctx context.Context, i int, d time.Duration) error

	// read is what is committed now.
	read(ctx context.Context) (*tables, error)

	// blocked says whether the i-th process waits for a lock that another
	// process of the run holds.
	blocked(ctx context.Context, i int) (bool, error)

	// plan is how the database would run a statement on a large table.
	plan(ctx context.Context, query string, args []any) (string, error)

	// overlaps says whether transactions of different processes overlap.
	overlaps() bool
}

// decode reads the answer to dialect.selectAll.
func decode(scan func(dst ...any) error) (*tables, error) {
	t := &tables{}
	into := []any{&t.workflows, &t.threads, &t.mail, &t.sends, &t.history, &t.seen, &t.parked, &t.floors, &t.calls, &t.joined}
	texts := make([]string, len(into))
	dst := []any{&t.clock}
	for i := range texts {
		dst = append(dst, &texts[i])
	}
	if err := scan(dst...); err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	for i, text := range texts {
		if err := json.Unmarshal([]byte(text), into[i]); err != nil {
			return nil, fmt.Errorf("read the tables: %w", err)
		}
	}
	t.index()
	return t, nil
}

// execer is what *sql.Tx and a pgx transaction have in common here.
type execer func(ctx context.Context, query string, args ...any) error

// inSQL runs fn in one transaction of a database/sql database.
func inSQL(ctx context.Context, db *sql.DB, fn func(execer) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	err = fn(func(ctx context.Context, query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (d dialect) resetAll(ctx context.Context, exec execer) error {
	for _, q := range d.empty() {
		if err := exec(ctx, q); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
	}
	return nil
}

// inLockOrder are the tables that the engine locks rows of, in its order.
var inLockOrder = []string{"seen", "threads", "workflows", "sends", "mail", "streams"}

func (d dialect) shiftAll(ctx context.Context, exec execer, by clocks, at time.Duration) error {
	tables := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(inLockOrder, a), slices.Index(inLockOrder, b)), cmp.Compare(a, b))
	})
	for _, table := range tables {
		if err := exec(ctx, d.shift(table, by[table]), at.Microseconds()); err != nil {
			return fmt.Errorf("move the clock: %w", err)
		}
	}
	return nil
}
