package doctor_test

import (
	"context"
	"database/sql"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/verify"
)

// store makes an inbox on a database, and tells how its rows are reached.
type store func(t *testing.T, s events.Stream) (*dedupe.Inbox, *sqldb.DB)

func onBoth(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		db := testdb.Postgres(t)
		test(t, func(t *testing.T, s events.Stream) (*dedupe.Inbox, *sqldb.DB) {
			in, err := dedupe.NewPostgres(db.Pool, dedupe.Config{Stream: s, Schema: db.Schema},
				func(context.Context, pgx.Tx, []events.Event) error { return nil })
			require.NoError(t, err)
			require.NoError(t, in.Migrate(t.Context()))
			return in, sqldb.Postgres(db.Pool, db.Schema, false)
		})
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := testdb.SQLite(t)
		test(t, func(t *testing.T, s events.Stream) (*dedupe.Inbox, *sqldb.DB) {
			in, err := dedupe.NewSQLite(db, dedupe.Config{Stream: s},
				func(context.Context, *sql.Tx, []events.Event) error { return nil })
			require.NoError(t, err)
			return in, sqldb.SQLite(db)
		})
	})
}

// patient is a program with both doors before a whole provider.
type patient struct {
	srv     *efatest.Server
	webhook efatest.Webhook
	sweeper *events.Sweeper
	db      *sqldb.DB
	config  doctor.Config
	door    http.Handler // what the provider reaches; the Handler at first
}

func setup(t *testing.T, s store, cfg efatest.Config) *patient {
	t.Helper()
	cfg.InMemory, cfg.Manual = true, true
	p := &patient{srv: efatest.NewServer(t, cfg)}
	c, err := efa.New(efa.Config{
		Project: p.srv.Project(), Key: p.srv.Key(), BaseURL: p.srv.URL(), HTTPClient: p.srv.Client(), Tries: 1,
	})
	require.NoError(t, err)
	inbox, db := s(t, c.Stream())
	p.db = db
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(p.srv.Secret())}, Now: p.srv.Now})
	require.NoError(t, err)
	h, err := events.NewHandler(v, efa.Profile, inbox, events.HandlerConfig{})
	require.NoError(t, err)
	p.sweeper, err = events.NewSweeper(c.Source(), inbox, events.SweeperConfig{Start: events.FromNow})
	require.NoError(t, err)
	require.NoError(t, p.sweeper.Attach(t.Context()))
	p.door = h
	p.webhook = p.srv.WebhookHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.door.ServeHTTP(w, r) }))
	p.config = doctor.Config{Inbox: inbox, Handler: h, Sweeper: p.sweeper, Provider: c}
	return p
}

func (p *patient) sweep(t *testing.T) {
	t.Helper()
	_, err := p.sweeper.Sweep(t.Context())
	require.NoError(t, err)
}

func (p *patient) report(t *testing.T) doctor.Report {
	t.Helper()
	return report(t, p.config)
}

// age makes what was received, and the last sweep, look so much older.
func (p *patient) age(t *testing.T, d time.Duration) {
	t.Helper()
	by := " - $1::bigint * interval '1 microsecond'"
	if p.db.SQLite {
		by = " - $1"
	}
	require.NoError(t, p.db.Tx(t.Context(), func(tx sqldb.Tx) error {
		for _, update := range []string{
			"update {s}seen set first_seen = first_seen" + by + ", last_seen = last_seen" + by,
			"update {s}streams set through = through" + by,
		} {
			if _, err := tx.Exec(t.Context(), p.db.Render(update), d); err != nil {
				return err
			}
		}
		return nil
	}))
}

