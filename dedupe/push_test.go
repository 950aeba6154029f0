package dedupe_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

func TestPushHandsOverOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.Equal(t, events.Result{Fresh: 1}, mustPush(t, in, pushed(1)))
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(1)))
		require.Equal(t, ids(1), s.effects())
	})
}

func TestPushTellsWhatASweepHasHandled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(1, 2))
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(2)))
		require.Equal(t, ids(1, 2), s.effects())
	})
}

// gate is a handler that stands still in its first commit until it is opened.
type gate struct {
	entered, open chan struct{}
	once          sync.Once
}

func newGate() *gate { return &gate{entered: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) handler(context.Context, exec, []events.Event) error {
	g.once.Do(func() {
		close(g.entered)
		<-g.open
	})
	return nil
}

// pushAll pushes events at once, each in a goroutine of its own; wait returns
// the results by event, once all have an answer.
func pushAll(ctx context.Context, in *dedupe.Inbox, evs ...events.Event) (wait func() ([]events.Result, []error)) {
	results, errs := make([]events.Result, len(evs)), make([]error, len(evs))
	var wg sync.WaitGroup
	for i, ev := range evs {
		wg.Go(func() { results[i], errs[i] = in.Push(ctx, ev) })
	}
	return func() ([]events.Result, []error) {
		wg.Wait()
		return results, errs
	}
}

// waiting returns when n pushes wait: one more than fit is refused.
func waiting(tb testing.TB, in *dedupe.Inbox, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool { return dedupe.Open(in) == n }, 5*time.Second, time.Millisecond)
}

func TestPushesThatWaitShareACommit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		g := newGate()
		var n, woken atomic.Int64
		in := s.inbox(dedupe.Config{GroupSize: 8, AfterCommit: func() { woken.Add(1) }}, g.handler)
		position(t, in)
		ctx := commits(t.Context(), &n)
		first := pushAll(ctx, in, pushed(1))
		<-g.entered
		var rest []events.Event
		for i := 2; i <= 17; i++ {
			rest = append(rest, pushed(i))
		}
		wait := pushAll(ctx, in, rest...)
		waiting(t, in, 17)
		close(g.open)
		first()
		_, errs := wait()
		require.NoError(t, errors.Join(errs...))
		require.EqualValues(t, 3, n.Load(), "one, and sixteen in groups of eight")
		require.EqualValues(t, 3, woken.Load())
		require.Equal(t, span(1, 17), s.effects())
		require.Equal(t, 16, s.count(s.table+" where n = 8"))
	})
}

func TestALonePushWaitsForNobody(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var n atomic.Int64
		in := s.inbox(dedupe.Config{}, nil)
		position(t, in)
		for i := range 5 {
			_, err := in.Push(commits(t.Context(), &n), pushed(i))
			require.NoError(t, err)
			require.EqualValues(t, i+1, n.Load())
		}
	})
}

// stopped is a context whose work stands still at a boundary, the first time it
// gets there, and then goes on with what instead returns.
func stopped(ctx context.Context, at func(point string) bool, instead func() error) (_ context.Context, there <-chan struct{}, goOn func()) {
	reached, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	return sqldb.WithHook(ctx, func(point string) (err error) {
		if at(point) {
			once.Do(func() {
				close(reached)
				<-open
				err = instead()
			})
		}
		return err
	}), reached, sync.OnceFunc(func() { close(open) })
}

func beginning(point string) bool { return point == "begin" }

func nothing() error { return nil }

// What comes while a connection or SQLite's one writer is waited for is in time.
func TestAGroupIsGatheredOnceItsTransactionHasBegun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		position(t, in)
		ctx, begun, goOn := stopped(t.Context(), beginning, nothing)
		defer goOn()
		first := pushAll(ctx, in, pushed(1))
		<-begun
		rest := pushAll(ctx, in, pushed(2), pushed(3))
		waiting(t, in, 3)
		goOn()
		_, errs := first()
		require.NoError(t, errors.Join(errs...))
		_, errs = rest()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, 3, s.count(s.table+" where n = 3"))
	})
}

