package events_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
)

// walked ranges over Pages and returns the event IDs of each page.
func walked(ctx context.Context, source events.Source, after events.Cursor) (pages [][]string, err error) {
	for page, pageErr := range events.Pages(ctx, source, after) {
		if pageErr != nil {
			err = errors.Join(err, pageErr)
			continue
		}
		var ids []string
		for _, ev := range page.Events {
			ids = append(ids, ev.ID)
		}
		pages = append(pages, ids)
	}
	return pages, err
}

func TestPagesReadsAboveTheCursorToTheHead(t *testing.T) {
	t.Parallel()
	p := newProvider(903, 907, 911, 934, 940)
	pages, err := walked(t.Context(), p, 903)
	require.NoError(t, err)
	require.Equal(t, [][]string{eventIDs(907, 911), eventIDs(934, 940)}, pages)
	require.Equal(t, []events.Cursor{903, 911}, p.asked, "has_more false ends it, without another request")
}

func TestPagesGivesNoEmptyPage(t *testing.T) {
	t.Parallel()
	pages, err := walked(t.Context(), newProvider(), 0)
	require.NoError(t, err)
	require.Empty(t, pages)
}

func TestPagesEndsAfterAnError(t *testing.T) {
	t.Parallel()
	p := newProvider(1, 2, 3, 4)
	broken := errors.New("broken")
	p.answer = func(n int, _ events.Cursor) (*events.Page, error) {
		if n == 2 {
			return nil, broken
		}
		return nil, nil
	}
	pages, err := walked(t.Context(), p, 0)
	require.ErrorIs(t, err, broken)
	require.Len(t, pages, 1)
	require.Equal(t, 2, p.requests())
}

func TestPagesStopsWhenTheCallerDoes(t *testing.T) {
	t.Parallel()
	p := newProvider(1, 2, 3, 4)
	for range events.Pages(t.Context(), p, 0) {
		break
	}
	require.Equal(t, 1, p.requests(), "nothing is read ahead")
}

func TestPagesMayBeRangedOverAgain(t *testing.T) {
	t.Parallel()
	seq := events.Pages(t.Context(), newProvider(1, 2, 3), 0)
	for range 2 {
		n := 0
		for page, err := range seq {
			require.NoError(t, err)
			n += len(page.Events)
		}
		require.Equal(t, 3, n)
	}
}

func TestPagesRefusesANegativeCursorBeforeARequest(t *testing.T) {
	t.Parallel()
	p := newProvider(1)
	_, err := walked(t.Context(), p, -1)
	require.ErrorIs(t, err, events.ErrCursorInvalid)
	require.Zero(t, p.requests())
}

func TestPagesEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := newProvider(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := walked(ctx, p, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, p.requests())
}

func page(more bool, sequences ...events.Cursor) *events.Page {
	p := &events.Page{More: more}
	for _, s := range sequences {
		p.Events = append(p.Events, events.Event{ID: eventID(s), Sequence: s})
	}
	return p
}

// Answers on which other SDKs loop for ever.
var stuckAnswers = map[string]*events.Page{
	"an empty page that says there is more": page(true),
	"the same page again":                   page(true, 1, 2),
	"a page at the position asked with":     page(true, 2, 3),
	"a page that falls":                     page(true, 4, 3),
	"a page with one sequence twice":        page(true, 3, 3),
	"sequences below the position":          page(true, 1),
	"events without a sequence":             {More: true, Events: []events.Event{{ID: "evt_x"}}},
}

func TestPagesNoProgress(t *testing.T) {
	t.Parallel()
	for name, second := range stuckAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider()
			p.answer = func(n int, _ events.Cursor) (*events.Page, error) {
				if n == 1 {
					return page(true, 1, 2), nil
				}
				return second, nil
			}
			_, err := walked(t.Context(), p, 0)
			require.ErrorIs(t, err, events.ErrNoProgress)
			np, ok := errors.AsType[*events.NoProgressError](err)
			require.True(t, ok)
			require.EqualValues(t, 2, np.After)
			require.Equal(t, 2, p.requests())
		})
	}
}

func TestPagesOfAMailboxUntilItIsEmpty(t *testing.T) {
	t.Parallel()
	box := newMailbox("a", "b", "c")
	var seen []string
	for page, err := range events.Pages(t.Context(), box, 0) {
		require.NoError(t, err)
		for _, ev := range page.Events {
			seen = append(seen, ev.ID)
		}
		require.NoError(t, box.Settle(t.Context(), page.Events))
	}
	require.Equal(t, []string{"a", "b", "c"}, seen, "settling under a page skips nothing")
	require.Equal(t, 3, box.reads)
}

func TestPagesOfAMailboxThatIsNotSettled(t *testing.T) {
	t.Parallel()
	box := newMailbox("a", "b", "c")
	pages, err := walked(t.Context(), box, 0)
	require.ErrorIs(t, err, events.ErrNoProgress)
	require.Equal(t, [][]string{{"a", "b"}}, pages)
}

func TestPagesOfAMailboxSettledBitByBit(t *testing.T) {
	t.Parallel()
	box := newMailbox("a", "b")
	var seen []string
	for page, err := range events.Pages(t.Context(), box, 0) {
		require.NoError(t, err)
		seen = append(seen, page.Events[0].ID)
		require.NoError(t, box.Settle(t.Context(), page.Events[:1]))
	}
	require.Equal(t, []string{"a", "b"}, seen)
}

// Two pages that take turns must not go on for ever either.
func TestPagesOfAMailboxThatTakesTurns(t *testing.T) {
	t.Parallel()
	box := newMailbox("a", "b", "c", "d")
	box.inside = func(int) {
		box.mu.Lock()
		defer box.mu.Unlock()
		box.unread = slices.Concat(box.unread[2:], box.unread[:2])
	}
	pages, err := walked(t.Context(), box, 0)
	require.ErrorIs(t, err, events.ErrNoProgress)
	require.Len(t, pages, 2)
}

func TestPageLast(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 7, page(false, 3, 7).Last())
	require.Zero(t, events.Page{}.Last())
}

func TestParseCursor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]events.Cursor{"0": 0, "907": 907, "0000000000000000907": 907, "9223372036854775807": 1<<63 - 1} {
		got, err := events.ParseCursor(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "-1", "+1", " 1", "1 ", "1e3", "null", "0x1", "9223372036854775808", "00000000000000000001", "١"} {
		_, err := events.ParseCursor(text)
		require.ErrorIs(t, err, events.ErrCursorInvalid, text)
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"907", "", "9223372036854775808", "-1", "null"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := events.ParseCursor(text)
		if err != nil {
			require.ErrorIs(t, err, events.ErrCursorInvalid)
			require.Zero(t, c)
			return
		}
		again, err := events.ParseCursor(c.String())
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}