func answer(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func TestWhatARotationCancelsIsRecoveredByTheCursor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{})
		p.srv.Inbound(efatest.Mail{})
		p.srv.Drain(t.Context())
		for range 3 {
			p.srv.Inbound(efatest.Mail{})
		}
		_, canceled := p.srv.Rotate(p.webhook.ID)
		require.Equal(t, 3, canceled)
		require.Equal(t, doctor.Tally{Total: 3, Waiting: 3}, p.report(t).Endpoints[0].Canceled)

		p.sweep(t)
		r := p.report(t)
		require.Equal(t, doctor.Tally{Total: 3, BySweep: 3}, r.Endpoints[0].Canceled)
		require.Equal(t, "2", r.Endpoints[0].SecretVersion)
		require.Equal(t, []string{"note deliveries_canceled"}, found(r))
		require.Equal(t, "A rotation, or a switch, cancelled 3 deliveries to "+p.webhook.ID+": the cursor recovered 3.",
			text(t, r, doctor.DeliveriesCanceled))
	})
}

// An endpoint is told of the whole project, a key may see one inbox of it.
func TestWhatTheCursorCannotRecoverIsMissing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		then := time.Now().Add(-time.Hour)
		p := setup(t, s, efatest.Config{
			Inboxes: map[string]string{"ibx_main": "a@test.mail.invalid", "ibx_other": "b@test.mail.invalid"},
			Keys:    []efatest.Key{{Token: "efa_test_one", Inboxes: []string{"ibx_main"}}},
			Now:     func() time.Time { return then },
		})
		p.srv.Inbound(efatest.Mail{Inbox: "ibx_main"})
		p.srv.Inbound(efatest.Mail{Inbox: "ibx_other"})
		require.Equal(t, 2, p.srv.Disable(p.webhook.ID))
		p.sweep(t)
		r := p.report(t)
		require.Equal(t, doctor.Tally{Total: 2, BySweep: 1, Missing: 1}, r.Endpoints[0].Canceled)
		require.Subset(t, found(r), []string{"warning endpoint_disabled", "warning deliveries_canceled"})
	})
}

func TestDeliveriesThatWereGivenUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{})
		p.srv.Inbound(efatest.Mail{})
		p.door = answer(http.StatusInternalServerError)
		p.srv.Advance(21 * time.Hour) // eight attempts
		handler := p.config.Handler
		p.door = answer(http.StatusNotFound)
		p.srv.Inbound(efatest.Mail{})
		p.srv.Drain(t.Context())
		p.door = handler
		p.srv.Inbound(efatest.Mail{})
		p.srv.Drain(t.Context())

		p.sweep(t)
		r := p.report(t)
		require.Equal(t, doctor.Tally{Total: 2, BySweep: 2}, r.Endpoints[0].GivenUp)
		require.Contains(t, found(r), "warning deliveries_given_up")
		require.Contains(t, text(t, r, doctor.DeliveriesGivenUp), "(1 × final 4xx, 1 × 5xx): the cursor recovered 2;")
	})
}

func TestAWebhookThatNoSweepMeetsMakesTheCursorSuspect(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{})
		p.srv.Inbound(efatest.Mail{})
		p.srv.Drain(t.Context())
		p.sweep(t)
		p.srv.Inbound(efatest.Mail{Late: 1000 * time.Hour}) // the cursor does not show it
		p.srv.Drain(t.Context())
		p.sweep(t)
		require.Empty(t, found(p.report(t)), "within the hour")

		p.age(t, 2*time.Hour)
		require.Equal(t, []string{"warning sweep_behind"}, found(p.report(t)), "no sweep has reached the head since")
		p.sweep(t)
		require.Equal(t, []string{"warning cursor_suspect", "warning sweeps_empty"}, found(p.report(t)))
		p.srv.Inbound(efatest.Mail{})
		p.srv.Drain(t.Context())
		p.sweep(t)
		require.Equal(t, []string{"warning cursor_suspect"}, found(p.report(t)))

		// The store knows: a process that has seen no webhook says the same.
		p.config.Handler = newHandler(t, secretOf(1))
		r := p.report(t)
		require.Equal(t, []string{"warning cursor_suspect"}, found(r))
		require.Contains(t, text(t, r, doctor.CursorSuspect), "1 event of "+p.srv.Inbox())
	})
}

