package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
)

// Every fault ends at rest, with nothing lost and nothing handled twice. What
// else a user notices is the fault's own.
func TestFaults(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		for name, f := range faults {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				total.fault(name)
				w := begin(t, s, f.with)
				p := w.process(t)
				if after := f.run(t, w, p); after != nil {
					p = after
				}
				p.end(t)
			})
		}
	})
}

// fault is one that takes more than an answer. run returns the process that
// goes on, if it is another than the one it was given.
type fault struct {
	with setup
	run  func(t *testing.T, w *world, p *process) *process
}

var faults = map[string]fault{
	"a late sequence":                        {setup{page: 4}, lateSequence},
	"a late sequence, and a week away":       {setup{page: 4, start: events.FromNow}, lateAndAway},
	"later than the look-back, and pushed":   {setup{start: events.FromNow}, latePushed},
	"late at the attaching":                  {setup{start: events.FromNow}, lateAttaching},
	"expired where all was handled":          {setup{page: 4}, expiredHandled},
	"expired look-back, and a late sequence": {setup{page: 4}, expiredLookBack},
	"expired, and lost":                      {setup{page: 4}, expiredLost},
	"expired in the middle of a sweep":       {setup{page: 4, commit: 1}, expiredMidway},
	"expired with nothing left":              {setup{}, expiredEmpty},
	"expired at every cursor":                {setup{page: 4}, expiredAlways},
	"expired cursors, and history":           {setup{start: events.FromNow}, expiredOverHistory},
	"expired before it attached":             {setup{start: events.FromNow}, expiredAttaching},
	"410 without a cursor":                   {setup{}, expiredWithoutCursor},
	"a cursor above the head":                {setup{}, aboveTheHead},
	"two processes":                          {setup{page: 10}, twoProcesses},
	"attached late":                          {setup{start: events.FromNow}, attachedLate},
	"mail while it attaches":                 {setup{start: events.FromNow}, mailWhileAttaching},
	"an inbox added to the key":              {twoInboxes, inboxAdded},
	"a new key that sees another inbox":      {twoInboxes, keyReplaced},
	"a key that sees less":                   {twoInboxes, keyNarrowed},
	"a lost cursor":                          {setup{start: events.FromNow}, cursorLost},
	"an event on which the handler fails":    {setup{page: 5}, failingEvent},
	"pushed twice, late, and out of order":   {setup{}, unruly},
	"a secret that was replaced":             {setup{}, rotated},
}

// assertNoError is for other goroutines than the test's.
func assertNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func (p *process) swept(t *testing.T) events.Report {
	t.Helper()
	report, err := p.sweep()
	require.NoError(t, err)
	return report
}

func (w *world) passes(t *testing.T, d time.Duration) {
	t.Helper()
	require.NoError(t, w.pass(d))
}

// settles lets a look-back pass, so that what was swept is settled.
func (p *process) settles(t *testing.T) {
	t.Helper()
	p.passes(t, lookBack+every)
	p.swept(t)
}

func lateSequence(t *testing.T, w *world, p *process) *process {
	w.mail(2, quiet)
	p.swept(t)
	p.settles(t)
	late := w.mail(1, efatest.Mail{NoPush: true, Late: 119 * time.Second})[0]
	w.mail(6, quiet)
	require.Equal(t, 6, p.swept(t).Fresh)
	w.passes(t, every)
	require.Zero(t, p.swept(t).Fresh)
	require.Equal(t, stood{cursor: 9, settled: 2}, w.stands(t, p), "not above what it has not seen")
	w.passes(t, every)
	report := p.swept(t)
	require.Equal(t, 1, report.Fresh)
	require.EqualValues(t, late.Sequence-1, report.From, "from settled, not from the cursor")
	return nil
}

func lateAndAway(t *testing.T, w *world, p *process) *process {
	w.mail(2, quiet)
	p.swept(t)
	w.mail(1, efatest.Mail{NoPush: true, Late: 100 * time.Second})
	w.mail(3, quiet)
	require.Equal(t, 3, p.swept(t).Fresh)
	w.passes(t, every)
	p.swept(t)
	w.passes(t, 7*24*time.Hour)
	p = w.process(t)
	require.Equal(t, 1, p.swept(t).Fresh)
	return p
}

func latePushed(t *testing.T, w *world, p *process) *process {
	p.swept(t)
	w.webhook()
	w.mail(1, efatest.Mail{Late: time.Hour})
	w.mail(3, quiet)
	for range 5 {
		p.settles(t)
	}
	require.EqualValues(t, 4, w.stands(t, p).settled, "no sweep will meet it")
	return nil
}

func lateAttaching(t *testing.T, w *world, p *process) *process {
	w.mail(2, quiet)
	w.mail(1, efatest.Mail{NoPush: true, Late: time.Minute})
	require.Zero(t, p.swept(t).Fresh)
	require.Equal(t, stood{2, 2, 2}, w.stands(t, p))
	w.passes(t, time.Minute)
	require.Equal(t, 1, p.swept(t).Fresh, "above where it attached")
	return nil
}

// failingEvent: the cursor passes it, its neighbours are handled, and so is it
// once the handler can.
func failingEvent(t *testing.T, w *world, p *process) *process {
	came := w.mail(12, quiet)
	w.webhook()
	pushed := w.mail(1, efatest.Mail{})[0]
	w.fail(came[0].EventID, came[6].EventID, pushed.EventID)
	w.srv.Drain(t.Context())
	require.EqualValues(t, 1, p.handler.Counts().Parked)
	report := p.swept(t)
	require.Equal(t, events.Result{Fresh: 10, Parked: 2, Duplicate: 1}, report.Result)
	require.Equal(t, stood{cursor: 13}, w.stands(t, p))
	p.settles(t)
	require.EqualValues(t, 13, w.stands(t, p).settled)
	parked, err := p.inbox.Parked(t.Context(), "", 0)
	require.NoError(t, err)
	require.Len(t, parked, 3)
	return nil
}

func unruly(t *testing.T, w *world, p *process) *process {
	w.webhook()
	for i, f := range []efatest.EventFault{{Copies: 3}, {DelayPush: 10 * time.Minute}, {Reorder: true}, {DropPush: true}} {
		f.When = efatest.When{Skip: i, Times: 10}
		w.srv.FaultEvents(f)
	}
	w.mail(50, efatest.Mail{})
	w.srv.Deliver(t.Context())
	p.swept(t)
	for _, e := range w.srv.Events() {
		w.srv.Redeliver(e.ID)
	}
	w.passes(t, 15*time.Minute)
	c := p.handler.Counts()
	require.Zero(t, c.Unverified+c.Unreadable+c.Unavailable, "%+v", c)
	require.GreaterOrEqual(t, c.Duplicate, int64(50))
	return nil
}

// rotated: deliveries under way are cancelled for good, and what is signed with
// the new secret is refused until the program knows it.
func rotated(t *testing.T, w *world, p *process) *process {
	w.webhook()
	w.mail(3, efatest.Mail{})
	_, cancelled := w.srv.Rotate(w.srv.Webhooks()[0].ID)
	require.Equal(t, 3, cancelled)
	w.mail(4, efatest.Mail{})
	require.Equal(t, 4, w.srv.Drain(t.Context()))
	require.EqualValues(t, 4, p.handler.Counts().Unverified)
	require.Equal(t, http.StatusBadRequest, w.srv.Deliveries()[6].Attempts[0].Status, "given up at once")
	require.Equal(t, 7, p.swept(t).Fresh)
	return w.process(t)
}
