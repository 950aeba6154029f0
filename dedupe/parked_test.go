package dedupe_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// moody is a handler that fails on one event until it is told not to.
type moody struct {
	well  atomic.Bool
	calls atomic.Int64
	got   atomic.Pointer[events.Event]
}

func (m *moody) handler(_ context.Context, _ exec, fresh []events.Event) error {
	for _, ev := range fresh {
		if ev.ID == event(2).ID {
			m.calls.Add(1)
			if !m.well.Load() {
				return errPoison
			}
			m.got.Store(&ev)
		}
	}
	return nil
}

func listed(tb testing.TB, in *dedupe.Inbox) []dedupe.ParkedEvent {
	tb.Helper()
	list, err := in.Parked(tb.Context(), "", 0)
	require.NoError(tb, err)
	return list
}

func maintain(tb testing.TB, in *dedupe.Inbox) {
	tb.Helper()
	require.NoError(tb, in.Maintain(tb.Context()))
}

func TestAParkedEventIsTriedAgainWhenDue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		in := s.inbox(dedupe.Config{}, m.handler)
		_, err := in.Push(t.Context(), pushed(2))
		require.ErrorIs(t, err, events.ErrParked)
		_, err = in.Push(t.Context(), pushed(2))
		require.ErrorIs(t, err, events.ErrParked, "for the provider's retries too")
		require.EqualValues(t, 1, m.calls.Load(), "which do not reach the handler")

		maintain(t, in)
		require.EqualValues(t, 1, m.calls.Load(), "not due yet")
		take(t, in, page(1, 3))
		s.age(time.Minute)
		maintain(t, in)
		require.EqualValues(t, 2, m.calls.Load())
		require.Equal(t, 2, listed(t, in)[0].Attempts)

		m.well.Store(true)
		s.age(time.Hour)
		maintain(t, in)
		require.Empty(t, listed(t, in))
		require.Equal(t, span(1, 3), s.effects())
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(2)))

		want := event(2)
		want.Stream, want.OccurredAt = stream.Name, time.Time{}
		require.Equal(t, want, *m.got.Load(), "as it came, with the sequence that a sweep has told since")
	})
}

func TestRunRetriesAndWakes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		woken := make(chan struct{}, 10)
		in := s.inbox(dedupe.Config{
			RetryAfter: time.Millisecond, PollEvery: time.Millisecond,
			AfterCommit: func() { woken <- struct{}{} },
		}, m.handler)
		_, err := in.Push(t.Context(), pushed(2))
		require.ErrorIs(t, err, events.ErrParked)
		m.well.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- in.Run(ctx) }()
		<-woken
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, ids(2), s.effects())
	})
}

func TestOneRetryAtATime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		processes := []*dedupe.Inbox{s.inbox(dedupe.Config{}, m.handler), s.inbox(dedupe.Config{}, m.handler), s.inbox(dedupe.Config{}, m.handler)}
		_, err := processes[0].Push(t.Context(), pushed(2))
		require.ErrorIs(t, err, events.ErrParked)
		s.age(time.Hour)
		m.well.Store(true)
		var wg sync.WaitGroup
		for _, in := range processes {
			wg.Go(func() {
				if err := in.Maintain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, ids(2), s.effects())
	})
}

func TestAnEventFailsAfterAttemptsAndTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		var log bytes.Buffer
		in := s.inbox(dedupe.Config{MaxAttempts: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}, m.handler)
		take(t, in, page(1, 3))
		for range 4 {
			s.age(5 * time.Hour)
			maintain(t, in)
		}
		require.Zero(t, listed(t, in)[0].FailedAt, "enough attempts, but not 24 hours")
		s.age(5 * time.Hour)
		maintain(t, in)
		p := listed(t, in)[0]
		require.NotZero(t, p.FailedAt)
		require.Equal(t, 6, p.Attempts)
		require.Contains(t, log.String(), "level=ERROR")

		s.age(5 * time.Hour)
		maintain(t, in)
		require.EqualValues(t, 6+2, m.calls.Load(), "not tried any more; two calls were in larger parts")
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(2)), "acknowledged")
		st, err := in.Status(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Failed)
		require.Zero(t, st.Parked)
	})
}

func fail(t *testing.T, s *store, in *dedupe.Inbox) {
	t.Helper()
	take(t, in, page(1, 3))
	s.age(25 * time.Hour)
	maintain(t, in)
	require.NotZero(t, listed(t, in)[0].FailedAt)
}

func TestAPersonRetriesWhatHasFailed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		in := s.inbox(dedupe.Config{MaxAttempts: 1}, m.handler)
		fail(t, s, in)
		m.well.Store(true)
		require.NoError(t, in.Retry(t.Context(), event(2).ID))
		maintain(t, in)
		require.Equal(t, span(1, 3), s.effects())
		require.ErrorIs(t, in.Retry(t.Context(), event(2).ID), dedupe.ErrNotParked)
		require.ErrorIs(t, in.Retry(t.Context(), "no such event"), dedupe.ErrNotParked)
	})
}

