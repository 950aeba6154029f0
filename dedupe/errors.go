package dedupe

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/jackc/pgx/v5/pgconn"
)

// Err is the umbrella of this package's errors: errors.Is(err, Err).
// [events.ErrBusy], [events.ErrParked] and [events.ErrForeignStream] are the
// doors' and stand beside it.
var Err = errors.New("dedupe")

// The errors that a caller decides by.
var (
	// ErrConfig: an argument of a constructor is wrong.
	ErrConfig = fmt.Errorf("%w: configuration", Err)
	// ErrNotMigrated: the tables are missing. Call [Inbox.Migrate].
	ErrNotMigrated = fmt.Errorf("%w: the tables are missing or old: call Migrate", Err)
	// ErrNotParked: no event of this ID is parked.
	ErrNotParked = fmt.Errorf("%w: no such event is parked", Err)
	// ErrContentGone: the event's content has been dropped, so it cannot be
	// tried again.
	ErrContentGone = fmt.Errorf("%w: the event's content has been dropped", Err)

	errSlow    = errors.New("the commit took longer than its timeout")
	errAborted = errors.New("the handler ended its goroutine")
	errNoID    = errors.New("an event without ID")
	errContent = errors.New("the parked event cannot be decoded")
)

// failure is the events' own fault: the handler did not take them. Anything
// else is the store's or the caller's, and parks nothing.
type failure struct {
	err      error
	oneByOne bool // it took its time: look for the culprit without halving
}

func (f *failure) Error() string { return "handler: " + describe(f.err) }

// text is what the handler said, for the parked row only: it may quote a
// stranger.
func (f *failure) text() string { return cut(f.err.Error()) }

// handlerError is an error that came through the handler but is the store's.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return "handler: " + describe(e.err) }
func (e *handlerError) Unwrap() error { return e.err }

// panicError is a handler's panic.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// describe says what kind of error it is, without its text: that may quote a
// stranger's mail.
func describe(err error) string {
	if errors.Is(err, errSlow) || errors.Is(err, errContent) {
		return err.Error()
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return describe(f.err)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "SQLSTATE " + e.Code
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		if e, ok := p.value.(runtime.Error); ok {
			return "panic: " + e.Error()
		}
		return fmt.Sprintf("panic with %T", p.value)
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}
