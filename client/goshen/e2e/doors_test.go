package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/verify"
)

// house is both doors of a fake account before one Inbox on SQLite. Effects are
// rows of the handler's own transaction.
type house struct {
	t       *testing.T
	srv     *goshentest.Server
	client  *goshen.Client
	db      *sql.DB
	sweeper *events.Sweeper
	handler *events.Handler
}

func newHouse(t *testing.T, cfg goshentest.Config, start events.Start) *house {
	t.Helper()
	h := &house{t: t, db: testdb.SQLite(t)}
	h.srv, h.client = setup(t, cfg)
	_, err := h.db.ExecContext(t.Context(), "create table effects (id text, kind text, door integer)")
	require.NoError(t, err)
	h.open(start)
	return h
}

// open is a process that starts.
func (h *house) open(start events.Start) {
	inbox, err := dedupe.NewSQLite(h.db, dedupe.Config{Stream: h.client.Stream(), CommitTimeout: time.Minute}, func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
		for _, ev := range fresh {
			if _, err := tx.ExecContext(ctx, "insert into effects (id, kind) values (?, ?)", ev.ID, string(ev.Kind)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(h.t, err)
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.Base64Secret(h.srv.Secret())}, Now: h.srv.Now})
	require.NoError(h.t, err)
	h.handler, err = events.NewHandler(v, goshen.Profile, inbox, events.HandlerConfig{Timeout: time.Minute})
	require.NoError(h.t, err)
	h.sweeper, err = events.NewSweeper(h.client.Source(), inbox, events.SweeperConfig{Start: start})
	require.NoError(h.t, err)
	require.NoError(h.t, h.sweeper.Attach(h.t.Context()))
	h.srv.WebhookHandler(h.handler)
}

func (h *house) sweep() events.Report {
	h.t.Helper()
	report, err := h.sweeper.Sweep(h.t.Context())
	require.NoError(h.t, err)
	return report
}

// effects are the IDs that took effect, each as often as it did.
func (h *house) effects() []string {
	h.t.Helper()
	rows, err := h.db.QueryContext(h.t.Context(), "select id from effects order by rowid")
	require.NoError(h.t, err)
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		require.NoError(h.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(h.t, rows.Err())
	return ids
}

func received(id string) string { return "received:" + agent + ":" + id }

// Whichever door is first, the other one finds the event to be known, and the
// label is taken away at last.
func TestBothDoorsAreOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	pushed := h.srv.Inbound(goshentest.Mail{From: "a@example.com", Text: "1"})
	require.Equal(t, 1, h.srv.Drain(t.Context()))
	assert.Contains(t, h.srv.Labels(agent, pushed.MessageID), "unread", "a push settles nothing")
	assert.Equal(t, events.Result{Duplicate: 1}, h.sweep().Result)

	swept := h.srv.Inbound(goshentest.Mail{From: "a@example.com", Text: "2"})
	assert.Equal(t, events.Result{Fresh: 1}, h.sweep().Result)
	h.srv.Drain(t.Context())
	for _, d := range h.srv.Deliveries() {
		assert.Equal(t, goshentest.StateDelivered, d.State)
	}
	assert.Equal(t, []string{received(pushed.MessageID), received(swept.MessageID)}, h.effects())
	assert.Equal(t, []string{"received", "handled"}, h.srv.Labels(agent, swept.MessageID))
}

// A process that ends between the commit and the label handles it once.
func TestCrashBetweenCommitAndSettle(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	var want []string
	for range 3 {
		want = append(want, received(h.srv.Inbound(goshentest.Mail{From: "a@example.com"}).MessageID))
	}
	h.srv.Fault(goshentest.Fault{Op: goshentest.OpLabelMessage, Drop: goshentest.DropRequest, When: goshentest.When{Times: 3}})
	_, err := h.sweeper.Sweep(t.Context())
	require.Error(t, err)
	h.open(events.FromBeginning)
	assert.Equal(t, events.Result{Duplicate: 3}, h.sweep().Result)
	assert.Equal(t, want, h.effects())
	for _, m := range h.srv.Messages() {
		assert.NotContains(t, m.Labels, "unread")
	}
}

// A label is only taken away once the event is committed.
func TestNothingIsSettledBeforeTheCommit(t *testing.T) {
	t.Parallel()
	srv, c := setup(t, goshentest.Config{})
	got := srv.Inbound(goshentest.Mail{From: "a@example.com"})
	db := testdb.SQLite(t)
	broken := errors.New("the handler's database is gone")
	inbox, err := dedupe.NewSQLite(db, dedupe.Config{Stream: c.Stream()}, func(context.Context, *sql.Tx, []events.Event) error {
		assert.Contains(t, srv.Labels(agent, got.MessageID), "unread")
		return context.DeadlineExceeded
	})
	require.NoError(t, err)
	s, err := events.NewSweeper(c.Source(), inbox, events.SweeperConfig{Start: events.FromBeginning})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	srv.OnRequest(func(op goshentest.Op, at goshentest.Point, _ *http.Request) {
		if op == goshentest.OpListMessages && at == goshentest.AfterEffect {
			cancel(broken)
		}
	})
	_, err = s.Sweep(ctx)
	require.Error(t, err)
	assert.Contains(t, srv.Labels(agent, got.MessageID), "unread")
}

