package events

import (
	"errors"
	"fmt"
)

// Err is the umbrella of the package's errors: errors.Is(err, Err) is true for
// each of the others and for whatever a [Sweeper] returns.
var Err = errors.New("events")

// The package's errors.
var (
	// ErrConfig: an argument of [NewHandler] or [NewSweeper] cannot be right.
	ErrConfig = fmt.Errorf("%w: configuration", Err)

	// ErrCursorInvalid: not a cursor. Nothing was asked of the provider.
	ErrCursorInvalid = fmt.Errorf("%w: invalid cursor", Err)
	// ErrCursorExpired: the position lies before the oldest event that remains.
	ErrCursorExpired = fmt.Errorf("%w: cursor expired", Err)
	// ErrNoProgress: a source's answers do not move on, see [NoProgressError].
	ErrNoProgress = fmt.Errorf("%w: no progress", Err)
	// ErrForeignStream: the stream's name belongs to another project or environment.
	ErrForeignStream = fmt.Errorf("%w: stream name belongs to another project or environment", Err)
	// ErrLeaseHeld: another process sweeps the stream now.
	ErrLeaseHeld = fmt.Errorf("%w: another process holds the sweep lease", Err)

	// ErrNotEvent: a genuine body, or a row of a page, that is not an event. The
	// text of an error that wraps it never quotes one.
	ErrNotEvent = fmt.Errorf("%w: not an event", Err)
	// ErrBusy: too much is waiting already. Answered 503 with Retry-After.
	ErrBusy = fmt.Errorf("%w: too much is waiting", Err)
	// ErrParked: the program's handler fails on this event. Answered 500; it is kept.
	ErrParked = fmt.Errorf("%w: parked", Err)
)
