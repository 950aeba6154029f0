package events_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// whole is both doors before the fake of a whole provider, in one bubble's time.
type whole struct {
	server  *efatest.Server
	inbox   *memory
	handler *events.Handler
	sweeper *events.Sweeper
}

func setupWhole(t *testing.T, start events.Start) *whole {
	t.Helper()
	w := &whole{server: efatest.NewServer(t, efatest.Config{InMemory: true, Manual: true, Now: time.Now}), inbox: newMemory()}
	c, err := efa.New(efa.Config{
		Project: w.server.Project(), Key: w.server.Key(),
		BaseURL: w.server.URL(), HTTPClient: w.server.Client(),
	})
	require.NoError(t, err)
	w.inbox.stream = c.Source().Stream()
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(w.server.Secret())}})
	require.NoError(t, err)
	w.handler, err = events.NewHandler(v, efa.Profile, w.inbox, events.HandlerConfig{})
	require.NoError(t, err)
	w.sweeper, err = events.NewSweeper(c.Source(), w.inbox, events.SweeperConfig{Start: start})
	require.NoError(t, err)
	w.server.WebhookHandler(w.handler)
	return w
}

func TestBothDoorsTakeAnEventOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setupWhole(t, events.FromBeginning)
		for i := range 30 {
			w.server.Inbound(efatest.Mail{NoPush: i%3 == 0})
		}
		w.server.Drain(t.Context())
		require.EqualValues(t, 20, w.handler.Counts().Fresh)
		report, err := w.sweeper.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, events.Result{Fresh: 10, Duplicate: 20}, report.Result)
		w.server.Redeliver(w.server.Events()[0].ID)
		w.server.Drain(t.Context())
		require.EqualValues(t, 1, w.handler.Counts().Duplicate)
		require.Len(t, w.inbox.handed, 30)
	})
}

func TestTheSweepBringsWhatRotationAndAnOutageCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setupWhole(t, events.FromNow)
		w.server.Inbound(efatest.Mail{NoPush: true})
		require.NoError(t, w.sweeper.Attach(t.Context()))
		for range 5 {
			w.server.Inbound(efatest.Mail{})
		}
		w.inbox.before = func(string) error { return errStore }
		w.server.Deliver(t.Context())
		require.EqualValues(t, 5, w.handler.Counts().Unavailable)
		w.inbox.before = nil
		_, cancelled := w.server.Rotate(w.server.Webhooks()[0].ID)
		require.Equal(t, 5, cancelled)
		report, err := w.sweeper.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5, report.Fresh)
		require.Len(t, w.inbox.handed, 5, "and not what came before it attached")
	})
}

func TestExpiryAndLateSequencesOfAWholeProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setupWhole(t, events.FromNow)
		first := w.server.Inbound(efatest.Mail{NoPush: true})
		require.NoError(t, w.sweeper.Attach(t.Context()))
		late := w.server.Inbound(efatest.Mail{NoPush: true, Late: 100 * time.Second})
		w.server.Inbound(efatest.Mail{NoPush: true})
		_, err := w.sweeper.Sweep(t.Context())
		require.NoError(t, err)
		time.Sleep(101 * time.Second)
		_, err = w.sweeper.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, w.inbox.handed[late.EventID])

		w.server.Inbound(efatest.Mail{NoPush: true})
		gone := w.server.Inbound(efatest.Mail{NoPush: true})
		kept := w.server.Inbound(efatest.Mail{NoPush: true})
		w.server.Expire(gone.Sequence)
		report, err := w.sweeper.Sweep(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, kept.Sequence, report.Loss.Oldest)
		require.Equal(t, 1, w.inbox.handed[kept.EventID])
		require.Zero(t, w.inbox.handed[first.EventID])
	})
}

func TestErrorsOfAWholeProvider(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]events.Trouble{
		401: events.TroubleCredential, 403: events.TroubleCredential, 404: events.TroubleRequest,
		429: events.TroubleQuota, 500: events.TroubleService, 503: events.TroubleService,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := setupWhole(t, events.FromBeginning)
			w.server.Fault(efatest.Fault{Op: efatest.OpAny, Status: status, When: efatest.When{Times: 100}})
			_, err := w.sweeper.Sweep(t.Context())
			require.Error(t, err)
			require.Equal(t, want, w.sweeper.Health().Trouble, status)
		})
	}
}
