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
// or may not be counted; if it is not, it lies above the head.
func (s *Source) Head(ctx context.Context) (events.Cursor, error) {
	b := bracket{low: 0, high: math.MaxInt64}
	for range maxProbes {
		if b.low == b.high {
			return b.low, nil
		}
		at := b.middle()
		page, err := s.page(ctx, at, 1)
		switch {
		case errors.Is(err, events.ErrCursorExpired) && 0 < at && at < math.MaxInt64-1:
			b.low = at + 1 // something remains, and all of it lies above
		case err != nil:
			return 0, err
		default:
			if err := b.narrow(at, page); err != nil {
				return 0, err
			}
		}
	}
	if b.low == b.high {
		return b.low, nil
	}
	return 0, &client.Error{Op: opEvents, Class: client.ClassService, Cause: events.ErrNoProgress}
}

// bracket holds the head between low, at or above which there is an event (or
// the beginning), and high, above which there was none when it was asked.
type bracket struct {
	low, high events.Cursor
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
		b.high = at
		return nil
	}
	first := page.Events[0].Sequence
	switch {
	case first <= at:
		return &client.Error{
			Op: opEvents, Class: client.ClassService,
			Cause: errors.Join(events.ErrNoProgress, client.ErrBadAnswer),
		}
	case first > b.high:
		b.high = at
	case !page.More:
		b.low, b.high = first, first
	default:
		b.low = first
	}
	return nil
}
