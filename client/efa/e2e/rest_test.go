package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
)

// webhook registers the door for what is still to happen.
func (w *world) webhook() { w.srv.WebhookHandler(http.HandlerFunc(w.door)) }

// mail lets n messages come in.
func (w *world) mail(n int, m efatest.Mail) (came []efatest.Received) {
	for range n {
		r := w.srv.Inbound(m)
		came, w.wasLate[r.EventID] = append(came, r), m.Late > 0
	}
	if shown := w.srv.Now().Add(m.Late); shown.After(w.allShown) {
		w.allShown = shown
	}
	return came
}

// quiet is mail of which no webhook tells.
var quiet = efatest.Mail{NoPush: true}

// expire is the provider's retention. What was not handled before is lost, and
// nobody's fault here: what is left to do is to say so.
func (w *world) expire(through int64) error {
	took, err := w.store.took(w.ctx, w.stream)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.srv.Events() {
		if e.Sequence > through {
			break
		}
		w.expired = append(w.expired, e)
		w.excused[e.ID] = len(took[e.ID]) == 0
	}
	w.srv.Expire(through)
	return nil
}

// pass lets time go by, for the provider and for the store alike. Webhooks come
// when they are due.
func (w *world) pass(d time.Duration) error {
	for end := w.srv.Now().Add(d); w.srv.Now().Before(end); {
		step := min(max(w.untilPush(), 0), end.Sub(w.srv.Now()))
		if step > 0 {
			if err := w.store.age(w.ctx, w.stream, step); err != nil {
				return err
			}
		}
		w.srv.Advance(step)
	}
	return nil
}

// untilPush is when the next webhook is due; in a year if none is.
func (w *world) untilPush() time.Duration {
	wait := 365 * 24 * time.Hour
	for _, d := range w.srv.Deliveries() {
		if d.State == efatest.StatePending {
			wait = min(wait, d.Next.Sub(w.srv.Now()))
		}
	}
	return wait
}

func (w *world) pushing() bool { return w.untilPush() < 365*24*time.Hour }

// sweep waits for the lease of a process that died with it. Of two that are at
// work neither waits: the other has stood still for longer.
func (p *process) sweep() (report events.Report, err error) {
	for range 3 {
		report, err = p.sweeper.Sweep(p.with(p.ctx))
		if !errors.Is(err, events.ErrLeaseHeld) {
			break
		}
		if p.rival {
			err = p.store.endLease(p.ctx, p.i, p.stream)
		} else {
			err = p.pass(leaseTime)
		}
		if err != nil {
			break
		}
	}
	return report, err
}

const (
	leaseTime = 31 * time.Second
	lookBack  = 2 * time.Minute
	every     = time.Minute
)

// rest goes on until nothing is left to come: no webhook, no late sequence, no
// parked event. A sweep comes after all of that.
func (p *process) rest() error {
	for range 100 {
		busy, err := p.turn()
		if err != nil || !busy {
			return err
		}
		wait := max(every, p.allShown.Sub(p.srv.Now()))
		if p.pushing() {
			wait = max(wait, p.untilPush())
		}
		if err := p.pass(wait); err != nil {
			return err
		}
	}
	return errors.New("it does not come to rest")
}

func (p *process) turn() (busy bool, err error) {
	p.srv.Drain(p.ctx)
	late := p.srv.Now().Before(p.allShown)
	if _, err := p.sweep(); err != nil {
		return true, fmt.Errorf("at rest: %w", err)
	}
	parked, err := p.inbox.Parked(p.with(p.ctx), "", 0)
	if err == nil && len(parked) > 0 {
		err = p.inbox.Maintain(p.with(p.ctx))
	}
	return late || len(parked) > 0 || p.pushing(), err
}

// record is all that ever happened.
func (w *world) record() []efatest.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(w.expired[:len(w.expired):len(w.expired)], w.srv.Events()...)
}

// judge compares the provider's record with what took effect.
func (p *process) judge() (v verdict, err error) {
	took, err := p.store.took(p.ctx, p.stream)
	if err != nil {
		return v, err
	}
	pos, err := p.inbox.Position(p.ctx)
	if err != nil {
		return v, err
	}
	pushed := map[string]bool{}
	for _, d := range p.srv.Deliveries() {
		pushed[d.EventID] = true
	}
	for _, e := range p.record() {
		v.events++
		n := len(took[e.ID])
		delete(took, e.ID)
		history := e.Sequence <= int64(pos.Attached) && !p.asked
		switch {
		case n > 1:
			v.twice++
		case n == 1 && history && !pushed[e.ID]:
			v.early++
		case n == 0 && !history && !p.excused[e.ID]:
			v.lost++
		}
	}
	v.strange = len(took)
	return v, nil
}

// end brings a test's world to rest and judges it.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.heal()
	require.NoError(t, p.rest())
	require.NoError(t, p.pass(lookBack+every))
	report, err := p.sweep()
	require.NoError(t, err)
	require.Zero(t, report.Fresh, "it was at rest")
	v, err := p.judge()
	require.NoError(t, err)
	total.add(v)
	require.True(t, v.clean(), "%+v", v)
	require.Positive(t, v.events)
}
