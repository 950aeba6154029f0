package events_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
)

func setupMailbox(t *testing.T, start events.Start, ids ...string) (*mailbox, *memory, *events.Sweeper) {
	t.Helper()
	box, inbox := newMailbox(ids...), newMemory()
	s, err := events.NewSweeper(box, inbox, events.SweeperConfig{Start: start})
	require.NoError(t, err)
	return box, inbox, s
}

func TestDrainReadsUntilNothingIsShown(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromBeginning, "a", "b", "c")
	report, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, inbox.order)
	require.Equal(t, []string{"a", "b", "c"}, box.settled)
	require.True(t, report.Head)
	require.Zero(t, inbox.pos.Cursor)
	require.Equal(t, []reached{{0, true}}, inbox.reached)
	require.False(t, inbox.pos.Through.IsZero())
}

func TestDrainSettlesOnlyAfterTheCommit(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromBeginning, "a", "b", "c")
	inbox.before = func(op string) error {
		if op == "take" {
			return errStore
		}
		return nil
	}
	_, err := s.Sweep(t.Context())
	require.ErrorIs(t, err, errStore)
	require.Empty(t, box.settled)
}

func TestDrainSettlesAgainAfterACrash(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromBeginning, "a", "b", "c")
	box.fail = errors.New("no network")
	_, err := s.Sweep(t.Context())
	require.ErrorIs(t, err, box.fail)
	require.Equal(t, events.TroubleService, s.Health().Trouble)
	box.fail = nil
	report, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 1, Duplicate: 2}, report.Result)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, inbox.handed)
	require.Empty(t, box.unread)
}

func TestDrainNoProgressWhenSettlingHasNoEffect(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromBeginning, "a", "b", "c")
	box.stuck = true
	_, err := s.Sweep(t.Context())
	require.ErrorIs(t, err, events.ErrNoProgress)
	require.Equal(t, 2, box.reads)
	require.Equal(t, []string{"a", "b"}, inbox.order)
	require.Empty(t, inbox.reached)
}

func TestDrainSettlesWhatIsParkedOrKnown(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromBeginning, "a", "b")
	inbox.parks["a"] = true
	_, err := inbox.Push(t.Context(), events.Event{ID: "b"})
	require.NoError(t, err)
	report, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, events.Result{Duplicate: 1, Parked: 1}, report.Result)
	require.Empty(t, box.unread)
}

func TestDrainTakesWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromBeginning, "a")
	box.inside = func(reads int) {
		if reads == 1 {
			box.receive("b", "c", "d")
		}
	}
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, inbox.order)
}

func TestDrainFromNowSettlesOldMailUnseen(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromNow, "old1", "old2", "old3")
	require.NoError(t, s.Attach(t.Context()))
	require.Empty(t, box.unread)
	box.receive("new")
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, inbox.order)
}

// Another process attaches and sends while this one settles history: the
// answer to what it sent is no history.
func TestDrainFromNowLeavesWhatCameAfterAPeerAttached(t *testing.T) {
	t.Parallel()
	box, inbox, s := setupMailbox(t, events.FromNow, "old1", "old2")
	box.inside = func(reads int) {
		if reads == 1 {
			require.NoError(t, inbox.Attach(t.Context(), 0))
			box.receive("reply")
		}
	}
	require.NoError(t, s.Attach(t.Context()))
	require.Contains(t, box.unread, "reply")
	require.Empty(t, box.settled)
}

func TestDrainHasNoCursorToSweepFrom(t *testing.T) {
	t.Parallel()
	_, _, s := setupMailbox(t, events.FromBeginning, "a")
	_, err := s.SweepFrom(t.Context(), 0)
	require.ErrorIs(t, err, events.ErrCursorInvalid)
}
