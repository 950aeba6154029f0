package sqldb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsLost says whether an error that somebody's code returned, who was given the
// transaction, is the database's own outage. That code may call other services,
// whose errors look the same: ours is lost only if the transaction is.
func IsLost(ctx context.Context, tx Tx, err error) bool {
	if !IsUnavailable(err) {
		return false
	}
	_, answer := tx.Exec(ctx, "select 1")
	_, aborted := errors.AsType[*pgconn.PgError](answer)
	_, refused := errors.AsType[*pgconn.PgError](err)
	return answer != nil && (refused || !aborted)
}
