package dedupe_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

func TestAttachOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		pos := position(t, in)
		require.False(t, pos.Known)
		require.WithinDuration(t, time.Now(), pos.Now, time.Minute)

		require.NoError(t, in.Attach(t.Context(), 70))
		require.NoError(t, in.Attach(t.Context(), 90), "no-op")
		pos = position(t, in)
		pos.Now = time.Time{}
		require.Equal(t, events.Position{Known: true, Cursor: 70, Settled: 70, Attached: 70}, pos)
		require.ErrorIs(t, in.Attach(t.Context(), -1), events.ErrCursorInvalid)
	})
}

func TestAStreamAttachedAtZeroIsKnown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		require.True(t, position(t, in).Known)
		require.Equal(t, events.Result{Fresh: 2}, take(t, in, page(1, 2)))
	})
}

func reached(tb testing.TB, in *dedupe.Inbox, began time.Time, through events.Cursor, lookBack time.Duration, head bool) events.Position {
	tb.Helper()
	require.NoError(tb, in.Reached(tb.Context(), began, through, lookBack, head))
	return position(tb, in)
}

func TestReachedSettlesWhatWasSeenBeforeTheLookBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		began := position(t, in).Now
		take(t, in, page(1, 4))
		s.age(10 * time.Minute)
		mustPush(t, in, pushed(7))
		s.age(5 * time.Minute) // 1 to 4 were seen 15 minutes ago, 7 five
		take(t, in, page(5, 8))

		require.Zero(t, reached(t, in, began.Add(-time.Hour), 8, 2*time.Minute, false).Settled, "nothing was seen so early")
		require.EqualValues(t, 4, reached(t, in, began, 8, 10*time.Minute, false).Settled)
		require.EqualValues(t, 4, reached(t, in, began, 6, 2*time.Minute, false).Settled, "7 lies beyond what was read")
		pos := reached(t, in, began, 8, 2*time.Minute, false)
		require.EqualValues(t, 7, pos.Settled, "first seen by the other door")
		require.Zero(t, pos.Through, "the head was not reached")
		require.EqualValues(t, 7, reached(t, in, began, 8, 10*time.Minute, false).Settled, "it only rises")
	})
}

// A first catch-up of a million events records how far it came a hundred times.
// What one record has looked through is not old enough for the next one either.
func TestReachedLooksThroughNothingTwice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		began := position(t, in).Now
		take(t, in, page(1, 8))
		require.Zero(t, reached(t, in, began, 4, time.Minute, false).Settled)
		s.age(time.Hour) // what is looked at now would do
		require.Zero(t, reached(t, in, began, 4, time.Minute, false).Settled)
		require.EqualValues(t, 6, reached(t, in, began, 6, time.Minute, false).Settled)
		require.EqualValues(t, 8, reached(t, in, began.Add(time.Second), 8, time.Minute, true).Settled, "another sweep looks for itself")
	})
}

// What a record has not stored was not looked through.
func TestReachedThatFailsLooksAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		began := position(t, in).Now
		take(t, in, page(1, 8))
		s.age(time.Hour)
		crash := sqldb.WithHook(t.Context(), func(point string) error {
			if point == "before commit" {
				return errCrash
			}
			return nil
		})
		require.ErrorIs(t, in.Reached(crash, began, 4, time.Minute, false), errCrash)
		require.EqualValues(t, 4, reached(t, in, began, 4, time.Minute, false).Settled)
	})
}

func TestReachedTheHead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		began := position(t, in).Now
		require.True(t, reached(t, in, began, 0, 0, true).Through.Equal(began))
		require.True(t, reached(t, in, began.Add(-time.Hour), 0, 0, true).Through.Equal(began), "it only rises")
		later := began.Add(time.Second)
		require.True(t, reached(t, in, later, 0, 0, true).Through.Equal(later))
	})
}

