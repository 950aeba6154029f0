package resume_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/resume"
)

// joins gives fn's error back from a joined write.
func (r *rig) joins(run *resume.Run, fn func(ctx context.Context, exec func(query string) error) error) {
	if r.store == "postgres" {
		run.InPostgres(func(ctx context.Context, tx pgx.Tx) error {
			return fn(ctx, func(query string) error { _, err := tx.Exec(ctx, query); return err })
		})
		return
	}
	run.InSQL(func(ctx context.Context, tx *sql.Tx) error {
		return fn(ctx, func(query string) error { _, err := tx.ExecContext(ctx, query); return err })
	})
}

// What a joined write calls besides the engine's database may time out or be
// away for good: that is the step's failure, as it is in the step itself.
func TestJoinedWriteWhoseCallsFailIsForAPerson(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"deadline":    fmt.Errorf("call the shop: %w", context.DeadlineExceeded),
		"network":     &net.OpError{Op: "dial", Err: errors.New("connection refused")},
		"bad conn":    driver.ErrBadConn,
		"another pg":  &pgconn.PgError{Code: "57P01", Message: "terminating connection"},
		"closed pool": errors.New("closed pool"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(nil, resume.Config{Attempts: 2})
				r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
					r.joins(run, func(context.Context, func(string) error) error { return cause })
					return resume.Done(), nil
				})
				r.start(resume.Start{ID: "w1", Counterparty: supplier})
				for range 3 {
					r.rest()
					r.jump(time.Hour)
				}
				require.Equal(t, resume.StatusNeedsReview, r.status("w1"))
				r.last(2)
			})
		})
	}
}

// The engine's own connection is cut in a joined write: nobody's fault.
func TestJoinedWriteWhoseTransactionIsCutIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, "postgres", nil, resume.Config{Attempts: 2})
	r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
		r.joins(run, func(_ context.Context, exec func(string) error) error {
			if len(r.runs()) > 3 {
				return nil
			}
			return exec("select pg_terminate_backend(pg_backend_pid())")
		})
		return resume.Done(), nil
	})
	r.start(resume.Start{ID: "w1", Counterparty: supplier})
	for range 4 {
		r.rest()
		require.Zero(t, r.workflow("w1").Attempts)
		r.jump(time.Hour)
	}
	require.Equal(t, resume.StatusDone, r.status("w1"))
}
