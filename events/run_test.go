package events_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// running is a Sweeper that runs until the test ends, in a synctest bubble.
type running struct {
	*bench
	stop context.CancelFunc
	done chan error
}

func run(t *testing.T, b *bench, s *events.Sweeper) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{bench: b, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	t.Cleanup(cancel)
	synctest.Wait()
	return r
}

func (r *running) requestsWithin(d time.Duration) int {
	before := r.provider.requests()
	pass(d)
	return r.provider.requests() - before
}

// pass lets time go by, and what happens in it come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRunSweepsAtOnceAndThenEveryMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1)
		r := run(t, b, b.sweeper)
		require.Equal(t, 1, b.provider.requests())
		b.provider.add(2)
		require.Zero(t, r.requestsWithin(59*time.Second))
		require.Equal(t, 1, r.requestsWithin(2*time.Second))
		require.Equal(t, eventIDs(2), b.inbox.order)
		require.Equal(t, 10, r.requestsWithin(10*time.Minute))
		r.stop()
		require.NoError(t, <-r.done)
	})
}

func TestRunAttachesBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2)
		b.provider.fail(&client.Error{Op: "list events", Status: 503})
		run(t, b, b.sweeper)
		pass(10 * time.Minute)
		select {
		case <-b.sweeper.Attached():
			t.Fatal("attached without a head")
		default:
		}
		require.Error(t, b.sweeper.Health().Ready(time.Now(), time.Hour))
		b.provider.add(3)
		b.provider.fail(nil)
		<-b.sweeper.Attached()
		synctest.Wait()
		require.EqualValues(t, 3, b.inbox.pos.Attached)
	})
}

func TestRunKick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{Start: events.FromNow, Every: time.Hour}, 1)
		r := run(t, b, b.sweeper)
		b.provider.add(2)
		for range 3 { // at once is once
			b.sweeper.Kick()
		}
		require.Equal(t, 1, r.requestsWithin(time.Second))
		require.Equal(t, eventIDs(2), b.inbox.order)
	})
}

func TestRunReturnsNilAndGivesTheLeaseBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4)
		b.inbox.inside = func(op string) {
			if op == "take" {
				time.Sleep(time.Second)
			}
		}
		r := run(t, b, b.sweeper)
		require.NotEmpty(t, b.inbox.owner)
		r.stop()
		require.NoError(t, <-r.done)
		require.Empty(t, b.inbox.owner)
	})
}

func TestRunBacksOffFromTheService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{MaxBackoff: 20 * time.Second}, 1)
		b.provider.fail(&client.Error{Op: "list events", Status: 503})
		r := run(t, b, b.sweeper)
		first := r.requestsWithin(time.Hour)
		// Full jitter: pauses of 0 to 20 s, 10 s on average.
		require.InDelta(t, 360, first, 120)
		h := b.sweeper.Health()
		require.Equal(t, events.TroubleService, h.Trouble)
		require.Greater(t, h.Failures, 100)
		b.provider.fail(nil)
		pass(21 * time.Second)
		require.NoError(t, b.sweeper.Health().Err, "back at most MaxBackoff after the service")
		require.Equal(t, eventIDs(1), b.inbox.order)
	})
}

func TestRunBacksOffFromTheStore(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"position", "lease", "take", "reached"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, events.SweeperConfig{}, 1)
				down := true // guarded by the inbox's lock
				b.inbox.before = func(o string) error {
					if down && o == op {
						return errStore
					}
					return nil
				}
				r := run(t, b, b.sweeper)
				require.Less(t, r.requestsWithin(time.Hour), 400)
				require.Equal(t, events.TroubleStore, b.sweeper.Health().Trouble)
				b.inbox.look(func() { down = false })
				pass(time.Minute)
				require.Equal(t, eventIDs(1), b.inbox.order)
				require.NoError(t, b.sweeper.Health().Ready(time.Now(), 2*time.Minute))
			})
		})
	}
}

func TestRunNoticesThatTheStoreIsGoneWhileItRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1)
		run(t, b, b.sweeper)
		b.inbox.look(func() { b.inbox.before = func(string) error { return errStore } })
		pass(61 * time.Second)
		require.Equal(t, events.TroubleStore, b.sweeper.Health().Trouble)
		require.Equal(t, eventIDs(1), b.inbox.order)
		pass(5 * time.Minute)
		require.Error(t, b.sweeper.Health().Ready(time.Now(), 5*time.Minute))
	})
}

