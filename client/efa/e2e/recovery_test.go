package e2e_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
)

// useGoClock makes Go's clock SQLite's, so that in a bubble of synctest ten days
// pass for both at once.
func useGoClock() {
	sqlite.MustRegisterScalarFunction("unixepoch", 1, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return float64(time.Now().UnixMicro()) / 1e6, nil
	})
}

// An outage of the push door costs latency and nothing else, however long it
// is: a sweep interval, and for a sequence that is late, what it is late by.
func TestRecoveryAfterWebhookLoss(t *testing.T) {
	t.Parallel()
	for _, outage := range []struct{ length, between, every time.Duration }{
		{time.Minute, 3 * time.Second, every},
		{time.Hour, 20 * time.Second, every},
		{10 * 24 * time.Hour, 17 * time.Minute, forTenDays()},
	} {
		t.Run(outage.length.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { recoverFrom(t, outage.length, outage.between, outage.every) })
		})
	}
}

// forTenDays is a slower rhythm than usual, unless a long run is asked for:
// 14,400 sweeps take half a minute.
func forTenDays() time.Duration {
	switch {
	case long():
		return every
	case raceEnabled:
		return 2 * time.Hour
	}
	return 10 * time.Minute
}

func recoverFrom(t *testing.T, outage, between, every time.Duration) {
	w := begin(t, sqliteStore(t), setup{start: events.FromNow, every: every, live: true})
	p := w.process(t)
	down := new(atomic.Bool)
	w.srv.WebhookHandler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		w.door(rw, r)
	}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.sweeper.Run(ctx) }()
	<-p.sweeper.Attached()

	w.traffic(10*time.Minute, between)
	began := time.Now()
	down.Store(true)
	w.traffic(outage, between)
	down.Store(false)
	over := time.Now()
	w.traffic(10*time.Minute, between)
	time.Sleep(lookBack + every)
	stop()
	require.NoError(t, <-ended)
	time.Sleep(24 * time.Hour) // the provider tries its last

	v, err := p.judge()
	require.NoError(t, err)
	total.fault(fmt.Sprintf("webhooks lost for %s", outage))
	total.add(v)
	require.True(t, v.clean(), "%+v", v)
	m := w.measure(t, began, over)
	t.Logf("no webhook for %s, a sweep every %s: %d events, each handled once, %d deliveries given up; greatest latency %s (at most %s), of late sequences %s (at most %s)",
		outage, every, m.events, m.givenUp, m.prompt, every, m.late, every+lookBack)
	require.Positive(t, m.events)
	const slack = time.Second // a database that is busy is waited for in this time, too
	require.LessOrEqual(t, m.prompt, every+slack)
	require.LessOrEqual(t, m.late, every+lookBack+slack)
	require.Zero(t, m.otherwise, "with webhooks there is no waiting")
}

// traffic is mail for a while, every tenth of it late at the cursor.
func (w *world) traffic(length, between time.Duration) {
	for n, end := 0, time.Now().Add(length); time.Now().Before(end); n++ {
		m := efatest.Mail{}
		if n%10 == 9 {
			m.Late = time.Duration(n/10%13) * 10 * time.Second
		}
		w.mail(1, m)
		time.Sleep(min(between, time.Until(end)))
	}
}

// measured is how long events took, by the provider's clock.
type measured struct {
	events, givenUp int           // during the outage
	prompt, late    time.Duration // the greatest, of those that the cursor showed at once or late
	otherwise       time.Duration // the greatest before and after
}

func (w *world) measure(t *testing.T, began, over time.Time) (m measured) {
	t.Helper()
	took, err := w.store.took(t.Context(), w.stream)
	require.NoError(t, err)
	for _, e := range w.srv.Events() {
		latency := took[e.ID][0].Sub(e.At)
		switch {
		case e.At.Before(began) || !e.At.Before(over):
			m.otherwise = max(m.otherwise, latency)
		case w.wasLate[e.ID]:
			m.late = max(m.late, latency)
		default:
			m.prompt = max(m.prompt, latency)
		}
		if !e.At.Before(began) && e.At.Before(over) {
			m.events++
		}
	}
	for _, d := range w.srv.Deliveries() {
		if d.State == efatest.StateExhausted {
			m.givenUp++
		}
	}
	return m
}
