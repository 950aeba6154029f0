package efa

import (
	"context"
	"errors"
	"math"
	"math/bits"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// maxProbes bounds [Source.Head]: a bisection of the whole 63-bit range.
const maxProbes = 64

// Head finds the highest sequence without reading the history: "what lies
// above this position?" is asked with limit 1, at most 64 times and about 30
// times for a project of a million events. An event that arrives meanwhile may
// or may not be counted; if it is not, it lies above the head. Where no event
// shows the head but only an expiry does, it is asked about once more.
func (s *Source) Head(ctx context.Context) (events.Cursor, error) {
	b := bracket{low: 0, high: math.MaxInt64}
	for range maxProbes {
		if b.low == b.high {
			return s.confirm(ctx, b)
		}
		at := b.middle()
		page, err := s.page(ctx, at, 1)
		switch {
		case errors.Is(err, events.ErrCursorExpired) && 0 < at && at < math.MaxInt64-1:
			b.low, b.expired = at+1, true // something remains, and all of it lies above
		case err != nil:
			return 0, err
		default:
			if err := b.narrow(at, page); err != nil {
				return 0, err
			}
		}
	}
	if b.low == b.high {
		return s.confirm(ctx, b)
	}
	return 0, &client.Error{Op: opEvents, Class: client.ClassService, Cause: events.ErrNoProgress}
}

// confirm has an expiry said twice before it counts as the head: attached above
// all that happens, a stream would be silent for ever.
func (s *Source) confirm(ctx context.Context, b bracket) (events.Cursor, error) {
	if !b.expired {
		return b.low, nil
	}
	_, err := s.page(ctx, b.low-1, 1)
	switch {
	case errors.Is(err, events.ErrCursorExpired):
		return b.low, nil
	case err == nil:
		err = contradiction()
	}
	return 0, err
}

// contradiction is an answer that cannot be right beside the others.
func contradiction() error {
	return &client.Error{
		Op: opEvents, Class: client.ClassService,
		Cause: errors.Join(events.ErrNoProgress, client.ErrBadAnswer),
	}
}

// bracket holds the head between low, at or above which there is an event (or
// the beginning), and high, above which there was none when it was asked.
type bracket struct {
	low, high events.Cursor
	expired   bool // nothing but a 410 speaks for low
}

// unusual splits the range: sequences in use lie far below it.
const unusual events.Cursor = 1 << 57

// middle is the next position to ask. Real sequences are small, so below
// unusual the number of digits is halved first, then the range. Above it the
// range is halved from the start, or 64 probes would not do.
func (b bracket) middle() events.Cursor {
	low, high := bits.Len64(uint64(b.low)), bits.Len64(uint64(b.high)) //nolint:gosec // positions are not negative
	switch {
	case b.low < unusual && b.high > unusual:
		return unusual
	case b.low < unusual && high-low > 1:
		return 1<<((low+high)/2) - 1
	}
	return b.low + (b.high-b.low)/2
}

// narrow takes the answer about the position at. An event above high arrived
// after high was found to be empty: between at and high there is none.
func (b *bracket) narrow(at events.Cursor, page events.Page) error {
	if len(page.Events) == 0 {
		if page.More {
			return contradiction()
		}
		b.high = at
		return nil
	}
	first := page.Events[0].Sequence
	switch {
	case first <= at:
		return contradiction()
	case first > b.high:
		b.high = at
	case !page.More:
		b.low, b.high, b.expired = first, first, false
	default:
		b.low, b.expired = first, false
	}
	return nil
}
