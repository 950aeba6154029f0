package events

import (
	"context"
	"fmt"
)

// NoProgressError is a source whose answers do not move on, where reading on
// would never end. It matches [ErrNoProgress].
type NoProgressError struct {
	After  Cursor // the position that was asked for
	Reason string // which rule was broken
}

func (e *NoProgressError) Error() string {
	return fmt.Sprintf("%v after %s: %s", ErrNoProgress, e.After, e.Reason)
}

func (e *NoProgressError) Unwrap() error { return ErrNoProgress }

const (
	emptyWithMore = "an empty page that says there is more"
	notRising     = "a sequence that does not rise"
	nothingNew    = "a page again with nothing new"
)

// walk is one reading of a source from a position to its head. It makes no
// request once done is true.
type walk struct {
	source Source
	after  Cursor // of the next request
	done   bool

	// Of a source without sequences: what was shown, and how much last time.
	shown map[string]bool
	count int
}

func newWalk(source Source, after Cursor) *walk {
	return &walk{source: source, after: after, shown: map[string]bool{}}
}

// next reads the next page. A source without sequences is done when a page is
// empty, any other when it says that there is no more.
func (w *walk) next(ctx context.Context) (Page, error) {
	if w.after < 0 {
		return Page{}, fmt.Errorf("%w: %s is negative", ErrCursorInvalid, w.after)
	}
	if err := context.Cause(ctx); err != nil {
		return Page{}, err
	}
	page, err := w.source.Page(ctx, w.after)
	if err != nil {
		return Page{}, err
	}
	if w.source.Sequenced() {
		return page, w.rise(page)
	}
	return page, w.shrink(page)
}

// rise wants every sequence above the one before it. It also catches a page
// that comes twice and one that ignores the position asked for.
func (w *walk) rise(page Page) error {
	if len(page.Events) == 0 && page.More {
		return &NoProgressError{w.after, emptyWithMore}
	}
	last := w.after
	for _, ev := range page.Events {
		if ev.Sequence <= last {
			return &NoProgressError{w.after, notRising}
		}
		last = ev.Sequence
	}
	w.after, w.done = last, !page.More
	return nil
}

// shrink wants a page to show something new or less than the page before.
// Otherwise what was settled is shown again, or nothing was settled.
func (w *walk) shrink(page Page) error {
	if len(page.Events) == 0 && page.More {
		return &NoProgressError{w.after, emptyWithMore}
	}
	fresh := len(w.shown) == 0 || len(page.Events) < w.count
	for _, ev := range page.Events {
		fresh = fresh || !w.shown[ev.ID]
		w.shown[ev.ID] = true
	}
	w.count, w.done = len(page.Events), len(page.Events) == 0
	if !fresh {
		return &NoProgressError{w.after, nothingNew}
	}
	return nil
}
