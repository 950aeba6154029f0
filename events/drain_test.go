package events_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
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

// No index takes a name of any length; the provider knows it by no other.
func TestDrainShortensNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1025)
	box, inbox, s := setupMailbox(t, events.FromBeginning, long, long+"y", long[1:])
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{long, long + "y", long[1:]}, box.settled)
	require.Len(t, inbox.handed, 3)
	require.Equal(t, long[1:], inbox.order[2])
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", inbox.order[0])
}

// A mailbox that a provider will not let be settled.
type leaver struct {
	*mailbox
	refused string
	left    []string
}

func (l *leaver) Settle(ctx context.Context, evs []events.Event) error {
	others := slices.DeleteFunc(slices.Clone(evs), func(ev events.Event) bool { return ev.ID == l.refused })
	err := l.mailbox.Settle(ctx, others)
	if err == nil && len(others) < len(evs) {
		err = &client.Error{Op: "label", Status: 400, Class: client.ClassRequest}
	}
	return err
}

func (l *leaver) LeaveOut(evs []events.Event) {
	for _, ev := range evs {
		l.left = append(l.left, ev.ID)
	}
	l.unread = slices.DeleteFunc(l.unread, func(id string) bool { return id == l.refused })
}

func TestDrainGoesOnWithoutWhatCannotBeSettled(t *testing.T) {
	t.Parallel()
	box, inbox, _ := setupMailbox(t, events.FromBeginning, "a", "b", "c")
	source := &leaver{mailbox: box, refused: "b"}
	s, err := events.NewSweeper(source, inbox, events.SweeperConfig{Start: events.FromBeginning})
	require.NoError(t, err)
	report, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.True(t, report.Head)
	require.Equal(t, []string{"a", "b", "c"}, inbox.order)
	require.Equal(t, []string{"a", "c"}, box.settled)
	require.Equal(t, []string{"a", "b"}, source.left, "the batch in which it was")

	box.fail, box.unread = errors.New("no network"), []string{"d"}
	_, err = s.Sweep(t.Context())
	require.ErrorIs(t, err, box.fail)
}

// History that cannot be settled would be shown again as if it were new.
func TestDrainFromNowDoesNotGoOnWithoutSettling(t *testing.T) {
	t.Parallel()
	box, inbox, _ := setupMailbox(t, events.FromNow, "a", "b")
	source := &leaver{mailbox: box, refused: "b"}
	s, err := events.NewSweeper(source, inbox, events.SweeperConfig{Start: events.FromNow})
	require.NoError(t, err)
	for range 2 {
		_, err = s.Sweep(t.Context())
		require.Error(t, err)
	}
	require.Empty(t, source.left)
	require.False(t, inbox.pos.Known)
	require.Equal(t, events.TroubleRequest, s.Health().Trouble)
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