func TestWebhooksWhileSweepsStayEmpty(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{
			Inboxes: map[string]string{"ibx_main": "a@test.mail.invalid", "ibx_other": "b@test.mail.invalid"},
			Keys:    []efatest.Key{{Token: "efa_test_one", Inboxes: []string{"ibx_main"}}},
		})
		p.srv.Inbound(efatest.Mail{Inbox: "ibx_other"})
		p.srv.Drain(t.Context())
		p.age(t, 2*time.Hour)
		p.sweep(t)
		require.Equal(t, []string{"note sweeps_empty"}, found(p.report(t)))
		p.config.Inboxes = []string{"ibx_other"}
		require.Equal(t, []string{"warning sweeps_empty"}, found(p.report(t)))
		p.config.Inboxes = []string{"ibx_main"}
		require.Empty(t, found(p.report(t)), "it acts on another inbox")
	})
}

func TestTestsNeverCount(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{Keys: []efatest.Key{
			{Token: "efa_test_one", Inboxes: []string{"ibx_main"}}, {Token: "efa_test_ann", Human: true},
		}})
		p.srv.Inbound(efatest.Mail{})
		person, err := efa.New(efa.Config{
			Project: p.srv.Project(), Key: "efa_test_ann", BaseURL: p.srv.URL(), HTTPClient: p.srv.Client(),
		})
		require.NoError(t, err)
		_, err = person.TestWebhook(t.Context(), p.webhook.ID)
		require.NoError(t, err)
		require.Equal(t, 2, p.srv.Drain(t.Context()))
		p.age(t, 2*time.Hour)
		p.sweep(t)
		r := p.report(t)
		require.Len(t, r.Doors.Inboxes, 2)
		require.Equal(t, 1, r.Doors.Inboxes[0].Unmet, "the test")
		require.Empty(t, found(r))
	})
}

func TestAProvidersClockThatIsOff(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{Now: func() time.Time { return time.Now().Add(-2 * time.Minute) }})
		p.srv.Inbound(efatest.Mail{})
		p.srv.Drain(t.Context())
		p.sweep(t)
		r := p.report(t)
		require.Equal(t, []string{"warning clock_skew"}, found(r))
		require.InDelta(t, -120, r.SkewSeconds, 2)
		require.Contains(t, text(t, r, doctor.ClockSkew), "ahead of the provider's")
	})
}

func TestAKeyThatMayNotListDeliveries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		p := setup(t, s, efatest.Config{Keys: []efatest.Key{{Token: "efa_test_one", Scopes: []string{efatest.ScopeEventsRead}}}})
		p.sweep(t)
		require.Equal(t, []string{"note listing_refused"}, found(p.report(t)))
		p.srv.Fault(efatest.Fault{Op: efatest.OpAny, Status: 503, When: efatest.When{Always: true}})
		require.Equal(t, []string{"note provider_unavailable"}, found(p.report(t)))
	})
}

func TestGoshenHasNoListingAndNoNumbers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s store) {
		srv := goshentest.NewServer(t, goshentest.Config{InMemory: true, Manual: true})
		c, err := goshen.New(goshen.Config{BaseURL: srv.URL(), HTTPClient: srv.Client(), Key: srv.Key(), Inboxes: []string{srv.Inbox()}})
		require.NoError(t, err)
		inbox, db := s(t, c.Stream())
		v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.Base64Secret(srv.Secret())}, Now: srv.Now})
		require.NoError(t, err)
		h, err := events.NewHandler(v, goshen.Profile, inbox, events.HandlerConfig{})
		require.NoError(t, err)
		sweeper, err := events.NewSweeper(c.Source(), inbox, events.SweeperConfig{Start: events.FromNow})
		require.NoError(t, err)
		p := &patient{sweeper: sweeper, db: db, config: doctor.Config{Inbox: inbox, Handler: h, Sweeper: sweeper, Provider: c}}
		p.sweep(t)
		srv.WebhookHandler(h)
		srv.Inbound(goshentest.Mail{})
		srv.Drain(t.Context())
		p.age(t, 2*time.Hour)
		p.sweep(t)
		r := p.report(t)
		require.EqualValues(t, 1, r.Push.Fresh)
		require.Empty(t, found(r))
		require.NotEmpty(t, text(t, r, doctor.NoListing))
		require.Contains(t, text(t, r, doctor.DoorsOK), "cannot be compared")
		require.False(t, r.ClockRead.IsZero())
	})
}