func TestAPersonDiscardsWhatHasFailed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		in := s.inbox(dedupe.Config{MaxAttempts: 1}, m.handler)
		fail(t, s, in)
		id := event(2).ID
		require.NoError(t, in.Discard(t.Context(), id, "ana", "spam"))
		require.NoError(t, in.Discard(t.Context(), id, "bo", "again"), "again is no error")
		require.Empty(t, listed(t, in))
		require.ErrorIs(t, in.Retry(t.Context(), id), dedupe.ErrNotParked)
		require.ErrorIs(t, in.Discard(t.Context(), "no such event", "ana", ""), dedupe.ErrNotParked)
		require.Equal(t, 1, s.count("{s}parked where discarded_by = 'ana' and reason = 'spam' and length(event) = 0 and error = ''"))
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(2)))
		require.Equal(t, events.Result{Duplicate: 3}, take(t, in, page(1, 3)))

		s.age(31 * 24 * time.Hour)
		maintain(t, in)
		require.Zero(t, s.count("{s}parked"))
		require.Equal(t, ids(1, 3), s.effects())
	})
}

func TestContentIsKeptThirtyDaysAtMost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{MaxAttempts: 1000}, failsOn(2))
		take(t, in, page(1, 3))
		s.exec("update {s}parked set due = {after $1}", 100*24*time.Hour)
		s.age(29 * days)
		require.NoError(t, in.Retry(t.Context(), event(2).ID), "which does not begin the 30 days anew")
		maintain(t, in)
		require.Contains(t, listed(t, in)[0].Error.Text(), secret)
		s.age(2 * 24 * time.Hour)
		maintain(t, in)
		p := listed(t, in)[0]
		require.True(t, p.ContentGone)
		require.Zero(t, p.Error.Len(), "it may quote mail")
		require.NotZero(t, p.FailedAt, "it cannot be tried any more: a person must know")
		require.ErrorIs(t, in.Retry(t.Context(), event(2).ID), dedupe.ErrContentGone)
		s.age(1000 * 24 * time.Hour)
		maintain(t, in)
		require.Len(t, listed(t, in), 1, "nobody has decided")
		require.NoError(t, in.Discard(t.Context(), event(2).ID, "ana", "too old"))
	})
}

func TestARetriedEventHasAllItsAttemptsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var m moody
		in := s.inbox(dedupe.Config{MaxAttempts: 2}, m.handler)
		take(t, in, page(1, 3))
		s.age(25 * time.Hour)
		maintain(t, in)
		require.NotZero(t, listed(t, in)[0].FailedAt)
		require.NoError(t, in.Retry(t.Context(), event(2).ID))
		for range 3 {
			maintain(t, in)
			s.age(5 * time.Hour)
		}
		p := listed(t, in)[0]
		require.Equal(t, 3, p.Attempts)
		require.Zero(t, p.FailedAt, "not for 24 hours")
		require.WithinDuration(t, time.Now().Add(-15*time.Hour), p.FirstFailed, time.Minute, "since then")
	})
}

func TestParkedGoesOnBehindAnEvent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, failsOn(1, 2, 3, 4, 5))
		for _, n := range []int{5, 3, 1} {
			_, err := in.Push(t.Context(), pushed(n))
			require.ErrorIs(t, err, events.ErrParked)
			s.age(time.Minute)
		}
		take(t, in, events.Batch{Events: []events.Event{event(2), event(4)}})
		require.NoError(t, in.Retry(t.Context(), event(5).ID), "its place stays")
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			list, err := in.Parked(t.Context(), after, 2)
			require.NoError(t, err)
			if len(list) == 0 {
				break
			}
			for _, p := range list {
				got = append(got, p.ID)
			}
			require.NoError(t, in.Discard(t.Context(), got[len(got)-1], "ana", "seen"), "where it goes on may be decided")
		}
		require.Equal(t, ids(5, 3, 1, 2, 4), got)
		list, err := in.Parked(t.Context(), "no such event", 0)
		require.NoError(t, err)
		require.Len(t, list, 2, "from the beginning")
	})
}

// Beside people and doors that wait for rows, much is forgotten in parts.
func TestWhatIsParkedIsForgottenInBatches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		position(t, in)
		for _, values := range []string{
			"'old_' || n, 'x', {after $1}, null",
			"'gone_' || n, '', {after $1}, {after $1}",
			"'kept_' || n, '', {after $1}, null",
		} {
			s.exec("with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 2500) "+
				"insert into {s}parked (stream, event_id, event, parked_at, discarded_at, error, attempts, first_failed, due, failed_at) "+
				"select '"+stream.Name+"', "+values+", '', 1, {now}, {now}, {now} from numbers", -31*days)
		}
		s.exec("analyze {s}parked")
		last := 5000
		require.NoError(t, in.Maintain(sqldb.WithHook(t.Context(), func(point string) error {
			if point == "after commit" {
				left := s.count("{s}parked where length(event) > 0 or discarded_at is not null")
				require.GreaterOrEqual(t, left, last-1000)
				last = left
			}
			return nil
		})))
		require.Zero(t, last)
		require.Equal(t, 5000, s.count("{s}parked"))
		s.exec("analyze {s}parked")
		require.Contains(t, s.plan(dedupe.PruneContent(in), stream.Name, -time.Hour, []byte{}, 1000), "parked_content")
		require.Contains(t, s.plan(dedupe.PruneDiscarded(in), stream.Name, -time.Hour, 1000), "parked_discarded")
	})
}

