package dedupe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

// prune has all that is stored settle, grow old and go.
func prune(tb testing.TB, s *store, in *dedupe.Inbox) {
	tb.Helper()
	settle(tb, in)
	s.age(8 * days)
	maintain(tb, in)
}

// restart is a process that finds no row of the stream.
func (s *store) restart(head events.Cursor) *dedupe.Inbox {
	s.tb.Helper()
	s.exec("delete from {s}streams")
	in := s.inbox(dedupe.Config{}, nil)
	require.NoError(s.tb, in.Attach(s.tb.Context(), head))
	return in
}

// second is a batch as of another inbox.
func second(b events.Batch) events.Batch {
	for i := range b.Events {
		b.Events[i].ID += "_2"
		b.Events[i].Inbox = "ibx_2"
	}
	return b
}

func TestALostCursorRerunsAndLosesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(1, 5))
		prune(t, s, in)
		take(t, in, page(6, 7)) // their IDs are kept

		in = s.restart(12)
		require.Equal(t, events.Result{Skipped: 12}, take(t, in, page(1, 12)), "history")
		take(t, in, page(13, 15))
		prune(t, s, in)

		in = s.restart(20)
		require.Equal(t, events.Result{Skipped: 5, Duplicate: 2, Fresh: 5}, take(t, in, history(page(1, 12))))
		require.Equal(t, events.Result{Skipped: 3, Fresh: 5}, take(t, in, history(page(13, 20))))
		require.Equal(t, span(1, 20), s.effects())
	})
}

// From the beginning a stream begins at 0 whichever row it has.
func TestALostCursorThatBeginsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 5))
		take(t, in, page(6, 9))
		prune(t, s, in)

		in = s.restart(0)
		take(t, in, page(1, 2)) // and dies
		prune(t, s, in)
		require.Equal(t, events.Result{Fresh: 3, Skipped: 6}, take(t, in, page(1, 9)))
		require.Equal(t, span(1, 9), s.effects())
	})
}

func TestWhatIsHandledSaysNothingOfWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(t *testing.T, s *store, in *dedupe.Inbox){
		"all at once": func(t *testing.T, _ *store, in *dedupe.Inbox) {
			require.Equal(t, events.Result{Fresh: 10, Skipped: 3}, take(t, in, history(second(page(1, 13)))))
		},
		"from the middle": func(t *testing.T, s *store, in *dedupe.Inbox) {
			require.Equal(t, events.Result{Fresh: 5}, take(t, in, history(second(page(6, 10)))))
			prune(t, s, in)
			require.Equal(t, events.Result{Fresh: 5, Duplicate: 5, Skipped: 3}, take(t, in, history(second(page(1, 13)))))
		},
		"in two runs": func(t *testing.T, s *store, in *dedupe.Inbox) {
			require.Equal(t, events.Result{Fresh: 5}, take(t, in, history(second(page(1, 5)))))
			prune(t, s, in)
			require.Equal(t, events.Result{Fresh: 5, Duplicate: 5, Skipped: 3}, take(t, in, history(second(page(1, 13)))))
		},
		"by a sweep that began anew": func(t *testing.T, s *store, in *dedupe.Inbox) {
			require.Equal(t, events.Result{Fresh: 5}, take(t, in, second(page(1, 5))))
			prune(t, s, in)
			require.Equal(t, events.Result{Fresh: 5, Duplicate: 5, Skipped: 3}, take(t, in, second(page(1, 13))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, s *store) {
				in := s.inbox(dedupe.Config{}, nil)
				take(t, in, page(1, 10))
				settle(t, in)
				take(t, in, second(page(11, 13))) // the credential sees it from now on
				prune(t, s, in)
				later(t, s, in)
				require.Len(t, s.effects(), 23)
			})
		})
	}
}

// A sweep that was asked for while nothing of the inbox is forgotten yet must
// not have its IDs stand for what it did not reach.
func TestASweepThatWasAskedForAndDied(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		mustPush(t, in, second(events.Batch{Events: []events.Event{pushed(4)}}).Events[0])
		take(t, in, page(1, 10))
		settle(t, in)
		take(t, in, second(page(11, 13)))
		take(t, in, history(second(page(1, 5))))
		prune(t, s, in)
		require.Equal(t, events.Result{Fresh: 5, Duplicate: 5, Skipped: 3}, take(t, in, history(second(page(1, 13)))))
		require.Len(t, s.effects(), 23)
	})
}

// The sweep during which the credential comes to see an inbox is far above the
// settled position: what lies between the two was not read of that inbox.
func TestAnInboxThatIsSeenInTheMiddleOfASweep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(1, 5))
		take(t, in, history(second(page(2, 3)))) // and dies
		take(t, in, second(page(6, 7)))
		prune(t, s, in)
		require.Equal(t, events.Result{Fresh: 3, Duplicate: 2, Skipped: 2}, take(t, in, history(second(page(1, 7)))))
		require.Len(t, s.effects(), 12)
	})
}

func TestHistoryFromTheMiddle(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 10))
		require.Equal(t, events.Result{Fresh: 5}, take(t, in, history(page(6, 10))))
		take(t, in, page(11, 12))
		prune(t, s, in)
		require.Equal(t, events.Result{Fresh: 5, Duplicate: 5, Skipped: 2}, take(t, in, history(page(1, 12))))
		require.Equal(t, span(1, 12), s.effects())
	})
}

func TestWhatASweepMeetsInItsTurnGoesThoughItWasAskedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		take(t, in, history(page(1, 5)))
		require.Equal(t, events.Result{Duplicate: 5}, take(t, in, page(1, 5)))
		prune(t, s, in)
		require.Zero(t, s.count("{s}seen"))
		require.Equal(t, events.Result{Skipped: 5}, take(t, in, page(1, 5)))
	})
}