func TestOldMailIsSettledUnseen(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	old := h.srv.Inbound(goshentest.Mail{From: "a@example.com"})
	fresh := &house{t: t, srv: h.srv, client: h.client, db: testdb.SQLite(t)}
	_, err := fresh.db.ExecContext(t.Context(), "create table effects (id text, kind text)")
	require.NoError(t, err)
	fresh.open(events.FromNow)
	assert.Equal(t, []string{"received", "handled"}, h.srv.Labels(agent, old.MessageID))
	new := h.srv.Inbound(goshentest.Mail{From: "a@example.com"})
	fresh.sweep()
	assert.Equal(t, []string{received(new.MessageID)}, fresh.effects())
}

// Whether the provider announces a release or only lists the message, it is
// one event, and none before.
func TestReleaseIsOneEvent(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{true, false} {
		t.Run(fmt.Sprintf("silent %t", silent), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, goshentest.Config{SilentRelease: silent}, events.FromBeginning)
			held := h.srv.Inbound(goshentest.Mail{From: "a@example.com", Quarantined: true})
			h.srv.Drain(t.Context())
			h.sweep()
			assert.Empty(t, h.effects())
			h.srv.Release(agent, held.MessageID)
			h.sweep()
			h.srv.Drain(t.Context())
			h.sweep()
			assert.Equal(t, []string{received(held.MessageID)}, h.effects())
		})
	}
}

// A receiver that was away gets everything: each push is tried until it is
// taken, with the same ID, and what came twice takes effect once.
func TestPushOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	h.srv.WebhookHandler(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	h.srv.FaultEvents(goshentest.EventFault{Type: goshentest.EmailReceived, Copies: 1})
	got := h.srv.Inbound(goshentest.Mail{From: "a@example.com"})
	h.srv.Advance(48 * time.Hour)
	assert.Greater(t, len(h.srv.Deliveries()[0].Attempts), 48)
	assert.Empty(t, h.effects())
	h.srv.WebhookHandler(h.handler)
	h.srv.Advance(time.Hour)
	assert.Equal(t, []string{received(got.MessageID)}, h.effects())
}

// Snapshots of a delivery come in any order; their versions say which is newer.
func TestDeliveryEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	h.srv.FaultEvents(goshentest.EventFault{Type: goshentest.EmailDeliveryUpdated, DelayPush: time.Minute})
	sent := ask(t, h.client, "k")
	require.Equal(t, 2, h.srv.DeliveryUpdate(sent.Message, hello.To[0], goshentest.Deferred, ""))
	require.Equal(t, 3, h.srv.DeliveryUpdate(sent.Message, hello.To[0], goshentest.Bounced, "no such user"))
	h.srv.Drain(t.Context())
	h.srv.Advance(time.Minute)
	id := "delivery:" + agent + ":" + sent.Message
	assert.Equal(t, []string{id + ":2", id + ":3", id + ":1"}, h.effects())
}

func TestBouncedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	h.srv.BounceAt(func(string) bool { return true })
	sent := ask(t, h.client, "k")
	h.srv.Drain(t.Context())
	got := h.effects()
	slices.Sort(got)
	assert.Equal(t, []string{"bounce:" + agent + ":" + sent.Message, "delivery:" + agent + ":" + sent.Message + ":1"}, got)
}

// Another's secret, and one that was replaced: nothing is taken, and nothing
// is lost, for the push comes again.
func TestReplacedSecret(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	h.srv.RotateSecret()
	got := h.srv.Inbound(goshentest.Mail{From: "a@example.com"})
	h.srv.Drain(t.Context())
	assert.Empty(t, h.effects())
	assert.EqualValues(t, 1, h.handler.Counts().Unverified)
	h.open(events.FromBeginning)
	h.srv.Advance(time.Minute)
	assert.Equal(t, []string{received(got.MessageID)}, h.effects())
}

// What is genuine but cannot be read is answered in a way that brings it back,
// and in the end acknowledged, because this provider would send it for ever.
func TestUnreadablePushIsAcknowledgedInTheEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t, goshentest.Config{}, events.FromBeginning)
	h.srv.Emit("odd-1", goshentest.EmailReceived, map[string]any{"type": goshentest.EmailReceived})
	h.srv.Advance(24 * time.Hour)
	d := h.srv.Deliveries()[0]
	assert.Equal(t, goshentest.StateDelivered, d.State)
	assert.Len(t, d.Attempts, 11)
}
