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

// bench is one stream with a provider, a Receiver and a Sweeper.
type bench struct {
	provider *provider
	inbox    *memory
	sweeper  *events.Sweeper
}

// setup makes a bench whose provider has sequences.
func setup(t *testing.T, config events.SweeperConfig, sequences ...events.Cursor) *bench {
	t.Helper()
	b := &bench{provider: newProvider(sequences...), inbox: newMemory()}
	b.sweeper = b.another(t, config)
	return b
}

// another is a Sweeper of a second process.
func (b *bench) another(t *testing.T, config events.SweeperConfig) *events.Sweeper {
	t.Helper()
	if config.Start == 0 {
		config.Start = events.FromBeginning
	}
	s, err := events.NewSweeper(b.provider, b.inbox, config)
	require.NoError(t, err)
	return s
}

func (b *bench) sweep(t *testing.T) events.Report {
	t.Helper()
	report, err := b.sweeper.Sweep(t.Context())
	require.NoError(t, err)
	return report
}

func TestSweepReadsToTheHead(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4, 5)
	report := b.sweep(t)
	require.Equal(t, 5, report.Fresh)
	require.Equal(t, 3, report.Pages)
	require.True(t, report.Head)
	require.EqualValues(t, 5, report.Through)
	require.EqualValues(t, 5, b.inbox.pos.Cursor)
	require.Equal(t, eventIDs(1, 2, 3, 4, 5), b.inbox.order)
	require.Empty(t, b.inbox.owner, "the lease is given back")
}

func TestSweepOfAnEmptyHeadMovesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 7)
	b.sweep(t)
	b.provider.answer = func(int, events.Cursor) (*events.Page, error) { return &events.Page{}, nil }
	b.sweep(t)
	require.EqualValues(t, 7, b.inbox.pos.Cursor)
	require.Len(t, b.inbox.takes, 1)
}

func TestSweepMovesTheCursorOnlyUpward(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4)
	b.sweep(t)
	b.inbox.takes = nil
	b.sweep(t)
	require.Equal(t, 4, len(b.inbox.order))
	for _, take := range b.inbox.takes {
		require.Zero(t, take.Cursor, "nothing is new: the cursor is left alone")
	}
}

func TestSweepCursorStaysWhenTheCommitFails(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{PagesPerCommit: 1}, 1, 2, 3, 4)
	takes := 0
	b.inbox.before = func(op string) error {
		if op == "take" {
			if takes++; takes == 2 {
				return errStore
			}
		}
		return nil
	}
	report, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, errStore)
	require.Equal(t, 2, report.Fresh)
	require.EqualValues(t, 2, b.inbox.pos.Cursor)
	require.Equal(t, events.TroubleStore, b.sweeper.Health().Trouble)
	b.sweep(t)
	require.Equal(t, eventIDs(1, 2, 3, 4), b.inbox.order)
}

// The Receiver's error may come from the program's own handler, which may have
// asked a provider with another key.
func TestSweepDoesNotTakeAHandlersErrorForItsOwnCredential(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	b.inbox.before = func(op string) error {
		if op == "take" {
			return &client.Error{Op: "read", Status: 401, Class: client.ClassCredential}
		}
		return nil
	}
	_, err := b.sweeper.Sweep(t.Context())
	require.Error(t, err)
	require.Equal(t, events.TroubleStore, b.sweeper.Health().Trouble)
}

func TestSweepReadsAheadWhileACommitRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4, 5, 6, 7, 8)
		b.provider.inside = func(n int) {
			if n > 1 {
				time.Sleep(time.Millisecond)
			}
		}
		first := true
		b.inbox.inside = func(op string) {
			if op == "take" && first {
				first = false
				time.Sleep(time.Second)
				require.Equal(t, 4, b.provider.requests(), "all pages came while the first was committed")
			}
		}
		report := b.sweep(t)
		require.Equal(t, 2, report.Commits, "several pages a commit when behind")
		require.Len(t, b.inbox.takes[0].Events, 2, "and none waits for company")
		require.Len(t, b.inbox.takes[1].Events, 6)
		require.EqualValues(t, 8, b.inbox.takes[1].Cursor)
	})
}

func TestSweepTakesAtMostPagesPerCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{PagesPerCommit: 2})
		for s := range events.Cursor(40) {
			b.provider.add(s + 1)
		}
		b.inbox.inside = func(op string) {
			if op == "take" {
				time.Sleep(time.Second)
				synctest.Wait()
			}
		}
		b.sweep(t)
		for _, take := range b.inbox.takes {
			require.LessOrEqual(t, len(take.Events), 4)
		}
		require.Len(t, b.inbox.order, 40)
	})
}