func TestLease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		a, b := s.inbox(dedupe.Config{}, nil), s.inbox(dedupe.Config{}, nil)
		lease := func(in *dedupe.Inbox, owner string) bool {
			ok, err := in.Lease(t.Context(), owner, time.Minute)
			require.NoError(t, err)
			return ok
		}
		require.True(t, lease(a, "a"))
		require.True(t, lease(a, "a"), "renewed")
		require.False(t, lease(b, "b"))
		require.NoError(t, b.Release(t.Context(), "b"))
		require.False(t, lease(b, "b"), "nobody gives back what is another's")
		require.NoError(t, a.Release(t.Context(), "a"))
		require.True(t, lease(b, "b"))
		s.exec("update {s}streams set lease_until = {after $1}", -time.Second)
		require.True(t, lease(a, "a"), "it ran out")
		_, err := a.Lease(t.Context(), "", time.Minute)
		require.ErrorIs(t, err, dedupe.Err)
	})
}

func TestAnotherProjectUnderAKnownName(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		mustPush(t, s.inbox(dedupe.Config{}, nil), pushed(1))
		for _, change := range []func(*events.Stream){
			func(st *events.Stream) { st.Origin = "https://provider.example/p2" },
			func(st *events.Stream) { st.Environment = "live" },
		} {
			foreign := stream
			change(&foreign)
			in := s.inbox(dedupe.Config{Stream: foreign}, nil)
			_, err := in.Position(t.Context())
			require.ErrorIs(t, err, events.ErrForeignStream)
			_, err = in.Push(t.Context(), pushed(2))
			require.ErrorIs(t, err, events.ErrForeignStream)
			_, err = in.Take(t.Context(), page(2, 2))
			require.ErrorIs(t, err, events.ErrForeignStream)
			require.ErrorIs(t, in.Attach(t.Context(), 1), events.ErrForeignStream)
			require.ErrorIs(t, in.Run(t.Context()), events.ErrForeignStream)
		}
		named := s.inbox(dedupe.Config{Stream: events.Stream{Name: stream.Name}}, nil)
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, named, pushed(1)), "what is not said is not compared")
		require.Equal(t, ids(1), s.effects())
	})
}

func TestAnotherCredentialGoesOnAndIsReportedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var log bytes.Buffer
		cfg := dedupe.Config{Stream: stream, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		take(t, s.inbox(cfg, nil), page(1, 2))
		st, err := s.inbox(cfg, nil).Status(t.Context())
		require.NoError(t, err)
		require.Zero(t, st.CredentialChanged)
		require.NotContains(t, log.String(), "the key is another")

		cfg.Stream.Credential = "key-2"
		for range 2 {
			in := s.inbox(cfg, nil)
			require.Equal(t, events.Result{Duplicate: 2}, take(t, in, page(1, 2)))
			st, err := in.Status(t.Context())
			require.NoError(t, err)
			require.WithinDuration(t, st.Now, st.CredentialChanged, time.Minute)
		}
		require.Equal(t, 1, strings.Count(log.String(), "the key is another than before"))
		require.NotContains(t, log.String(), "key-2")
	})
}

func TestStreamsAreApart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		a := s.inbox(dedupe.Config{}, nil)
		b := s.inbox(dedupe.Config{Stream: events.Stream{Name: "other"}}, nil)
		take(t, a, page(1, 2))
		require.Equal(t, events.Result{Fresh: 2}, take(t, b, page(1, 2)))
		require.NoError(t, a.Attach(t.Context(), 9))
		require.EqualValues(t, 2, position(t, b).Cursor)
	})
}

func TestUnreadableDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		for want := 1; want <= 3; want++ {
			n, err := in.Unreadable(t.Context(), "dlv_1")
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		n, err := in.Unreadable(t.Context(), "dlv_2")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Zero(t, s.count("{s}seen"), "no event ID is claimed")

		s.age(31 * 24 * time.Hour)
		maintain(t, in)
		n, err = in.Unreadable(t.Context(), "dlv_1")
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, failsOn(2))
		take(t, in, page(1, 3))
		_, err := in.Unreadable(t.Context(), "dlv_1")
		require.NoError(t, err)
		require.NoError(t, in.Lost(t.Context(), 3, 9))
		st, err := in.Status(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, st.Cursor)
		require.EqualValues(t, 3, st.Seen)
		require.EqualValues(t, 1, st.Parked)
		require.EqualValues(t, 1, st.Unreadable)
		require.WithinDuration(t, st.Now, st.Lost.At, time.Minute)
		require.EqualValues(t, 3, st.Lost.Cursor)
		require.EqualValues(t, 9, st.Lost.Oldest)
	})
}
