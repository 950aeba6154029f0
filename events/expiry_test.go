package events_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// settledBench is a stream swept for a while: settled at 4, cursor at 6.
func settledBench(t *testing.T) *bench {
	t.Helper()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4)
	b.sweep(t)
	time.Sleep(3 * time.Minute)
	b.sweep(t)
	b.provider.add(5, 6)
	b.sweep(t)
	require.EqualValues(t, 4, b.inbox.pos.Settled)
	require.EqualValues(t, 6, b.inbox.pos.Cursor)
	b.provider.asked, b.inbox.takes = nil, nil
	return b
}

func TestExpiredCursorRestartsFromWhatRemains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := settledBench(t)
		b.provider.add(7, 8, 9, 10, 11)
		b.provider.oldest = 9
		report := b.sweep(t)
		require.Equal(t, []events.Cursor{4, 6, 0, 10}, b.provider.asked)
		require.Equal(t, []events.Loss{{Cursor: 6, Oldest: 9}}, b.inbox.losses)
		require.EqualValues(t, 6, report.Loss.Cursor)
		require.EqualValues(t, 9, b.sweeper.Health().Loss.Oldest)
		require.Equal(t, 3, report.Fresh)
		require.EqualValues(t, 11, b.inbox.pos.Cursor)
		require.True(t, report.Head)
	})
}

// The look-back's start may expire although nothing is lost: then the true
// cursor is tried, and what remains of the look-back is read again.
func TestExpiredLookBackStartIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4)
		b.sweep(t)
		time.Sleep(3 * time.Minute)
		b.sweep(t)
		b.provider.add(6, 8)
		b.provider.addLate(7, time.Minute)
		b.sweep(t)
		b.provider.asked = nil
		b.provider.oldest = 6
		time.Sleep(time.Minute)
		report := b.sweep(t)
		require.Equal(t, []events.Cursor{4, 8, 0, 7}, b.provider.asked)
		require.Empty(t, b.inbox.losses)
		require.Nil(t, report.Loss)
		require.Equal(t, 1, report.Fresh, "the late sequence between oldest and cursor is not passed over")
	})
}

func TestExpiredWithNothingLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := settledBench(t)
		b.provider.oldest = 100
		for range 4 {
			b.sweep(t)
			time.Sleep(time.Minute)
		}
		require.Equal(t, []events.Loss{{Cursor: 6}}, b.inbox.losses, "said once")
		require.EqualValues(t, 6, b.inbox.pos.Cursor)
		require.EqualValues(t, 6, b.inbox.pos.Settled, "what no longer exists need not be looked for")
		b.provider.add(100)
		b.sweep(t)
		require.Equal(t, []events.Loss{{Cursor: 6}, {Cursor: 6, Oldest: 100}}, b.inbox.losses)
		require.EqualValues(t, 100, b.inbox.pos.Cursor)
	})
}

func TestExpiredTwiceInASweepIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := settledBench(t)
		b.provider.add(20, 21, 22)
		b.provider.oldest = 20
		b.provider.answer = func(_ int, after events.Cursor) (*events.Page, error) {
			if after > 0 {
				return nil, errExpired
			}
			return nil, nil
		}
		_, err := b.sweeper.Sweep(t.Context())
		require.ErrorIs(t, err, events.ErrCursorExpired)
		require.Equal(t, []events.Cursor{4, 6, 0, 21}, b.provider.asked)
		require.Equal(t, events.TroubleService, b.sweeper.Health().Trouble, "the next sweep restarts")
	})
}

func TestExpiredWithoutACursorIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{})
	b.provider.answer = func(int, events.Cursor) (*events.Page, error) { return nil, errExpired }
	_, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, events.ErrCursorExpired)
	require.Equal(t, 1, b.provider.requests(), "no loop")
	require.Empty(t, b.inbox.losses)
}

// The provider's retention overtakes a sweep.
func TestExpiredInTheMiddleOfASweep(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4, 5, 6)
	b.provider.inside = func(n int) {
		if n == 2 {
			b.provider.mu.Lock()
			defer b.provider.mu.Unlock()
			b.provider.oldest = 5
		}
	}
	report := b.sweep(t)
	require.Equal(t, eventIDs(1, 2, 5, 6), b.inbox.order)
	require.Equal(t, []events.Loss{{Cursor: 2, Oldest: 5}}, b.inbox.losses)
	require.True(t, report.Head)
}

// Nothing is settled yet, so the sweep asks with no cursor and meets no 410.
func TestExpiredBeforeAnythingWasSettled(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2)
	b.sweep(t)
	require.Zero(t, b.inbox.pos.Settled)
	b.provider.add(5, 9)
	b.provider.oldest = 9
	b.sweep(t)
	require.Equal(t, []events.Loss{{Cursor: 2, Oldest: 9}}, b.inbox.losses)
	require.Equal(t, eventIDs(1, 2, 9), b.inbox.order)
}

func TestLossIsRecordedBeforeTheCursorMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := settledBench(t)
		b.provider.add(9)
		b.provider.oldest = 9
		b.inbox.before = func(op string) error {
			if op == "lost" {
				return errStore
			}
			return nil
		}
		_, err := b.sweeper.Sweep(t.Context())
		require.ErrorIs(t, err, errStore)
		require.EqualValues(t, 6, b.inbox.pos.Cursor)
		b.inbox.before = nil
		b.sweep(t)
		require.Len(t, b.inbox.losses, 1)
	})
}

// A restart meets all that remains, and must not answer last year's mail.
func TestExpiredRestartDoesNotHandOverHistory(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2, 3)
	b.sweep(t)
	expire := true
	b.provider.add(4)
	b.provider.answer = func(_ int, after events.Cursor) (*events.Page, error) {
		if after > 0 && expire {
			return nil, errExpired // a provider that forgets cursors, not events
		}
		return nil, nil
	}
	b.provider.limit = 10
	report := b.sweep(t)
	require.Equal(t, events.Result{Fresh: 1, Skipped: 3}, report.Result)
	require.Equal(t, eventIDs(4), b.inbox.order)
}

func TestExpiryProbeThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := settledBench(t)
		b.provider.oldest = 50
		b.provider.answer = func(_ int, after events.Cursor) (*events.Page, error) {
			if after == 6 {
				return nil, &client.Error{Op: "list events", Status: 503}
			}
			return nil, nil
		}
		_, err := b.sweeper.Sweep(t.Context())
		require.ErrorContains(t, err, "page after 6")
		require.Empty(t, b.inbox.losses, "not known to be one")
		require.Empty(t, b.inbox.takes)
	})
}
