package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsLost says whether an error that somebody's code returned, who was given the
// transaction, is the database's own trouble: an outage, or what the same
// transaction may be spared when it runs again. That code may call other
// services, and other databases, whose errors look the same: ours is the trouble
// only if the transaction has it too. A SQLite file has no transaction to ask.
func IsLost(ctx context.Context, tx Tx, err error) bool {
	if !IsUnavailable(err) && !IsTransient(err) {
		return false
	}
	if _, lite := tx.Native().(*sql.Tx); lite && (isBroken(err) || isBusy(err)) {
		return true
	}
	_, answer := tx.Exec(ctx, "select 1")
	_, aborted := errors.AsType[*pgconn.PgError](answer)
	_, refused := errors.AsType[*pgconn.PgError](err)
	return answer != nil && (refused || !aborted)
}