func TestPushesWhoseTransactionCannotBegin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		position(t, in)
		ctx, begun, goOn := stopped(t.Context(), beginning, func() error { return errCrash })
		defer goOn()
		first := pushAll(ctx, in, pushed(1))
		<-begun
		rest := pushAll(ctx, in, pushed(2), pushed(2), pushed(3))
		waiting(t, in, 4)
		goOn()
		_, errs := first()
		_, more := rest()
		for _, err := range slices.Concat(errs, more) {
			require.ErrorIs(t, err, errCrash)
			require.NotErrorIs(t, err, events.ErrParked)
		}
		waiting(t, in, 0)
		require.Empty(t, s.effects())
		for n := 1; n <= 3; n++ {
			require.Equal(t, events.Result{Fresh: 1}, mustPush(t, in, pushed(n)))
		}
	})
}

// A transaction that runs again is of the same pushes.
func TestAGroupThatRunsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		position(t, in)
		deadlock := func() error { return &pgconn.PgError{Code: "40P01"} }
		ctx, there, goOn := stopped(t.Context(), func(point string) bool { return point == "before commit" }, deadlock)
		defer goOn()
		first := pushAll(ctx, in, pushed(1))
		<-there
		rest := pushAll(ctx, in, pushed(2), pushed(1))
		waiting(t, in, 3)
		goOn()
		results, errs := first()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, []events.Result{{Fresh: 1}}, results)
		results, errs = rest()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, []events.Result{{Fresh: 1}, {Duplicate: 1}}, results)
		require.Equal(t, 2, s.count(s.table+" where n = 1"))
	})
}

func TestTwinsInOneGroupAreFreshOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		g := newGate()
		in := s.inbox(dedupe.Config{}, g.handler)
		first := pushAll(t.Context(), in, pushed(1))
		<-g.entered
		wait := pushAll(t.Context(), in, pushed(2), pushed(2), pushed(2))
		waiting(t, in, 4)
		close(g.open)
		first()
		results, errs := wait()
		require.NoError(t, errors.Join(errs...))
		require.ElementsMatch(t, []events.Result{{Fresh: 1}, {Duplicate: 1}, {Duplicate: 1}}, results)
		require.Equal(t, ids(1, 2), s.effects())
	})
}

func TestTooManyWaitingIsBusy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		g := newGate()
		in := s.inbox(dedupe.Config{MaxWaiting: 3}, g.handler)
		first := pushAll(t.Context(), in, pushed(1))
		<-g.entered
		wait := pushAll(t.Context(), in, pushed(2), pushed(3))
		waiting(t, in, 3)
		_, err := in.Push(t.Context(), pushed(4))
		require.ErrorIs(t, err, events.ErrBusy)
		close(g.open)
		first()
		_, errs := wait()
		require.NoError(t, errors.Join(errs...))
		mustPush(t, in, pushed(4))
		require.Equal(t, span(1, 4), s.effects())
	})
}

func TestARequestThatEndsDoesNotEndItsCommit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		g := newGate()
		in := s.inbox(dedupe.Config{}, g.handler)
		ctx, cancel := context.WithCancelCause(t.Context())
		wait := pushAll(ctx, in, pushed(1))
		<-g.entered
		gone := errors.New("the client went away")
		cancel(gone)
		_, errs := wait()
		require.ErrorIs(t, errs[0], gone)
		require.ErrorIs(t, errs[0], dedupe.Err)
		close(g.open)
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, pushed(1)))
		require.Equal(t, ids(1), s.effects())

		_, err := in.Push(ctx, pushed(2))
		require.ErrorIs(t, err, gone)
		mustPush(t, in, pushed(3))
		require.Equal(t, ids(1, 3), s.effects(), "a request that has ended begins nothing")
	})
}

