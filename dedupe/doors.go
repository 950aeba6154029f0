package dedupe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/internal/sqldb"
)

var _ doctor.Inbox = (*Inbox)(nil)

const (
	// doorSample is how many of the newest events are counted, of those that a
	// sweep has met and of those that none has: what it costs does not grow.
	doorSample = 1000

	// unmetAfter is how much later a sweep must have begun to pass an event by.
	unmetAfter = time.Hour

	// strayFor is how long after the stream began, or lost events, pushes may
	// still come of what no sweep will meet: a provider goes on trying that long.
	strayFor = day
)

// Doors is [doctor.Inbox]: what the doors brought, of the newest 1,000 events
// that a sweep has met and of the newest 1,000 that none has. The other counts
// end at 1,000.
func (in *Inbox) Doors(ctx context.Context) (doctor.Doors, error) {
	d, err := in.doors(ctx)
	return d, wrap("look at the doors", err)
}

func (in *Inbox) doors(ctx context.Context) (doctor.Doors, error) {
	row, err := in.read(ctx)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return doctor.Doors{}, err
	}
	d := doctor.Doors{
		Known: row.Known, Cursor: row.Cursor, Settled: row.Settled, Attached: row.Attached, Through: row.Through.UTC(),
		CredentialChanged: row.credentialChanged.UTC(), Sample: doorSample, Remembers: min(in.cfg.Retain, in.cfg.RetainUnswept),
	}
	var attached time.Time
	err = sqldb.One(ctx, in.db.Read(), in.st.Counts, []any{in.name(), doorSample}, &d.Now, &attached, &d.Parked, &d.Failed, &d.Unreadable)
	if err != nil {
		return doctor.Doors{}, err
	}
	d.Now = d.Now.UTC()
	if d.Attached > 0 {
		d.Since = attached.UTC()
	}
	if !row.lost.At.IsZero() {
		row.lost.At = row.lost.At.UTC()
		d.Loss, d.Since = &row.lost, later(d.Since, row.lost.At)
	}
	d.Inboxes, err = in.inboxDoors(ctx, d)
	return d, err
}

// inboxDoors counts by inbox.
func (in *Inbox) inboxDoors(ctx context.Context, d doctor.Doors) ([]doctor.InboxDoors, error) {
	by := map[string]*doctor.InboxDoors{}
	err := in.db.Read().Query(ctx, in.st.Swept, []any{in.name(), doorSample}, func(scan sqldb.Scan) error {
		var i doctor.InboxDoors
		err := scan(&i.Inbox, &i.Both, &i.SweepOnly, &i.Met)
		i.Swept, i.Met = true, i.Met.UTC()
		by[i.Inbox] = &i
		return err
	})
	if err == nil {
		err = in.unswept(ctx, d, by)
	}
	if err == nil {
		err = in.floors(ctx, by)
	}
	list := []doctor.InboxDoors{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		list = append(list, *by[name])
	}
	return list, err
}

// unswept adds what no sweep has met.
func (in *Inbox) unswept(ctx context.Context, d doctor.Doors, by map[string]*doctor.InboxDoors) error {
	// Not the zero time, which is NULL.
	from, until := time.Unix(0, 0), time.Unix(0, 0)
	if !d.Since.IsZero() {
		from = d.Since.Add(strayFor)
	}
	if !d.Through.IsZero() {
		until = d.Through.Add(-unmetAfter)
	}
	return in.db.Read().Query(ctx, in.st.Unswept, []any{in.name(), doorSample, from, until}, func(scan sqldb.Scan) error {
		var i doctor.InboxDoors
		var bySweep int // of a source without sequences
		err := scan(&i.Inbox, &i.PushOnly, &bySweep, &i.Unmet, &i.Oldest)
		known := by[i.Inbox]
		if known == nil {
			known = &doctor.InboxDoors{Inbox: i.Inbox}
			by[i.Inbox] = known
		}
		known.PushOnly, known.Unmet, known.Oldest = i.PushOnly, i.Unmet, i.Oldest.UTC()
		known.SweepOnly += bySweep
		return err
	})
}

// floors adds what is remembered of events whose IDs are gone: a sweep has met
// them.
func (in *Inbox) floors(ctx context.Context, by map[string]*doctor.InboxDoors) error {
	names := slices.Collect(maps.Keys(by))
	return in.db.Read().Query(ctx, in.st.Floors, []any{in.name(), names}, func(scan sqldb.Scan) error {
		var inbox string
		var floor events.Cursor
		err := scan(&inbox, &floor)
		by[inbox].Floor = floor
		by[inbox].Swept = by[inbox].Swept || floor > 0
		return err
	})
}

// Known is [doctor.Inbox].
func (in *Inbox) Known(ctx context.Context, ids []string) (map[string]bool, error) {
	swept := map[string]bool{}
	err := in.db.Read().Query(ctx, in.st.Known, []any{in.name(), ids}, func(scan sqldb.Scan) error {
		var id string
		var met bool
		err := scan(&id, &met)
		swept[id] = met
		return err
	})
	return swept, wrap("look for events", err)
}
