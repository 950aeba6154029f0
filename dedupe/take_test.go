package dedupe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

func TestTakeHandsOverOnceAndMovesTheCursor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		res, err := in.Take(t.Context(), page(1, 3))
		require.NoError(t, err)
		require.Equal(t, events.Result{Fresh: 3}, res)

		res, err = in.Take(t.Context(), page(2, 5))
		require.NoError(t, err)
		require.Equal(t, events.Result{Fresh: 2, Duplicate: 2}, res)
		require.Equal(t, span(1, 5), s.effects())
		require.EqualValues(t, 5, position(t, in).Cursor)
	})
}

func TestPushHandsOverOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		res, err := in.Push(t.Context(), pushed(1))
		require.NoError(t, err)
		require.Equal(t, events.Result{Fresh: 1}, res)
		res, err = in.Push(t.Context(), pushed(1))
		require.NoError(t, err)
		require.Equal(t, events.Result{Duplicate: 1}, res)
		require.Equal(t, ids(1), s.effects())
	})
}
