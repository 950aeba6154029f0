package dedupe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// Position is [events.Receiver].
func (in *Inbox) Position(ctx context.Context) (events.Position, error) {
	row, err := in.row(ctx)
	return row.Position, wrap("position", err)
}

// streamRow is a stream's row, of which Position is the sweeper's part.
type streamRow struct {
	events.Position
	lost              events.Loss
	credentialChanged time.Time
}

func (in *Inbox) row(ctx context.Context) (r streamRow, err error) {
	if err := in.open(ctx); err != nil {
		return r, err
	}
	return in.read(ctx)
}

// read is row for who only looks: it stores nothing. Of a stream that was never
// opened it is sqldb.ErrNoRows.
func (in *Inbox) read(ctx context.Context) (r streamRow, err error) {
	var known events.Stream
	p := &r.Position
	err = sqldb.One(ctx, in.db.Read(), in.st.Position, []any{in.name()}, &p.Known, &p.Cursor, &p.Settled, &p.Attached, &p.Through, &p.Now,
		&known.Origin, &known.Environment, &r.lost.At, &r.lost.Cursor, &r.lost.Oldest, &r.credentialChanged)
	if errors.Is(err, sqldb.ErrNoRows) {
		in.opened.Store(false)
	}
	if err == nil {
		err = in.compare(known)
	}
	if err != nil {
		return streamRow{}, err
	}
	return r, nil
}

// Attach is [events.Receiver].
func (in *Inbox) Attach(ctx context.Context, head events.Cursor) error {
	if head < 0 {
		return wrap("attach", events.ErrCursorInvalid)
	}
	n, err := in.exec(ctx, "attach", in.st.Attach, in.name(), int64(head))
	if err == nil && n > 0 {
		in.log.LogAttrs(ctx, slog.LevelInfo, "stream attached", slog.Int64("head", int64(head)))
	}
	return err
}

// Reached is [events.Receiver].
func (in *Inbox) Reached(ctx context.Context, began time.Time, through events.Cursor, lookBack time.Duration, head bool) error {
	before := began.Add(-lookBack)
	err := in.inTx(ctx, "settle the position", func(tx sqldb.Tx) error {
		var settled int64
		err := sqldb.One(ctx, tx, in.st.Settled, []any{in.name(), int64(through), before, in.looked.to(before)}, &settled)
		if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(ctx, in.st.Reached, in.name(), settled, began, head)
		return err
	})
	if err == nil {
		in.looked.through(before, int64(through))
	}
	return err
}

// looked is how far the IDs were looked through for one that was seen before a
// moment. A long sweep asks again and again, and what it has met by then is
// younger, so that without this each record would look through all of it.
type looked struct {
	mu       sync.Mutex
	before   time.Time
	sequence int64
}

func (l *looked) to(before time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.before.Equal(before) {
		return 0
	}
	return l.sequence
}

func (l *looked) through(before time.Time, sequence int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.sequence = before, sequence
}

// Lost is [events.Receiver].
func (in *Inbox) Lost(ctx context.Context, cursor, oldest events.Cursor) error {
	in.log.LogAttrs(ctx, slog.LevelError, "events were lost: the provider keeps them no longer",
		slog.Int64("cursor", int64(cursor)), slog.Int64("oldest", int64(oldest)))
	_, err := in.exec(ctx, "record a loss", in.st.Lost, in.name(), int64(cursor), int64(oldest))
	return err
}

// Lease is [events.Receiver].
func (in *Inbox) Lease(ctx context.Context, owner string, d time.Duration) (bool, error) {
	if owner == "" || d <= 0 {
		return false, fmt.Errorf("%w: lease: an owner and a duration are required", Err)
	}
	n, err := in.exec(ctx, "lease", in.st.Lease, in.name(), owner, d)
	return n > 0, err
}

// Release is [events.Receiver].
func (in *Inbox) Release(ctx context.Context, owner string) error {
	_, err := in.exec(ctx, "release", in.st.Release, in.name(), owner)
	return err
}

// Unreadable is [events.Receiver].
func (in *Inbox) Unreadable(ctx context.Context, deliveryID string) (times int, err error) {
	err = in.inTx(ctx, "count an unreadable delivery", func(tx sqldb.Tx) error {
		return sqldb.One(ctx, tx, in.st.Unreadable, []any{in.name(), deliveryID}, &times)
	})
	return times, err
}

// Status is what an operator wants to know of a stream.
type Status struct {
	events.Position

	Seen       int64 // IDs kept
	Parked     int64 // tried again when due
	Failed     int64 // given up: a person decides
	Unreadable int64 // deliveries whose body is not an event

	Lost              events.Loss // the last one; its At is zero if there was none
	CredentialChanged time.Time   // zero if it never did
}

// Status reads how the stream stands. It counts rows, so it is for people and
// for a scrape a minute, not for every request.
func (in *Inbox) Status(ctx context.Context) (Status, error) {
	row, err := in.row(ctx)
	s := Status{Position: row.Position, Lost: row.lost, CredentialChanged: row.credentialChanged}
	if err == nil {
		err = sqldb.One(ctx, in.db.Read(), in.st.Status, []any{in.name()}, &s.Seen, &s.Parked, &s.Failed, &s.Unreadable)
	}
	return s, wrap("status", err)
}
