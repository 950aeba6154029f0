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
	list, err := in.Parked(tb.Context(), 100)
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
		require.Equal(t, 1, s.count("{s}parked where discarded_by = 'ana' and reason = 'spam' and length(event) = 0"))
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
		var m moody
		in := s.inbox(dedupe.Config{MaxAttempts: 1000}, m.handler)
		take(t, in, page(1, 3))
		s.exec("update {s}parked set due = {after $1}", 100*24*time.Hour)
		s.age(31 * 24 * time.Hour)
		maintain(t, in)
		p := listed(t, in)[0]
		require.True(t, p.ContentGone)
		require.NotZero(t, p.FailedAt, "it cannot be tried any more: a person must know")
		require.ErrorIs(t, in.Retry(t.Context(), event(2).ID), dedupe.ErrContentGone)
		require.NoError(t, in.Discard(t.Context(), event(2).ID, "ana", "too old"))
	})
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