func TestManyPushersAndDuplicates(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		processes := []*dedupe.Inbox{s.inbox(dedupe.Config{}, nil), s.inbox(dedupe.Config{}, nil)}
		const pushers, each = 32, 20
		var freshCount atomic.Int64
		var wg sync.WaitGroup
		for p := range pushers {
			wg.Go(func() {
				for i := range each {
					res, err := processes[p%2].Push(t.Context(), pushed((p*7+i*3)%100))
					if err != nil {
						t.Error(err)
					}
					freshCount.Add(int64(res.Fresh))
				}
			})
		}
		wg.Go(func() {
			for from := 0; from < 100; from += 10 {
				if _, err := processes[0].Take(t.Context(), page(from, from+9)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
		require.Equal(t, span(0, 99), s.effects())
		require.LessOrEqual(t, freshCount.Load(), int64(100))
	})
}

func TestAPoisonPushAmongNeighbours(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		g := newGate()
		in := s.inbox(dedupe.Config{}, func(ctx context.Context, exec exec, fresh []events.Event) error {
			if contains(fresh, 5) {
				return errPoison
			}
			if contains(fresh, 9) {
				panic("poison")
			}
			return g.handler(ctx, exec, fresh)
		})
		first := pushAll(t.Context(), in, pushed(1))
		<-g.entered
		var rest []events.Event
		for i := 2; i <= 12; i++ {
			rest = append(rest, pushed(i))
		}
		wait := pushAll(t.Context(), in, rest...)
		waiting(t, in, 12)
		close(g.open)
		first()
		results, errs := wait()
		for i, err := range errs {
			if n := i + 2; n == 5 || n == 9 {
				require.ErrorIs(t, err, events.ErrParked)
				require.Equal(t, events.Result{Parked: 1}, results[i])
			} else {
				require.NoError(t, err)
			}
		}
		require.Equal(t, ids(1, 2, 3, 4, 6, 7, 8, 10, 11, 12), s.effects())
	})
}

func TestAHandlerSlowerThanTheTimeoutIsParkedAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{CommitTimeout: time.Second}, func(ctx context.Context, _ exec, fresh []events.Event) error {
			if contains(fresh, 3) {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		require.Equal(t, events.Result{Fresh: 5, Parked: 1}, take(t, in, page(1, 6)))
		require.Equal(t, ids(1, 2, 4, 5, 6), s.effects())
		list, err := in.Parked(t.Context(), "", 0)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, event(3).ID, list[0].ID)
		require.Contains(t, list[0].Error.Text(), "timeout")
	})
}

func TestAHandlerThatEndsItsGoroutineStopsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, func(_ context.Context, _ exec, fresh []events.Event) error {
			if contains(fresh, 1) {
				runtime.Goexit()
			}
			return nil
		})
		_, err := in.Push(t.Context(), pushed(1))
		require.ErrorIs(t, err, dedupe.Err)
		mustPush(t, in, pushed(2))
		require.Equal(t, ids(2), s.effects())
	})
}

// hold keeps a row of the user's locked until release is called.
func (s *store) hold(t *testing.T, query string, args ...any) (release func()) {
	t.Helper()
	tx, err := s.pool.Begin(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), query, args...)
	require.NoError(t, err)
	return sync.OnceFunc(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
}

func TestALockTimeoutInTheHandler(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.exec("insert into " + s.table + " values ('locked', 1)")
	release := s.hold(t, "update "+s.table+" set n = 2")
	defer release()
	in := s.inbox(dedupe.Config{LockTimeout: 100 * time.Millisecond}, func(_ context.Context, exec exec, fresh []events.Event) error {
		if contains(fresh, 3) {
			return exec("update " + s.table + " set n = 3 where id = 'locked'")
		}
		return nil
	})
	began := time.Now()
	require.Equal(t, events.Result{Fresh: 5, Parked: 1}, take(t, in, page(1, 6)))
	require.Less(t, time.Since(began), 5*time.Second, "the handler's statements have our lock timeout")
}

func TestAnIDThatAnotherTransactionHolds(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	g := newGate()
	in := s.inbox(dedupe.Config{LockTimeout: 100 * time.Millisecond}, g.handler)
	position(t, in)
	release := s.hold(t, s.db.Render(`insert into {s}seen (stream, event_id, first_seen, last_seen) values ($1, $2, now(), now())`),
		stream.Name, event(3).ID)
	defer release()

	first := pushAll(t.Context(), in, pushed(1))
	<-g.entered
	wait := pushAll(t.Context(), in, pushed(2), pushed(3), pushed(4))
	waiting(t, in, 4)
	close(g.open)
	first()
	_, errs := wait()
	require.NoError(t, errs[0])
	require.Error(t, errs[1], "nobody knows yet what becomes of it")
	require.NotErrorIs(t, errs[1], events.ErrParked)
	require.NoError(t, errs[2])
	require.Zero(t, s.count("{s}parked"))

	res, err := in.Take(t.Context(), page(5, 6))
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 2}, res)
	res, err = in.Take(t.Context(), page(1, 4))
	require.Error(t, err, "a cursor cannot pass it")
	require.Equal(t, events.Result{Duplicate: 2}, res)

	release()
	require.Equal(t, events.Result{Fresh: 1}, mustPush(t, in, pushed(3)))
	require.Equal(t, span(1, 6), s.effects())
}
