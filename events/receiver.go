package events

import (
	"context"
	"time"
)

// Receiver is where both doors hand their events in. dedupe.Inbox is one.
//
// A method returns without error only after the commit of what it says.
type Receiver interface {
	// Stream is the stream whose events it takes.
	Stream() Stream

	// Push takes one verified event from the push door. Errors: [ErrBusy]
	// (nothing was begun), [ErrParked] (the handler fails on this event; it is
	// kept and tried again), anything else means the store cannot take it now.
	// Its commit may still come after an error.
	Push(ctx context.Context, ev Event) (Result, error)

	// Unreadable counts a genuine delivery whose body is not an event and says
	// how often its ID came so far. It claims no event ID.
	Unreadable(ctx context.Context, deliveryID string) (times int, err error)

	// Position reads where the stream's sweep stands. It compares the stored
	// origin and environment with Stream's: [ErrForeignStream].
	Position(ctx context.Context) (Position, error)

	// Attach stores head as cursor, settled and attached position, in one
	// commit, if the stream has none yet, and logs it. What lies at or below it
	// is handed over only by a batch with History set; an event without a
	// sequence lies below nothing.
	Attach(ctx context.Context, head Cursor) error

	// Take takes a batch from the pull door: its IDs, the handler's work and
	// the cursor in one commit. Events that fail alone are parked and the
	// cursor passes them. After an error some of the batch may be committed, and
	// the cursor with it as far as that goes; the rest comes again.
	Take(ctx context.Context, b Batch) (Result, error)

	// Reached records that a sweep begun at began (the store's clock, from
	// Position) has read everything up to through. It raises settled to the
	// highest sequence at or below through that was first seen, by either
	// door, before began minus lookBack. With head set the sweep reached the
	// head: everything that was visible at began has been received.
	Reached(ctx context.Context, began time.Time, through Cursor, lookBack time.Duration, head bool) error

	// Lost records that the events between cursor and the oldest that remains
	// are gone (a 410), and logs it. oldest is 0 if nothing remains. It may come
	// again for the same loss.
	Lost(ctx context.Context, cursor, oldest Cursor) error

	// Lease takes or renews the stream's sweep lease for owner until d from
	// now by the store's clock; false if another owner holds it.
	Lease(ctx context.Context, owner string, d time.Duration) (bool, error)

	// Release gives owner's lease back.
	Release(ctx context.Context, owner string) error
}

// Batch is what one commit of the pull door takes.
type Batch struct {
	Events []Event // in rising sequence

	// Cursor is where the stream stands after the commit. It only moves
	// upward; 0 leaves it.
	Cursor Cursor

	// History hands over events at or below the attached position too: an
	// explicit sweep from a cursor.
	History bool
}

// Result counts what became of a call's events.
type Result struct {
	Fresh     int // handed over and committed
	Duplicate int // seen before
	Parked    int // the handler failed on them alone; kept, tried again
	Skipped   int // at or below the attached position, or in a dedup floor
}

// Position is where a stream's sweep stands.
type Position struct {
	Known    bool   // a position is stored
	Cursor   Cursor // the highest committed
	Settled  Cursor // where a sweep begins
	Attached Cursor // what lies at or below it is history

	// Through is the moment up to which everything that the provider showed has
	// been received (what it shows late may lie before it); zero before a sweep
	// first reached the head.
	Through time.Time

	Now time.Time // the store's clock
}