// An error behind pages that were read ahead does not take them along.
func TestSweepCommitsWhatCameBeforeAnError(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3, 4)
	broken := &client.Error{Op: "list events", Status: 503}
	b.provider.answer = func(n int, _ events.Cursor) (*events.Page, error) {
		if n == 2 {
			return nil, broken
		}
		return nil, nil
	}
	report, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "page after 2")
	require.Equal(t, 2, report.Fresh)
	require.False(t, report.Head)
	require.EqualValues(t, 2, b.inbox.pos.Cursor)
	require.Empty(t, b.inbox.reached, "the head was not reached")
}

func TestSweepNoProgress(t *testing.T) {
	t.Parallel()
	for name, second := range stuckAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, events.SweeperConfig{})
			b.provider.answer = func(n int, _ events.Cursor) (*events.Page, error) {
				if n == 1 {
					return page(true, 1, 2), nil
				}
				return second, nil
			}
			_, err := b.sweeper.Sweep(t.Context())
			_, typed := errors.AsType[*events.NoProgressError](err)
			require.True(t, typed, "%v", err)
			require.Equal(t, eventIDs(1, 2), b.inbox.order)
			require.EqualValues(t, 2, b.inbox.pos.Cursor)
		})
	}
}

func TestSweepRefusesAnEventWithoutAnID(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{})
	b.provider.answer = func(int, events.Cursor) (*events.Page, error) {
		return &events.Page{Events: []events.Event{{Sequence: 5}}}, nil
	}
	_, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, events.ErrNotEvent)
	require.Empty(t, b.inbox.takes)
}

func TestSweepPassesAParkedEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3)
	b.inbox.parks[eventID(2)] = true
	report := b.sweep(t)
	require.Equal(t, events.Result{Fresh: 2, Parked: 1}, report.Result)
	require.EqualValues(t, 3, b.inbox.pos.Cursor)
}

// The look-back: a sequence becomes visible after higher ones, and the process
// is away for a day meanwhile.
func TestSweepFindsALateSequenceHoweverLongItWasAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2)
		b.sweep(t)
		time.Sleep(10 * time.Minute)
		b.provider.add(3, 5)
		b.provider.addLate(4, 110*time.Second)
		b.sweep(t)
		require.EqualValues(t, 2, b.inbox.pos.Settled)
		require.EqualValues(t, 5, b.inbox.pos.Cursor)
		time.Sleep(24 * time.Hour)
		report := b.sweep(t)
		require.EqualValues(t, 2, report.From, "a sweep begins at settled, not at the cursor")
		require.Equal(t, 1, report.Fresh)
		require.Contains(t, b.inbox.order, eventID(4))
	})
}

func TestSweepReachesSettledInALongSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{PagesPerCommit: 1})
		for s := range events.Cursor(60) {
			b.provider.add(s + 1)
		}
		b.sweep(t)
		time.Sleep(3 * time.Minute)
		b.inbox.reached = nil
		fails := false
		b.inbox.before = func(op string) error {
			fails = fails || len(b.inbox.reached) == 2
			if fails && op == "take" {
				return errStore
			}
			return nil
		}
		_, err := b.sweeper.Sweep(t.Context())
		require.ErrorIs(t, err, errStore)
		require.Equal(t, []reached{{20, false}, {40, false}}, b.inbox.reached)
		require.EqualValues(t, 40, b.inbox.pos.Settled, "the next sweep need not begin at 0 again")
	})
}

func TestSweepFromHandsOverHistory(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2, 3)
	require.Zero(t, b.sweep(t).Fresh)
	b.provider.add(4)
	require.Equal(t, 1, b.sweep(t).Fresh)
	before := b.inbox.pos
	report, err := b.sweeper.SweepFrom(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 2, Duplicate: 1}, report.Result)
	require.Equal(t, eventIDs(4, 2, 3), b.inbox.order)
	require.Equal(t, before.Cursor, b.inbox.pos.Cursor)
	require.Equal(t, before.Settled, b.inbox.pos.Settled)
}

// A sweep from 0 asks with no cursor, so it meets no expiry. If it moved the
// cursor, the loss would never be noticed.
func TestSweepFromDoesNotHideALoss(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2)
	b.sweep(t)
	b.provider.add(5, 9)
	b.provider.oldest = 9
	_, err := b.sweeper.SweepFrom(t.Context(), 0)
	require.NoError(t, err)
	b.sweep(t)
	require.Equal(t, []events.Loss{{Cursor: 2, Oldest: 9}}, b.inbox.losses)
}

func TestSweepFromAnExpiredCursorIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 10, 11)
	b.provider.oldest = 10
	_, err := b.sweeper.SweepFrom(t.Context(), 3)
	require.ErrorIs(t, err, events.ErrCursorExpired)
	require.Empty(t, b.inbox.losses)
	require.NoError(t, b.sweeper.Health().Err, "a person's question, not the stream's health")
}

