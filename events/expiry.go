package events

import (
	"context"
	"errors"
	"time"
)

// expiry is a 410: the position asked for lies before what remains.
type expiry struct {
	at  Cursor
	err error
}

func (e *expiry) Error() string { return e.err.Error() }
func (e *expiry) Unwrap() error { return e.err }

// expiredAt is the position of an expiry that a restart can cure. A source
// that calls the beginning expired cannot be read at all.
func expiredAt(err error) (Cursor, bool) {
	e, ok := errors.AsType[*expiry](err)
	if !ok || e.at == 0 {
		return 0, false
	}
	return e.at, true
}

// checkCursor finds out whether an expired position means a loss. The start of
// the look-back may expire without any, so the cursor is tried before. Either
// way the sweep then begins at what remains and not at the cursor: between the
// two may lie a sequence that became visible late.
func (w *sweep) checkCursor(ctx context.Context, at Cursor) error {
	if at < w.cursor {
		_, err := w.source.Page(ctx, w.cursor)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrCursorExpired) {
			return pageError(w.cursor, err)
		}
		at = w.cursor
	}
	w.expired = &at
	return nil
}

// recordLoss comes before the first commit of a restart: after it the cursor
// would hide that something is missing.
func (w *sweep) recordLoss(ctx context.Context, got gathered) error {
	if w.expired == nil || (got.err != nil && len(got.events) == 0) {
		return nil
	}
	loss := Loss{Cursor: *w.expired, At: time.Now()}
	w.expired = nil
	if len(got.events) > 0 {
		loss.Oldest = got.events[0].Sequence
	}
	w.report.Loss = &loss
	if w.status.knows(loss) {
		return nil // a stream in which nothing remains: said once, not at every sweep
	}
	if err := w.receiver.Lost(ctx, loss.Cursor, loss.Oldest); err != nil {
		return storeError("lost", err)
	}
	w.status.lost(loss)
	return nil
}