func TestRunHonoursRetryAfterUpToFiveMinutes(t *testing.T) {
	t.Parallel()
	for asked, want := range map[time.Duration]time.Duration{
		3 * time.Minute: 3 * time.Minute,
		time.Hour:       5 * time.Minute,
	} {
		t.Run(asked.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, events.SweeperConfig{MaxBackoff: time.Second}, 1)
				b.provider.fail(&client.Error{Op: "list events", Status: 429, Class: client.ClassQuota, RetryAfter: asked})
				r := run(t, b, b.sweeper)
				require.Equal(t, events.TroubleQuota, b.sweeper.Health().Trouble)
				require.Zero(t, r.requestsWithin(want-time.Second))
				require.Equal(t, 1, r.requestsWithin(2*time.Second))
			})
		})
	}
}

func TestRunTriesARefusedCredentialOnceInFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{Every: time.Second}, 1)
		b.provider.fail(&client.Error{Op: "list events", Status: 401, Class: client.ClassCredential})
		r := run(t, b, b.sweeper)
		require.Equal(t, events.TroubleCredential, b.sweeper.Health().Trouble)
		require.ErrorContains(t, b.sweeper.Health().Ready(time.Now(), time.Hour), "401")
		b.sweeper.Kick()
		require.Zero(t, r.requestsWithin(5*time.Minute-time.Second), "a kick does not shorten it")
		require.Equal(t, 1, r.requestsWithin(2*time.Second))
		require.Empty(t, b.inbox.reached, "nothing is settled")
		b.provider.fail(nil)
		pass(5 * time.Minute)
		require.NoError(t, b.sweeper.Health().Ready(time.Now(), time.Minute))
	})
}

func TestRunStopsLoudlyForWhatNoTryClears(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"400":             &client.Error{Op: "list events", Status: 400, Code: "invalid_cursor", Class: client.ClassRequest},
		"invalid cursor":  fmt.Errorf("source: %w", events.ErrCursorInvalid),
		"foreign project": fmt.Errorf("source: %w", events.ErrForeignStream),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, events.SweeperConfig{}, 1)
				b.provider.fail(err)
				r := run(t, b, b.sweeper)
				require.ErrorIs(t, <-r.done, err)
				require.Equal(t, 1, b.provider.requests())
				h := b.sweeper.Health()
				require.True(t, h.Stopped)
				require.ErrorIs(t, h.Ready(time.Now(), time.Hour), err)
			})
		})
	}
}

// A 400 that says of itself that it passes is no reason to stop.
func TestRunOutlivesA400ThatClears(t *testing.T) {
	t.Parallel()
	for _, class := range []client.Class{client.ClassService, client.ClassQuota} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, events.SweeperConfig{}, 1)
			b.provider.fail(&client.Error{Op: "list events", Status: 400, Class: class})
			r := run(t, b, b.sweeper)
			require.Greater(t, r.requestsWithin(time.Hour), 10)
			require.False(t, b.sweeper.Health().Stopped)
		})
	}
}

// A key that was refused and is accepted again makes the process ready, also if
// a peer was sweeping at its next try, and has swept since.
func TestReadyAgainAfterARefusedKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1)
		b.provider.fail(&client.Error{Op: "list events", Status: 401, Class: client.ClassCredential})
		run(t, b, b.sweeper)
		pass(time.Second)
		require.Error(t, b.sweeper.Health().Ready(time.Now(), time.Hour))
		b.provider.fail(nil)
		b.inbox.look(func() { b.inbox.owner, b.inbox.until = "peer", time.Now().Add(6*time.Minute) })
		pass(5 * time.Minute)
		require.True(t, b.sweeper.Health().Held, "it has met the peer")
		b.inbox.look(func() { b.inbox.owner, b.inbox.pos.Through = "", time.Now() }) // which has received everything
		pass(time.Minute)
		require.NoError(t, b.sweeper.Health().Ready(time.Now(), time.Hour))
	})
}

// A 404 may be a gateway that is being deployed; the program stays alive.
func TestRunIsPatientWithARefusedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1)
		b.provider.fail(&client.Error{Op: "list events", Status: 404, Class: client.ClassRequest})
		r := run(t, b, b.sweeper)
		require.Equal(t, 12, r.requestsWithin(time.Hour+time.Second))
	})
}

func TestRunNoProgressIsNoLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1)
		b.provider.answer = func(int, events.Cursor) (*events.Page, error) { return page(true), nil }
		r := run(t, b, b.sweeper)
		require.Less(t, r.requestsWithin(time.Hour), 400)
		require.ErrorIs(t, b.sweeper.Health().Err, events.ErrNoProgress)
	})
}

func TestRunTwoProcessesShareTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1)
		peer := b.another(t, events.SweeperConfig{})
		first := run(t, b, b.sweeper)
		pass(20 * time.Second)
		second := run(t, b, peer)
		require.InDelta(t, 60, second.requestsWithin(time.Hour), 2, "not twice as many")
		require.NoError(t, b.sweeper.Health().Ready(time.Now(), 2*time.Minute))
		require.NoError(t, peer.Health().Ready(time.Now(), 2*time.Minute), "a process whose peer sweeps is healthy")

		first.stop()
		require.NoError(t, <-first.done)
		b.provider.add(2)
		pass(2 * time.Minute)
		require.Equal(t, eventIDs(2), b.inbox.order, "the peer takes over")
	})
}

// A process that was killed leaves its lease behind.
func TestRunTakesOverALeaseThatEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1)
		b.inbox.owner, b.inbox.until = "killed", time.Now().Add(30*time.Second)
		run(t, b, b.sweeper)
		require.True(t, b.sweeper.Health().Held)
		pass(41 * time.Second)
		require.Equal(t, eventIDs(1), b.inbox.order)
		require.False(t, b.sweeper.Health().Held)
	})
}

func TestRunWithTwoDoorsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{})
		run(t, b, b.sweeper)
		for s := range events.Cursor(200) {
			b.provider.add(s + 1)
			if s%2 == 0 {
				_, err := b.inbox.Push(t.Context(), events.Event{ID: eventID(s + 1)})
				require.NoError(t, err)
			}
			pass(7 * time.Second)
		}
		pass(time.Minute)
		require.Len(t, b.inbox.order, 200)
		require.EqualValues(t, 200, b.inbox.pos.Cursor)
		require.Greater(t, b.inbox.pos.Settled, events.Cursor(150))
	})
}

func TestHealthShowsTheProvidersClock(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	b.provider.date = func() time.Time { return time.Now().Add(7 * time.Minute).Truncate(time.Second) }
	b.sweep(t)
	require.InDelta(t, 7*time.Minute, b.sweeper.Health().Skew, float64(2*time.Second))
}

func TestHealthCountsAllSweeps(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3)
	b.sweep(t)
	b.provider.add(4)
	b.sweep(t)
	h := b.sweeper.Health()
	require.Equal(t, 2, h.Sweeps)
	require.Equal(t, events.Result{Fresh: 4, Duplicate: 3}, h.Total)
	require.WithinDuration(t, time.Now(), h.Swept, time.Minute)
}

// The store's clock is another machine's.
func TestHealthThroughIsByOurClock(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	b.inbox.now = func() time.Time { return time.Now().Add(-time.Hour) }
	b.sweep(t)
	require.NoError(t, b.another(t, events.SweeperConfig{}).Attach(t.Context()))
	require.NoError(t, b.sweeper.Health().Ready(time.Now(), time.Minute))
	peer := b.another(t, events.SweeperConfig{})
	require.NoError(t, peer.Attach(t.Context()))
	require.NoError(t, peer.Health().Ready(time.Now(), time.Minute))
}

func TestReadySaysWhatIsNot(t *testing.T) {
	t.Parallel()
	now := time.Now()
	refused := errors.New("refused")
	good := events.Health{Attached: true, Through: now.Add(-time.Minute)}
	require.NoError(t, good.Ready(now, 2*time.Minute))
	require.ErrorContains(t, good.Ready(now, 30*time.Second), "1m0s")
	err := events.Health{Err: refused, Trouble: events.TroubleCredential}.Ready(now, time.Minute)
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "not attached")
	require.ErrorContains(t, err, "no sweep")
	failing := good
	failing.Err, failing.Trouble = refused, events.TroubleService
	require.NoError(t, failing.Ready(now, 2*time.Minute), "while it is current, a failed try is no alarm")
}