// It may take hours, and must not keep the stream from being swept.
func TestSweepFromNeedsNoLease(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{Start: events.FromNow}, 1, 2, 3)
	require.NoError(t, b.sweeper.Attach(t.Context()))
	b.provider.inside = func(n int) {
		if n == 2 {
			b.provider.add(9)
			b.sweep(t)
		}
	}
	report, err := b.sweeper.SweepFrom(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 3, Duplicate: 1}, report.Result)
}

func TestSweepErrorsShareAnUmbrella(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	b.inbox.before = func(string) error { return errStore }
	_, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, events.Err)
	require.ErrorIs(t, err, errStore)
	require.EqualError(t, err, "events: position: store is down")
}

func TestSweepFromANegativeCursor(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	_, err := b.sweeper.SweepFrom(t.Context(), -5)
	require.ErrorIs(t, err, events.ErrCursorInvalid)
	require.Zero(t, b.provider.requests())
}

func TestSweepLeaveToAPeer(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2)
	b.inbox.owner, b.inbox.until = "peer", time.Now().Add(time.Minute)
	_, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, events.ErrLeaseHeld)
	require.Zero(t, b.provider.requests())
	h := b.sweeper.Health()
	require.True(t, h.Held)
	require.NoError(t, h.Err)
}

func TestSweepRenewsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2, 3)
		b.provider.inside = func(int) { time.Sleep(2 * time.Minute) } // a slow answer
		b.sweep(t)
		require.GreaterOrEqual(t, b.inbox.leases, 20)
	})
}

func TestSweepRenewsItsLeaseWhileACommitTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2, 3)
		b.inbox.inside = func(op string) {
			if op == "take" {
				time.Sleep(5 * time.Minute) // a slow handler
				b.inbox.look(func() { require.True(t, b.inbox.until.After(time.Now()), "no peer may have it") })
			}
		}
		b.sweep(t)
	})
}

func TestSweepEndsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, events.SweeperConfig{}, 1, 2, 3)
		b.provider.inside = func(n int) {
			if n == 2 {
				b.inbox.look(func() { b.inbox.owner, b.inbox.until = "peer", time.Now().Add(time.Hour) })
				time.Sleep(time.Minute)
			}
		}
		report, err := b.sweeper.Sweep(t.Context())
		require.ErrorIs(t, err, events.ErrLeaseHeld)
		require.Equal(t, 2, report.Fresh)
		require.Equal(t, "peer", b.inbox.owner, "a peer's lease is not given back")
	})
}

func TestSweepGivesTheLeaseBackWhenCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1, 2, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("shutting down")
	b.provider.inside = func(n int) {
		if n == 2 {
			cancel(stop)
		}
	}
	_, err := b.sweeper.Sweep(ctx)
	require.Error(t, err)
	require.Empty(t, b.inbox.owner)
	require.NoError(t, b.sweeper.Health().Err, "being told to stop is no failure")
}

func TestSweepForeignStream(t *testing.T) {
	t.Parallel()
	b := setup(t, events.SweeperConfig{}, 1)
	b.inbox.before = func(op string) error {
		if op == "position" {
			return fmt.Errorf("inbox: %w", events.ErrForeignStream)
		}
		return nil
	}
	_, err := b.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, events.ErrForeignStream)
	require.Zero(t, b.provider.requests())
}

func TestNewSweeperReportsEveryFault(t *testing.T) {
	t.Parallel()
	s, err := events.NewSweeper(nil, nil, events.SweeperConfig{LookBack: -1, Every: -1, Lease: -1, PagesPerCommit: -1, MaxBackoff: -1})
	require.Nil(t, s)
	require.ErrorIs(t, err, events.ErrConfig)
	for _, want := range []string{"Start", "LookBack", "Every", "Lease", "PagesPerCommit", "MaxBackoff", "Source", "Receiver"} {
		require.ErrorContains(t, err, want)
	}
}

func TestNewSweeperWantsOneProjectOnBothSides(t *testing.T) {
	t.Parallel()
	inbox := newMemory()
	inbox.stream.Name = "a name given once, to the inbox"
	inbox.stream.Credential = "another key"
	_, err := events.NewSweeper(newProvider(), inbox, events.SweeperConfig{Start: events.FromNow})
	require.NoError(t, err)
	inbox.stream.Environment = "live"
	_, err = events.NewSweeper(newProvider(), inbox, events.SweeperConfig{Start: events.FromNow})
	require.ErrorIs(t, err, events.ErrConfig)
	require.ErrorIs(t, err, events.ErrForeignStream)
}

// quiet is a source without sequences that cannot be told what is committed.
type quiet struct{ events.Source }

func TestNewSweeperWantsASettlerWhereThereAreNoSequences(t *testing.T) {
	t.Parallel()
	_, err := events.NewSweeper(quiet{newMailbox()}, newMemory(), events.SweeperConfig{Start: events.FromNow})
	require.ErrorContains(t, err, "Settler")
}
