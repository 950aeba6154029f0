package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

func TestTakeHandsOverOnceAndMovesTheCursor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.Equal(t, events.Result{Fresh: 3}, take(t, in, page(1, 3)))
		require.Equal(t, events.Result{Fresh: 2, Duplicate: 2}, take(t, in, page(2, 5)))
		require.Equal(t, span(1, 5), s.effects())
		require.EqualValues(t, 5, position(t, in).Cursor)
	})
}

func TestTakeHandsOverInOrderWithStreamAndData(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		var got []events.Event
		in := s.inbox(dedupe.Config{}, func(_ context.Context, _ exec, fresh []events.Event) error {
			got = append(got, fresh...)
			return nil
		})
		b := events.Batch{Cursor: 30}
		for _, n := range []int{30, 4, 17, 9, 25} { // IDs sort otherwise than they come
			ev := event(n)
			ev.Sequence = events.Cursor(26 + len(b.Events))
			b.Events = append(b.Events, ev)
		}
		take(t, in, b)
		for i := range b.Events {
			b.Events[i].Stream = stream.Name
		}
		require.Equal(t, b.Events, got)
	})
}

func TestADuplicateInOneBatchCountsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		b := events.Batch{Events: []events.Event{event(1), event(2), event(1), event(1)}, Cursor: 2}
		require.Equal(t, events.Result{Fresh: 2, Duplicate: 2}, take(t, in, b))
		require.Equal(t, ids(1, 2), s.effects())
	})
}

func TestTheCursorOnlyRises(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		take(t, in, page(8, 9))
		take(t, in, page(3, 4))
		require.EqualValues(t, 9, position(t, in).Cursor)
		b := page(10, 11)
		b.Cursor = 0
		take(t, in, b)
		require.EqualValues(t, 9, position(t, in).Cursor, "0 leaves it")
		take(t, in, events.Batch{})
		require.EqualValues(t, 9, position(t, in).Cursor)
	})
}

func TestABatchIsOneCommitWithAConstantNumberOfStatements(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		position(t, in)
		count := func(b events.Batch) (n int) {
			ctx := sqldb.WithHook(t.Context(), func(string) error { n++; return nil })
			_, err := in.Take(ctx, b)
			require.NoError(t, err)
			return n
		}
		one, hundred := count(page(1, 1)), count(page(2, 101))
		require.Equal(t, one, hundred)
		require.LessOrEqual(t, one, 7, "begin, claim (two on SQLite), check, cursor, before and after commit")
		require.LessOrEqual(t, count(page(1, 101)), one, "all known")
	})
}

func TestHistoryIsSkippedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 5))
		require.Equal(t, events.Result{Fresh: 2, Skipped: 5}, take(t, in, page(1, 7)))
		require.Equal(t, 2, s.count("{s}seen"), "no ID is kept of what is skipped")

		b := page(1, 7)
		b.History, b.Cursor = true, 0
		require.Equal(t, events.Result{Fresh: 5, Duplicate: 2}, take(t, in, b))
		require.Equal(t, span(1, 7), s.effects())
	})
}

func TestAnEventWithoutSequenceIsNeverHistory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 5))
		require.Equal(t, events.Result{Fresh: 1}, take(t, in, events.Batch{Events: []events.Event{pushed(3)}}))
	})
}

func TestASweepFillsInWhatAPushDidNotKnow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		mustPush(t, in, pushed(4))
		require.Equal(t, events.Result{Duplicate: 1}, take(t, in, page(4, 4)))
		require.Equal(t, ids(4), s.effects(), "the handler is left alone")
		require.Equal(t, 1, s.count("{s}seen where sequence = 4 and pushed"))

		mustPush(t, in, pushed(4))
		require.Equal(t, 1, s.count("{s}seen where sequence = 4"), "and a later push forgets nothing")
	})
}

