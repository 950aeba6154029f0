package dedupe_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

const days = 24 * time.Hour

// settle has a sweep reach the head, with everything stored settled.
func settle(tb testing.TB, in *dedupe.Inbox) {
	tb.Helper()
	pos := position(tb, in)
	reached(tb, in, pos.Now.Add(time.Second), pos.Cursor, 0, true)
}

func history(b events.Batch) events.Batch {
	b.History, b.Cursor = true, 0
	return b
}

func TestOldIDsGoAndTheFloorRemembersThem(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		for n := 0; n < 1500; n += 500 {
			take(t, in, page(n+1, n+500))
		}
		settle(t, in)
		maintain(t, in)
		require.Equal(t, 1500, s.count("{s}seen"), "not old yet")

		s.age(8 * days)
		take(t, in, page(1501, 1502))
		settle(t, in)
		maintain(t, in)
		require.Equal(t, 2, s.count("{s}seen"))

		b := page(1, 100)
		b.Cursor = 0
		require.Equal(t, events.Result{Skipped: 100}, take(t, in, b), "a lost cursor re-runs nothing")
		require.Equal(t, events.Result{Skipped: 100}, take(t, in, history(b)), "nor does an explicit sweep")
		require.Equal(t, events.Result{Skipped: 1, Duplicate: 2}, take(t, in, history(page(1500, 1502))))
		require.Equal(t, 2, s.count("{s}seen"), "and no ID comes back")
		require.Len(t, s.effects(), 1502)
	})
}

func TestOnlyWhatIsSettledGoes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(1, 4))
		pos := position(t, in)
		reached(t, in, pos.Now.Add(time.Second), 2, 0, false)
		s.age(100 * days)
		maintain(t, in)
		require.Equal(t, 2, s.count("{s}seen"))
		require.Equal(t, events.Result{Skipped: 2, Duplicate: 2}, take(t, in, page(1, 4)))
	})
}

func TestWhatASweepStillMeetsIsNotOld(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(1, 4))
		settle(t, in)
		s.age(8 * days)
		take(t, in, page(3, 4))
		maintain(t, in)
		require.Equal(t, 2, s.count("{s}seen"))
	})
}

func TestFloorsAreAnInboxsOwn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(5, 9))
		prune(t, s, in)
		require.Equal(t, events.Result{Fresh: 9}, take(t, in, history(second(page(1, 9)))), "an inbox that the credential sees for the first time")
	})
}

func TestHistoryKeepsItsIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 10))
		take(t, in, page(11, 15))
		prune(t, s, in)
		require.Equal(t, events.Result{Skipped: 5}, take(t, in, page(11, 15)))
		require.Equal(t, events.Result{Fresh: 4}, take(t, in, history(page(1, 4))), "that later events were handled says nothing about history")
		s.age(100 * days)
		maintain(t, in)
		require.Equal(t, 4, s.count("{s}seen"), "what a person asked for, and no more")
		require.Equal(t, events.Result{Duplicate: 4, Fresh: 6}, take(t, in, history(page(1, 10))))
		require.Equal(t, span(1, 15), s.effects())
	})
}

func TestAFloorDoesNotPassAParkedEvent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		in := s.inbox(dedupe.Config{MaxAttempts: 1000}, m.handler)
		b := page(1, 5)
		b.Events[3].Inbox, b.Events[4].Inbox = "ibx_2", "ibx_2"
		take(t, in, b)
		settle(t, in)
		s.age(8 * days)
		s.exec("update {s}parked set due = {after $1}", days)
		maintain(t, in)
		require.Equal(t, 2, s.count("{s}seen"), "2, which is parked, and 3 above it; other inboxes do not wait")

		m.well.Store(true)
		require.NoError(t, in.Retry(t.Context(), event(2).ID))
		maintain(t, in)
		require.Zero(t, s.count("{s}seen"))
		require.Equal(t, span(1, 5), s.effects())
	})
}

func TestAFailedEventKeepsItsIDAndHoldsUpNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		in := s.inbox(dedupe.Config{MaxAttempts: 1}, m.handler)
		fail(t, s, in)
		settle(t, in)
		s.age(8 * days)
		maintain(t, in)
		require.Equal(t, 1, s.count("{s}seen"))
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(2)))
	})
}

func TestIDsThatNoSweepMeets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		mustPush(t, in, pushed(1))
		s.age(29 * days)
		maintain(t, in)
		require.Equal(t, 1, s.count("{s}seen"))
		s.age(2 * days)
		maintain(t, in)
		require.Zero(t, s.count("{s}seen"), "a stream without a sweeper")
	})
}

func TestAnIDThatAStoppedSweepWillMeetStays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		mustPush(t, in, pushed(1))
		s.age(100 * days)
		maintain(t, in)
		require.Equal(t, events.Result{Duplicate: 1}, take(t, in, page(1, 1)), "the sweeper comes back after a hundred days")
		require.Equal(t, ids(1), s.effects())

		ev := pushed(2)
		ev.Inbox = "ibx_hidden"
		mustPush(t, in, ev)
		s.age(100 * days)
		settle(t, in)
		maintain(t, in)
		require.Zero(t, s.count("{s}seen where sequence is null"), "a sweep has passed it and did not see it")
	})
}

func TestASweepAttachedLaterMeetsNothingThatPushesBrought(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		mustPush(t, in, pushed(1))
		mustPush(t, in, pushed(2))
		now := position(t, in).Now
		s.age(40 * days)
		maintain(t, in)
		mustPush(t, in, pushed(4))
		require.Equal(t, 1, s.count("{s}seen"))

		b := page(1, 4)
		for i, ago := range []time.Duration{42 * days, 40 * days, 60 * days, time.Minute} {
			b.Events[i].OccurredAt = now.Add(-ago)
		}
		require.NoError(t, in.Attach(t.Context(), 0))
		require.Equal(t, events.Result{Skipped: 2, Fresh: 1, Duplicate: 1}, take(t, in, b), "3 happened before the pushes began")
		require.Equal(t, span(1, 4), s.effects())
	})
}

// A sweep may claim an ID while a pruning that deletes it commits: what it read
// of the floor before is old then.
func TestAPruningBetweenReadingTheFloorAndClaiming(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	in := s.inbox(dedupe.Config{LockTimeout: 10 * time.Second}, nil)
	take(t, in, page(1, 3))
	settle(t, in)
	s.age(8 * days)

	pruning, committing, commit := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		first := true
		pruning <- in.Maintain(sqldb.WithHook(t.Context(), func(point string) error {
			if point == "before commit" && first && s.count("{s}floors") == 0 {
				first = false
				close(committing)
				<-commit
			}
			return nil
		}))
	}()
	<-committing
	taken := make(chan events.Result)
	go func() {
		res, err := in.Take(context.WithoutCancel(t.Context()), page(1, 3))
		if err != nil {
			t.Error(err)
		}
		taken <- res
	}()
	require.Eventually(t, func() bool {
		var n int
		err := s.pool.QueryRow(t.Context(), "select count(*) from pg_locks where not granted and transactionid is not null").Scan(&n)
		return err == nil && n > 0
	}, 5*time.Second, 5*time.Millisecond, "the claim waits for the pruning")
	close(commit)
	require.NoError(t, <-pruning)
	require.Equal(t, events.Result{Skipped: 3}, <-taken)
	require.Equal(t, span(1, 3), s.effects())
	require.Zero(t, s.count("{s}seen"))
}
