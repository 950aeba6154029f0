package events

import (
	"context"
	"iter"
)

// Pages reads source above after, page by page up to its head, so that a
// caller has a boundary to commit at: store the sequence of a page's last
// event, [Page.Last], together with the page's work.
//
// Every page has at least one event: a head without rows ends the iteration,
// and so never moves a stored position. It also ends after an error, which
// comes with an empty page: the source's own, [ErrCursorExpired],
// [ErrCursorInvalid] before any request, or a [NoProgressError].
//
// A source without sequences is asked again after each page until it shows
// nothing. Settle a page in the loop's body ([Settler]), or the next one is a
// NoProgressError. after is not used.
//
// Nothing is read ahead. The iteration may be ranged over again, from after.
func Pages(ctx context.Context, source Source, after Cursor) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for w := newWalk(source, after); !w.done; {
			page, err := w.next(ctx)
			if err != nil {
				yield(Page{}, err)
				return
			}
			if len(page.Events) == 0 || !yield(page, nil) {
				return
			}
		}
	}
}