// What is parked is looked through once a pruning, and not for each batch.
func TestPruningLooksThroughTheParkedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(1, 2500))
		settle(t, in)
		s.age(8 * days)
		looks := 0
		require.NoError(t, in.Maintain(sqldb.WithHook(t.Context(), func(point string) error {
			if point == dedupe.PruneLimits(in) {
				looks++
			}
			return nil
		})))
		require.Zero(t, s.count("{s}seen"))
		require.Equal(t, 1, looks)
	})
}

func TestARetryWaitsForARowAsLongAsAnyHandler(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.exec("insert into " + s.table + " values ('locked', 1)")
	first := true
	in := s.inbox(dedupe.Config{LockTimeout: 100 * time.Millisecond, CommitTimeout: time.Minute}, func(_ context.Context, exec exec, _ []events.Event) error {
		if first {
			return errPoison
		}
		return exec("update " + s.table + " set n = 3 where id = 'locked'")
	})
	_, err := in.Push(t.Context(), pushed(1))
	require.ErrorIs(t, err, events.ErrParked)
	first = false
	s.age(time.Hour)
	release := s.hold(t, "update "+s.table+" set n = 2")
	defer release()
	began := time.Now()
	maintain(t, in)
	require.Less(t, time.Since(began), 20*time.Second)
	require.Equal(t, 2, listed(t, in)[0].Attempts)
}

func TestTheShortestLockTimeoutIsAMillisecond(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	in := s.inbox(dedupe.Config{LockTimeout: time.Microsecond, CommitTimeout: time.Minute}, nil)
	position(t, in)
	release := s.hold(t, s.db.Render(`insert into {s}seen (stream, event_id, first_seen, last_seen) values ($1, $2, now(), now())`),
		stream.Name, event(1).ID)
	defer release()
	began := time.Now()
	_, err := in.Take(t.Context(), page(1, 1))
	require.True(t, sqldb.IsLockTimeout(err))
	require.Less(t, time.Since(began), 20*time.Second)
}

func TestWhatIsParkedLeavesNoWordsInTheLog(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var log bytes.Buffer
		in := s.inbox(dedupe.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
			func(_ context.Context, _ exec, fresh []events.Event) error {
				if contains(fresh, 1) {
					panic(secret)
				}
				return failsOn(2)(t.Context(), nil, fresh)
			})
		take(t, in, page(1, 3))
		for _, p := range listed(t, in) {
			require.Contains(t, p.Error.Text(), secret)
		}
		require.Contains(t, log.String(), event(2).ID)
		require.Contains(t, log.String(), "parked_test.go", "where it panicked")
		require.NotContains(t, log.String(), secret)
	})
}

func TestALongErrorIsCut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, func(context.Context, exec, []events.Event) error {
			return longError{}
		})
		_, err := in.Push(t.Context(), pushed(1))
		require.ErrorIs(t, err, events.ErrParked)
		require.Positive(t, listed(t, in)[0].Error.Len())
		require.LessOrEqual(t, listed(t, in)[0].Error.Len(), 500)
	})
}

type longError struct{}

func (longError) Error() string { return "\x00\xff" + string(bytes.Repeat([]byte("ü"), 4000)) }

func TestARetryThatDeadlocksHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	well := false
	in := s.inbox(dedupe.Config{}, func(_ context.Context, exec exec, fresh []events.Event) error {
		if !well {
			return errPoison
		}
		if contains(fresh, 1) {
			return exec("do $$ begin raise exception using errcode = '40P01'; end $$")
		}
		return nil
	})
	require.Equal(t, events.Result{Parked: 3}, take(t, in, page(1, 3)))
	s.age(time.Hour)
	well = true
	require.Error(t, in.Maintain(t.Context()))
	require.Equal(t, ids(2, 3), s.effects())
	require.Equal(t, 1, listed(t, in)[0].Attempts, "not the event's fault")
}

func TestARetryStopsWhenTheStoreIsLost(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	var m moody
	deadlock := false
	in := s.inbox(dedupe.Config{}, func(ctx context.Context, exec exec, fresh []events.Event) error {
		if deadlock {
			return exec("do $$ begin raise exception using errcode = '57P01'; end $$")
		}
		return m.handler(ctx, exec, fresh)
	})
	_, err := in.Push(t.Context(), pushed(2))
	require.ErrorIs(t, err, events.ErrParked)
	s.age(time.Hour)
	deadlock = true
	require.Error(t, in.Maintain(t.Context()))
	require.Equal(t, 1, listed(t, in)[0].Attempts, "not the event's fault")
}
