package e2e_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
)

// Two processes sweep and are pushed to, with a lease that stops neither.
func twoProcesses(t *testing.T, w *world, p *process) *process {
	second, err := w.open(1, w.srv.Key(), nil)
	require.NoError(t, err)
	w.webhook()
	w.mail(1, quiet)
	ok, err := p.inbox.Lease(t.Context(), "the first", time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	_, err = second.sweeper.Sweep(t.Context())
	require.ErrorIs(t, err, events.ErrLeaseHeld, "usually it leaves the work to the first")
	require.NoError(t, p.inbox.Release(t.Context(), "the first"))

	w.mail(60, quiet)
	w.mail(40, efatest.Mail{})
	var all sync.WaitGroup
	for _, each := range []*process{p, second} {
		all.Go(func() {
			for range 4 {
				assertNoError(t, w.store.endLease(t.Context(), each.i, w.stream))
				_, err := each.sweeper.Sweep(t.Context())
				if err != nil && !errors.Is(err, events.ErrLeaseHeld) {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for i := range 10 {
			w.atDoor.Store([]*process{p, second}[i%2])
			w.srv.Deliver(t.Context())
			w.mail(3, efatest.Mail{})
		}
	})
	all.Wait()
	return nil
}

func attachedLate(t *testing.T, w *world, p *process) *process {
	w.mail(250, quiet)
	require.NoError(t, p.sweeper.Attach(t.Context()))
	require.LessOrEqual(t, len(w.srv.Requests()), 64)
	for _, r := range w.srv.Requests() {
		require.Equal(t, "1", r.Query.Get("limit"), "the history is not read")
	}
	require.Equal(t, stood{250, 250, 250}, w.stands(t, p))
	w.mail(5, quiet)
	require.Equal(t, 5, p.swept(t).Fresh)
	v, err := p.judge()
	require.NoError(t, err)
	require.Equal(t, verdict{events: 255}, v, "nothing below it")

	w.asked = true
	report, err := p.sweeper.SweepFrom(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 250, Duplicate: 5}, report.Result, "unless it is asked for")
	return nil
}

// Whatever comes between two looks for the head is history or handled.
func mailWhileAttaching(t *testing.T, w *world, p *process) *process {
	w.mail(40, quiet)
	attached := false
	w.srv.OnRequest(func(_ efatest.Op, at efatest.Point, _ *http.Request) {
		if at == efatest.AfterEffect && !attached {
			w.mail(1, quiet)
		}
	})
	require.NoError(t, p.sweeper.Attach(t.Context()))
	attached = true
	require.GreaterOrEqual(t, w.stands(t, p).attached, events.Cursor(40))
	require.Greater(t, w.srv.Head(), int64(w.stands(t, p).attached))
	return nil
}

const second = "ibx_second"

// twoInboxes is a project of which the key sees one inbox.
var twoInboxes = setup{start: events.FromNow, provider: efatest.Config{
	Inboxes: map[string]string{"ibx_main": "agent@test.mail.invalid", second: "other@test.mail.invalid"},
	Keys:    []efatest.Key{{Token: "efa_test_narrow", Inboxes: []string{"ibx_main"}}},
}}

var quietSecond = efatest.Mail{Inbox: second, NoPush: true}

// inboxAdded: what it holds from before lies behind the cursor, and comes once
// it is asked for; also where what is handled has long been forgotten.
func inboxAdded(t *testing.T, w *world, p *process) *process {
	w.mail(2, quiet)
	p.swept(t)
	for range 5 {
		w.mail(1, quiet)
		w.mail(1, quietSecond)
	}
	w.mail(1, quiet)
	require.Equal(t, 6, p.swept(t).Fresh)
	w.forgets(t, p)

	w.srv.RevokeKey(w.srv.Key())
	w.srv.AddKey(efatest.Key{Token: w.srv.Key()})
	w.mail(3, quietSecond)
	require.Equal(t, 3, p.swept(t).Fresh, "what is new comes by itself")
	w.forgets(t, p)

	before := w.stands(t, p)
	report, err := p.sweeper.SweepFrom(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 3, Skipped: 8, Duplicate: 2}, report.Result, "from the middle")
	require.Equal(t, before, w.stands(t, p), "and moves nothing")
	w.forgets(t, p)
	report, err = p.sweeper.SweepFrom(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, 2, report.Fresh, "and the rest when it is asked for")
	return nil
}

// cursorLost: the stream's row is gone when what it says is handled has long
// been forgotten. The service attaches at the head, and a person asks for all.
func cursorLost(t *testing.T, w *world, p *process) *process {
	w.mail(5, quiet)
	p.swept(t)
	require.NoError(t, p.sweeper.Attach(t.Context()))
	w.mail(5, quiet)
	require.Equal(t, 5, p.swept(t).Fresh)
	w.forgets(t, p)
	w.mail(3, quiet)
	require.NoError(t, w.store.run(t.Context(), p.i, "delete from {s}streams where name = $1", w.stream))

	p, err := w.open(0, w.srv.Key(), nil)
	require.NoError(t, err)
	require.Zero(t, p.swept(t).Fresh)
	w.mail(2, quiet)
	require.Equal(t, 2, p.swept(t).Fresh)
	w.asked = true
	report, err := p.sweeper.SweepFrom(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 5+3, report.Fresh)
	require.Positive(t, report.Skipped)
	return p
}

// forgets lets what was handled be forgotten: what a sweep has met last is met
// by the next one too.
func (w *world) forgets(t *testing.T, p *process) {
	for range 2 {
		w.passes(t, 8*24*time.Hour)
		w.mail(1, quiet)
		p.swept(t)
	}
	require.NoError(t, p.inbox.Maintain(t.Context()))
}

// keyReplaced goes on at the same cursor, and raises a finding.
func keyReplaced(t *testing.T, w *world, p *process) *process {
	p.swept(t)
	w.mail(3, quietSecond)
	w.mail(3, quiet)
	require.Equal(t, 3, p.swept(t).Fresh)
	p.settles(t)
	w.srv.AddKey(efatest.Key{Token: "efa_test_wide"})
	w.srv.RevokeKey(w.srv.Key())
	_, err := p.sweep()
	require.Error(t, err)
	require.Equal(t, events.TroubleCredential, p.sweeper.Health().Trouble)

	p, err = w.open(0, "efa_test_wide", nil)
	require.NoError(t, err)
	w.mail(2, quietSecond)
	require.Equal(t, 2, p.swept(t).Fresh)
	require.Contains(t, w.findings(t, p), doctor.CredentialChanged)
	report, err := p.sweeper.SweepFrom(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 3, Duplicate: 5}, report.Result)
	return p
}

// keyNarrowed: the sweep no longer meets an inbox, whose webhooks still come.
func keyNarrowed(t *testing.T, w *world, p *process) *process {
	narrow := w.srv.Key()
	w.srv.RevokeKey(narrow)
	w.srv.AddKey(efatest.Key{Token: narrow})
	p.swept(t)
	w.webhook()
	w.mail(3, efatest.Mail{Inbox: second})
	w.mail(3, quietSecond)
	p.swept(t)
	w.srv.RevokeKey(narrow)
	w.srv.AddKey(efatest.Key{Token: narrow, Inboxes: []string{"ibx_main"}})
	w.mail(3, efatest.Mail{Inbox: second})
	w.mail(3, quiet)
	w.srv.Drain(t.Context())
	require.Equal(t, 3, p.swept(t).Fresh)
	return nil
}