func TestOneBadEventNeverFailsItsNeighbours(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, failsOn(7, 42))
		res := take(t, in, page(1, 100))
		require.Equal(t, events.Result{Fresh: 98, Parked: 2}, res)
		require.Len(t, s.effects(), 98)
		require.NotContains(t, s.effects(), event(7).ID)
		require.EqualValues(t, 100, position(t, in).Cursor, "the cursor passes what is parked")

		require.Equal(t, events.Result{Duplicate: 100}, take(t, in, page(1, 100)), "what is parked counts as seen")
		_, err := in.Push(t.Context(), pushed(42))
		require.ErrorIs(t, err, events.ErrParked)
	})
}

func TestAPanicIsItsEventsFailure(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, func(_ context.Context, _ exec, fresh []events.Event) error {
			for _, ev := range fresh {
				if ev.ID == event(2).ID {
					panic("no such luck")
				}
			}
			return nil
		})
		require.Equal(t, events.Result{Fresh: 2, Parked: 1}, take(t, in, page(1, 3)))
		require.Equal(t, ids(1, 3), s.effects())
	})
}

func TestASwallowedErrorOfTheHandlerIsItsFailure(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	in := s.inbox(dedupe.Config{}, func(_ context.Context, exec exec, fresh []events.Event) error {
		if contains(fresh, 2) {
			_ = exec("select 1 / 0") // the transaction is aborted, and nobody says so
		}
		return nil
	})
	require.Equal(t, events.Result{Fresh: 2, Parked: 1}, take(t, in, page(1, 3)))
	require.Equal(t, ids(1, 3), s.effects())
}

func TestAConstraintCheckedAtTheCommitIsTheEventsFailure(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.exec("alter table " + s.table + " add unique (n) deferrable initially deferred")
	in, err := s.open(dedupe.Config{Stream: stream}, func(_ context.Context, exec exec, fresh []events.Event) error {
		for _, ev := range fresh {
			if err := exec("insert into "+s.table+" values ($1, $2)", ev.ID, int64(ev.Sequence)%4); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 4, Parked: 1}, take(t, in, page(0, 4)), "0 and 4 collide")
}

func TestAnotherServicesOutageIsNotTheStores(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, func(_ context.Context, _ exec, fresh []events.Event) error {
			if contains(fresh, 2) {
				return errCrash // io.ErrUnexpectedEOF, say from an HTTP client
			}
			return nil
		})
		require.Equal(t, events.Result{Fresh: 2, Parked: 1}, take(t, in, page(1, 3)))
	})
}

// Nor is another database's, whatever it says.
func TestAnotherDatabasesOutageIsNotTheStores(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"too many connections": &pgconn.PgError{Code: "53300"},
		"starting":             fmt.Errorf("connect: %w", &pgconn.PgError{Code: "57P03"}),
		"deadlock":             &pgconn.PgError{Code: "40P01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, s *store) {
				in := s.inbox(dedupe.Config{}, func(_ context.Context, _ exec, fresh []events.Event) error {
					if contains(fresh, 2) {
						return err
					}
					return nil
				})
				require.Equal(t, events.Result{Fresh: 2, Parked: 1}, take(t, in, page(1, 3)))
			})
		})
	}
}

// A disk that is full is no event's fault.
func TestAFullDiskParksNothing(t *testing.T) {
	t.Parallel()
	s := sqlite(t)
	s.lite.SetMaxOpenConns(1) // the limit is a connection's
	full := true
	in := s.inbox(dedupe.Config{}, func(_ context.Context, exec exec, fresh []events.Event) error {
		if full {
			if err := exec("pragma max_page_count = 1"); err != nil {
				return err
			}
		}
		return exec("insert into "+s.table+" select $1, length(zeroblob(1)) union all select hex(randomblob(1000000)), 1", fresh[0].ID)
	})
	_, err := in.Take(t.Context(), page(1, 3))
	var refused *driver.Error
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Error(), "full")
	require.Zero(t, s.count("{s}parked"))
	require.Zero(t, s.count("{s}seen"))
	full = false
	_, err = s.lite.ExecContext(t.Context(), "pragma max_page_count = 1000000")
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 3}, take(t, in, page(1, 3)))
}

func TestShutdownParksNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		ctx, stop := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		in := s.inbox(dedupe.Config{}, func(context.Context, exec, []events.Event) error {
			stop(stopped)
			return errors.New("interrupted")
		})
		_, err := in.Take(ctx, page(1, 3))
		require.ErrorIs(t, err, stopped)
		require.Zero(t, s.count("{s}parked"))
		require.Zero(t, s.count("{s}seen"))
		require.Zero(t, position(t, in).Cursor)
	})
}

func TestADeadlockIsRunAgainAndParksNothing(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	times := 0
	in := s.inbox(dedupe.Config{}, func(_ context.Context, exec exec, _ []events.Event) error {
		if times++; times <= 2 {
			return exec("do $$ begin raise exception using errcode = '40P01'; end $$")
		}
		return nil
	})
	require.Equal(t, events.Result{Fresh: 3}, take(t, in, page(1, 3)))
	times = -1000
	res, err := in.Take(t.Context(), page(4, 5))
	require.Error(t, err)
	require.Zero(t, res)
	require.Zero(t, s.count("{s}parked"))
	require.EqualValues(t, 3, position(t, in).Cursor)
}

func TestTakeStopsAtWhatTheStoreCannotTake(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, failsOn(3))
		position(t, in)
		n := 0
		ctx := sqldb.WithHook(t.Context(), func(point string) error {
			if point == "before commit" {
				if n++; n == 2 { // the first half is in, the second is not
					return errCrash
				}
			}
			return nil
		})
		res, err := in.Take(ctx, page(1, 4))
		require.ErrorIs(t, err, errCrash)
		require.Equal(t, events.Result{Fresh: 2}, res)
		require.EqualValues(t, 2, position(t, in).Cursor, "each part moves the cursor as far as it goes")
		require.Equal(t, events.Result{Fresh: 1, Parked: 1, Duplicate: 2}, take(t, in, page(1, 4)))
	})
}

func TestAnEventWithoutIDIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		_, err := in.Take(t.Context(), events.Batch{Events: []events.Event{{}}, Cursor: 1})
		require.ErrorIs(t, err, dedupe.Err)
		_, err = in.Push(t.Context(), events.Event{})
		require.ErrorIs(t, err, dedupe.Err)
		require.Zero(t, position(t, in).Cursor)
	})
}

func TestTwoProcessesTakeTheSamePageAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		results := make(chan events.Result)
		for range 4 {
			in := s.inbox(dedupe.Config{}, nil)
			go func() {
				res, err := in.Take(t.Context(), page(1, 50))
				if err != nil {
					t.Error(err)
				}
				results <- res
			}()
		}
		var sum events.Result
		for range 4 {
			r := <-results
			sum.Fresh += r.Fresh
			sum.Duplicate += r.Duplicate
		}
		require.Equal(t, events.Result{Fresh: 50, Duplicate: 150}, sum)
		require.Equal(t, span(1, 50), s.effects())
	})
}

// An ID that no store takes as it is names its event nevertheless.
func TestAnIDThatIsNoText(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		ev := event(1)
		ev.ID, ev.Inbox = "a\x00\xff", "\x00"
		require.Equal(t, events.Result{Fresh: 1}, take(t, in, events.Batch{Events: []events.Event{ev}}))
		ev.Sequence = 0
		require.Equal(t, events.Result{Duplicate: 1}, mustPush(t, in, ev))
		ev.ID = "b\x00"
		require.Equal(t, events.Result{Fresh: 1}, mustPush(t, in, ev))
		require.Equal(t, []string{"a\uFFFD\uFFFD", "b\uFFFD"}, s.effects())
	})
}
