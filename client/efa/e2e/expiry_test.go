package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
)

func expiredHandled(t *testing.T, w *world, p *process) *process {
	w.mail(10, quiet)
	p.swept(t)
	p.settles(t)
	w.mail(3, quiet)
	require.NoError(t, w.expire(10))
	report := p.swept(t)
	require.Nil(t, report.Loss)
	require.Equal(t, 3, report.Fresh)
	require.True(t, w.lost(t, p).At.IsZero())
	return nil
}

func (w *world) lost(t *testing.T, p *process) events.Loss {
	t.Helper()
	s, err := p.inbox.Status(t.Context())
	require.NoError(t, err)
	return s.Lost
}

func (w *world) lostWas(t *testing.T, p *process, cursor, oldest int64) {
	t.Helper()
	l := w.lost(t, p)
	require.Equal(t, []events.Cursor{events.Cursor(cursor), events.Cursor(oldest)}, []events.Cursor{l.Cursor, l.Oldest})
}

func expiredLookBack(t *testing.T, w *world, p *process) *process {
	w.mail(4, quiet)
	p.swept(t)
	p.settles(t)
	w.mail(2, quiet)
	w.mail(1, efatest.Mail{NoPush: true, Late: 90 * time.Second})
	w.mail(2, quiet)
	p.swept(t)
	require.Equal(t, stood{cursor: 9, settled: 4}, w.stands(t, p))
	require.NoError(t, w.expire(5))
	w.passes(t, 90*time.Second)
	report := p.swept(t)
	require.Nil(t, report.Loss)
	require.Equal(t, 1, report.Fresh, "between what remains and the cursor")
	return nil
}

func expiredLost(t *testing.T, w *world, p *process) *process {
	w.mail(6, quiet)
	p.swept(t)
	w.passes(t, 30*24*time.Hour)
	gone := w.mail(5, quiet)
	w.mail(9, quiet)
	require.NoError(t, w.expire(gone[4].Sequence))
	report := p.swept(t)
	require.Equal(t, 9, report.Fresh)
	require.NotNil(t, report.Loss)
	w.lostWas(t, p, 6, 12)
	require.Equal(t, stood{cursor: 20, settled: 6}, w.stands(t, p))
	require.Equal(t, events.TroubleNone, p.sweeper.Health().Trouble)
	return nil
}

// The provider's retention overtakes the sweep between two of its pages.
func expiredMidway(t *testing.T, w *world, p *process) *process {
	w.mail(16, quiet)
	pages := 0
	w.srv.OnRequest(func(op efatest.Op, at efatest.Point, _ *http.Request) {
		if op != efatest.OpEvents || at != efatest.BeforeEffect {
			return
		}
		if pages++; pages == 3 { // the second has been handed in, and may not be committed yet
			w.expireUnseen(t, 14, 8)
		}
	})
	report := p.swept(t)
	require.Equal(t, 10, report.Fresh)
	w.lostWas(t, p, 8, 15)
	require.EqualValues(t, 16, w.stands(t, p).cursor)
	return nil
}

// expireUnseen is expire in the middle of a sweep that has got all up to read.
func (w *world) expireUnseen(t *testing.T, through, read int64) {
	assertNoError(t, w.expire(through))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.expired {
		w.excused[e.ID] = e.Sequence > read
	}
}

func expiredEmpty(t *testing.T, w *world, p *process) *process {
	w.mail(6, quiet)
	p.swept(t)
	p.settles(t)
	gone := w.mail(3, quiet)
	require.NoError(t, w.expire(gone[2].Sequence))
	p.swept(t)
	require.Equal(t, stood{cursor: 6, settled: 6}, w.stands(t, p), "an empty page moves nothing")
	w.mail(2, quiet)
	report := p.swept(t)
	require.Equal(t, 2, report.Fresh)
	w.lostWas(t, p, 6, 10)
	return nil
}

