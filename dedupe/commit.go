package dedupe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// door is where events come from.
type door string

const (
	push  door = "push"
	pull  door = "pull"
	again door = "retry" // of a parked event
)

// part is what is committed together: all of a call's events, or, if the
// handler fails on them, some.
type part struct {
	door    door
	events  []events.Event // of different IDs
	cursor  events.Cursor  // 0 leaves it
	history bool
	links   []trace.Link  // to the requests that share the commit
	gather  func(p *part) // fills in events and links, once the transaction has begun
}

func (p *part) fill() {
	if gather := p.gather; gather != nil {
		p.gather = nil
		gather(p)
	}
}

// commit is one transaction: IDs, handler, cursor.
func (in *Inbox) commit(ctx context.Context, p *part) (out outcomes, err error) {
	ctx, done := in.tel.commit(ctx, p)
	defer func() { done(err) }()
	ctx, cancel := context.WithTimeoutCause(ctx, in.cfg.CommitTimeout, errSlow)
	defer cancel()
	handled := false
	err = in.db.Tx(ctx, func(tx sqldb.Tx) (err error) {
		handled = false
		p.fill()
		if out, err = in.claim(ctx, tx, p); err != nil {
			return err
		}
		if handled, err = in.handle(ctx, tx, out.fresh(p.events)); err != nil {
			return err
		}
		return in.moveCursor(ctx, tx, p.cursor)
	})
	p.fill() // if the transaction could not begin
	switch {
	case err == nil && handled:
		in.cfg.AfterCommit()
	case err != nil && errors.Is(context.Cause(ctx), errSlow):
		err = named(err)
	case handled:
		err = rejected(err)
	}
	return out, err
}

// named says of a commit that took too long that it did; it is the store's
// fault unless the time passed in the handler.
func named(err error) error {
	if _, failed := errors.AsType[*failure](err); failed {
		return err
	}
	return fmt.Errorf("%w: %w", errSlow, err)
}

// fresh are the fresh ones of evs, in their order.
func (o outcomes) fresh(evs []events.Event) []events.Event {
	var list []events.Event
	for _, ev := range evs {
		if o[ev.ID] == fresh {
			list = append(list, ev)
		}
	}
	return list
}

func (in *Inbox) moveCursor(ctx context.Context, tx sqldb.Tx, to events.Cursor) error {
	if to == 0 {
		return nil
	}
	n, err := tx.Exec(ctx, in.st.MoveCursor, in.name(), int64(to))
	if err == nil && n == 0 {
		in.opened.Store(false)
		err = errors.New("the stream's row is gone")
	}
	if err != nil {
		return fmt.Errorf("move the cursor: %w", err)
	}
	return nil
}

// handle calls the handler, if there is something for it, and says whether it
// took it. What is the events' fault comes back as a *failure.
func (in *Inbox) handle(ctx context.Context, tx sqldb.Tx, evs []events.Event) (bool, error) {
	if len(evs) == 0 {
		return false, nil
	}
	err := in.call(ctx, tx, evs)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSlow):
		return false, &failure{err: errSlow, oneByOne: true}
	case cause != nil:
		return false, cause
	case err == nil:
		return true, nil
	case sqldb.IsLost(ctx, tx, err):
		return false, &handlerError{err}
	default:
		return false, &failure{err: err, oneByOne: sqldb.IsLockTimeout(err)}
	}
}

func (in *Inbox) call(ctx context.Context, tx sqldb.Tx, evs []events.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return in.handler(ctx, tx, evs)
}

// rejected makes a failure of an error by which the database refuses, at the
// commit, what the handler wrote: a deferred constraint, an error that the
// handler kept to itself, a transaction that it ended.
func rejected(err error) error {
	if err == nil || sqldb.IsTransient(err) || sqldb.IsUnavailable(err) || sqldb.IsLockTimeout(err) {
		return err
	}
	_, refused := errors.AsType[*pgconn.PgError](err)
	if refused || errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, pgx.ErrTxClosed) ||
		errors.Is(err, sql.ErrTxDone) || strings.Contains(err.Error(), "constraint failed") {
		return &failure{err: err}
	}
	return err
}
