package dedupe

import (
	"context"
	"errors"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// settle commits a part as a whole or, if the handler fails, in smaller parts
// in their order, down to one event alone, which is parked. settled is called
// after each commit. An error means that the rest is not settled: the store
// cannot take it now.
func (in *Inbox) settle(ctx context.Context, p *part, settled func(*part, outcomes)) error {
	out, err := in.commit(ctx, p)
	fail, failed := errors.AsType[*failure](err)
	switch {
	case len(p.events) > 1 && (failed || sqldb.IsLockTimeout(err)):
		return in.settleParts(ctx, p.split(!failed || fail.oneByOne), settled)
	case failed:
		out, err = in.park(ctx, p, fail)
	}
	if err == nil {
		in.tel.settled(ctx, p, out)
		settled(p, out)
	}
	return err
}

// settleParts goes on after a push whose ID another transaction holds: that is
// nobody else's matter. A cursor cannot pass it.
func (in *Inbox) settleParts(ctx context.Context, parts []*part, settled func(*part, outcomes)) error {
	var held error
	for _, p := range parts {
		err := in.settle(ctx, p, settled)
		if p.door == push && sqldb.IsLockTimeout(err) {
			held = err
		} else if err != nil {
			return err
		}
	}
	return held
}

// split cuts a part in halves, or into single events where a trial is slow.
// Each moves the cursor as far as it goes.
func (p *part) split(oneByOne bool) []*part {
	size := len(p.events) / 2
	if oneByOne {
		size = 1
	}
	var parts []*part
	for from := 0; from < len(p.events); {
		to := min(from+size, len(p.events))
		if !oneByOne && from > 0 {
			to = len(p.events)
		}
		q := *p
		q.events = p.events[from:to]
		if p.cursor > 0 && to < len(p.events) {
			q.cursor = min(p.cursor, p.events[to-1].Sequence)
		}
		parts = append(parts, &q)
		from = to
	}
	return parts
}

// Take is [events.Receiver].
func (in *Inbox) Take(ctx context.Context, b events.Batch) (events.Result, error) {
	var res events.Result
	evs, err := in.distinct(b.Events)
	if err != nil {
		return res, wrap("take", err)
	}
	if err := in.open(ctx); err != nil {
		return res, wrap("take", err)
	}
	p := &part{door: pull, events: evs, cursor: b.Cursor, history: b.History}
	err = in.settle(ctx, p, func(p *part, out outcomes) {
		add(&res, out.count(p.events))
	})
	if err == nil {
		res.Duplicate += len(b.Events) - len(evs)
	}
	return res, wrap("take", err)
}

func add(r *events.Result, o events.Result) {
	r.Fresh += o.Fresh
	r.Duplicate += o.Duplicate
	r.Parked += o.Parked
	r.Skipped += o.Skipped
}

// distinct leaves out what comes twice, and names the stream.
func (in *Inbox) distinct(evs []events.Event) ([]events.Event, error) {
	known := make(map[string]bool, len(evs))
	list := make([]events.Event, 0, len(evs))
	for _, ev := range evs {
		if ev.ID == "" {
			return nil, errNoID
		}
		if ev.ID = sqldb.Text(ev.ID); !known[ev.ID] {
			known[ev.ID] = true
			ev.Stream = in.name()
			list = append(list, ev)
		}
	}
	return list, nil
}