// A provider that forgets cursors and not events: one restart a sweep.
func expiredAlways(t *testing.T, w *world, p *process) *process {
	w.mail(6, quiet)
	p.swept(t)
	p.settles(t)
	w.mail(6, quiet)
	armed := w.srv.Fault(efatest.Fault{
		Op: efatest.OpEvents, Status: http.StatusGone, When: efatest.When{Always: true},
		Match: func(r *http.Request) bool { return r.URL.Query().Has("cursor") },
	})
	asked := w.srv.Count(efatest.OpEvents)
	_, err := p.sweep()
	require.ErrorIs(t, err, events.ErrCursorExpired)
	require.Equal(t, events.TroubleService, p.sweeper.Health().Trouble, "the next sweep may do better")
	require.LessOrEqual(t, w.srv.Count(efatest.OpEvents)-asked, 4, "no loop")
	require.Equal(t, stood{cursor: 6, settled: 6}, w.stands(t, p))
	armed.Disarm()
	require.Equal(t, 6, p.swept(t).Fresh)
	return nil
}

// The restart meets history again, which is still not to be answered.
func expiredOverHistory(t *testing.T, w *world, p *process) *process {
	w.mail(10, quiet)
	p.swept(t)
	w.mail(3, quiet)
	w.srv.Fault(efatest.Fault{
		Op: efatest.OpEvents, Status: http.StatusGone, When: efatest.When{Times: 1},
		Match: func(r *http.Request) bool { return r.URL.Query().Has("cursor") },
	})
	report := p.swept(t)
	require.Equal(t, events.Result{Fresh: 3, Skipped: 10}, report.Result)
	w.lostWas(t, p, 10, 1)
	return nil
}

func expiredAttaching(t *testing.T, w *world, p *process) *process {
	w.mail(300, quiet)
	require.NoError(t, w.expire(290))
	require.Zero(t, p.swept(t).Fresh)
	require.Equal(t, stood{300, 300, 300}, w.stands(t, p))
	w.mail(2, quiet)
	require.NoError(t, w.expire(300))
	require.Equal(t, 2, p.swept(t).Fresh)
	return nil
}

func expiredWithoutCursor(t *testing.T, w *world, p *process) *process {
	w.mail(3, quiet)
	w.srv.Fault(efatest.Fault{Op: efatest.OpEvents, Status: http.StatusGone})
	_, err := p.sweep()
	require.ErrorIs(t, err, events.ErrCursorExpired)
	require.Equal(t, events.TroubleService, p.sweeper.Health().Trouble)
	require.Equal(t, 1, w.srv.Count(efatest.OpEvents), "no loop")
	require.Equal(t, stood{}, w.stands(t, p))
	require.True(t, w.lost(t, p).At.IsZero(), "it says nothing of a loss")
	return nil
}

// The provider comes back from a backup, and counts again from where that was.
// No answer tells; the webhooks that no sweep meets do.
func aboveTheHead(t *testing.T, w *world, p *process) *process {
	w.mail(30, quiet)
	p.swept(t)
	p.settles(t)
	w.restore(t)
	p = w.process(t)
	w.webhook()
	w.mail(4, efatest.Mail{})
	w.mail(6, quiet)
	w.srv.Drain(t.Context())
	for range 70 {
		w.passes(t, every)
		report := p.swept(t)
		require.True(t, report.Head)
		require.Zero(t, report.Fresh)
	}
	require.Equal(t, stood{cursor: 30, settled: 30}, w.stands(t, p), "never downward")
	require.Contains(t, w.findings(t, p), doctor.CursorSuspect)

	report, err := p.sweeper.SweepFrom(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, events.Result{Fresh: 6, Duplicate: 4}, report.Result)
	w.mail(20, quiet)
	_, err = p.sweeper.SweepFrom(t.Context(), 10)
	require.NoError(t, err)
	w.mail(2, quiet)
	require.Equal(t, 2, p.swept(t).Fresh, "above the cursor all is as it was")
	return p
}

// restore is the same project with another memory of it.
func (w *world) restore(t *testing.T) {
	t.Helper()
	before, old := w.record(), w.srv
	w.provider.Seed++
	w.provider.Keys = []efatest.Key{{Token: old.Key()}}
	require.NoError(t, w.begin())
	w.expired = before
	old.Check(t)
	old.Close()
}

func (w *world) findings(t *testing.T, p *process) (codes []doctor.Code) {
	t.Helper()
	d, err := doctor.New(doctor.Config{Inbox: p.inbox, Sweeper: p.sweeper})
	require.NoError(t, err)
	for _, f := range d.Report(t.Context()).Findings {
		codes = append(codes, f.Code)
	}
	return codes
}
