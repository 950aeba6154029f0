package events

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Cursor is a position in a source's sequence: events above it are still to
// come. 0 is the beginning.
type Cursor int64

// ParseCursor reads the decimal form, 1 to 19 digits within the signed 64-bit
// range. Anything else is [ErrCursorInvalid], before a request is made.
func ParseCursor(s string) (Cursor, error) {
	if len(s) < 1 || len(s) > 19 {
		return 0, fmt.Errorf("%w: %d characters, want 1 to 19 digits", ErrCursorInvalid, len(s))
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: want digits only", ErrCursorInvalid)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: over the 64-bit range", ErrCursorInvalid)
	}
	return Cursor(n), nil
}

// String is the decimal form.
func (c Cursor) String() string { return strconv.FormatInt(int64(c), 10) }

// Page is what one request to a source brought.
type Page struct {
	Events []Event
	More   bool      // the source says there is more behind it
	Date   time.Time // the provider's clock, from its answer; zero if it did not say
}

// Last is the position of the page's last event: what to store with the page's
// work. It is 0, which is no position to store, if the page has no events or
// the source no sequences.
func (p Page) Last() Cursor {
	if len(p.Events) == 0 {
		return 0
	}
	return p.Events[len(p.Events)-1].Sequence
}

// Source is what a [Sweeper] reads. client/efa and client/goshen have one.
type Source interface {
	// Stream names the project and credential that the source reads.
	Stream() Stream

	// Page reads the events above after, in rising sequence; after 0 from the
	// oldest that remains. A source without sequences shows what is still to be
	// settled, whatever after is. An expired cursor is [ErrCursorExpired]; other
	// errors are [client.Error].
	Page(ctx context.Context, after Cursor) (Page, error)

	// Head is the highest sequence there is, found without reading the
	// history; 0 if there is none.
	Head(ctx context.Context) (Cursor, error)

	// Sequenced says whether events carry sequences. Without them there is no
	// look-back, no cursor and no expiry: Page is read again until it is empty.
	Sequenced() bool
}

// Settler is a [Source] that must be told which events are committed before it
// stops showing them (Goshen's labels). A source without sequences must be one.
// Settle is called after the commit, so it may be called again for the same
// events after a crash.
type Settler interface {
	Settle(ctx context.Context, events []Event) error
}

// Leaver is a [Settler] whose provider may refuse to settle an event for good:
// Settle then fails with [client.ClassRequest]. LeaveOut is called after that,
// and from then on pages do not show those events, for as long as the Leaver
// likes. Without it one such event would keep a sweep from its end.
type Leaver interface {
	Settler
	LeaveOut(events []Event)
}
