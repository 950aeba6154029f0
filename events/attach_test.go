package events_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
)

func TestAttachFromNowStoresTheHeadWithoutReading(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2, 3)
	require.NoError(t, b.sweeper.Attach(t.Context()))
	require.Equal(t, events.Position{Known: true, Cursor: 3, Settled: 3, Attached: 3, Now: b.inbox.pos.Now}, b.inbox.pos)
	require.Zero(t, b.provider.requests())
	b.provider.add(4)
	report := b.sweep(t)
	require.Equal(t, 1, report.Fresh)
	require.EqualValues(t, 3, report.From)
	require.Equal(t, 1, b.provider.heads, "once")
}

func TestAttachFromBeginning(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3)
	require.NoError(t, b.sweeper.Attach(t.Context()))
	require.True(t, b.inbox.pos.Known)
	require.Zero(t, b.inbox.pos.Cursor)
	require.Zero(t, b.provider.heads)
	require.Equal(t, 3, b.sweep(t).Fresh)
}

func TestAttachLeavesAStoredPosition(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2, 3)
	b.inbox.pos = events.Position{Known: true, Cursor: 1, Settled: 1}
	require.NoError(t, b.sweeper.Attach(t.Context()))
	require.EqualValues(t, 1, b.inbox.pos.Cursor)
	require.Zero(t, b.provider.heads)
	require.True(t, b.sweeper.Health().Attached)
}

func TestAttachAfterACrashBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2)
		crash := func(op string) error {
			if op == "attach" {
				return errStore
			}
			return nil
		}
		if lost {
			b.inbox.after = crash // the answer was lost: it is attached at 2
		} else {
			b.inbox.before = crash
		}
		require.ErrorIs(t, b.sweeper.Attach(t.Context()), errStore)
		require.False(t, b.sweeper.Health().Attached)
		b.inbox.before, b.inbox.after = nil, nil
		b.provider.add(3)
		require.NoError(t, b.another(t, events.SweeperConfig{Start: events.FromNow}).Attach(t.Context()))
		want := events.Cursor(3)
		if lost {
			want = 2
		}
		require.Equal(t, want, b.inbox.pos.Attached)
	}
}

func TestAttachWithoutAHead(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1)
	broken := errors.New("no network")
	b.provider.answer = func(int, events.Cursor) (*events.Page, error) { return nil, broken }
	require.ErrorIs(t, b.sweeper.Attach(t.Context()), broken)
	require.False(t, b.inbox.pos.Known, "not attached at 0 by mistake")
	select {
	case <-b.sweeper.Attached():
		t.Fatal("not attached")
	default:
	}
}

func TestAttachedIsClosedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	b.sweep(t)
	b.sweep(t)
	<-b.sweeper.Attached()
	require.NoError(t, b.sweeper.Attach(t.Context()))
}
