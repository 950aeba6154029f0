package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
)

// act is a part of a life.
type act struct {
	name   string
	before func(w *world) error   // what happens around the process
	do     func(p *process) error // what it does; if it ends in it, the next one does it again
}

// life is a sweeper's: attached late, webhooks beside it, two pages, a late
// sequence, retention that overtakes it, and at both doors an event on which
// the handler fails.
var life = []act{
	{"attach", nil, func(p *process) error { return p.sweeper.Attach(p.with(p.ctx)) }},
	{"push", firstMail, push},
	{"sweep two pages", nil, sweepOnce},
	{"push again, and sweep what is late", func(w *world) error {
		if err := w.pass(101 * time.Second); err != nil {
			return err
		}
		w.srv.Redeliver(w.srv.Events()[history].ID)
		w.srv.Redeliver(w.srv.Events()[history+5].ID)
		w.mail(1, efatest.Mail{})
		return nil
	}, pushAndSweep},
	{"sweep over an expiry", func(w *world) error {
		came := w.mail(4, quiet)
		w.fail(came[3].EventID)
		w.loss = events.Loss{Cursor: events.Cursor(came[0].Sequence - 1), Oldest: events.Cursor(came[2].Sequence)}
		return w.expire(came[1].Sequence)
	}, sweepOnce},
	{"retry", func(w *world) error {
		w.heal()
		return w.pass(time.Minute)
	}, maintain},
}

// lives is a life, and in a long run what follows eight days later, when IDs are
// forgotten: package dedupe has its own crashes there.
func lives() []act {
	if !long() {
		return life
	}
	return append(slices.Clone(life), act{"sweep and forget", func(w *world) error {
		defer w.mail(2, efatest.Mail{})
		return w.pass(8 * 24 * time.Hour)
	}, func(p *process) error { return errors.Join(pushAndSweep(p), maintain(p)) }})
}

func push(p *process) error {
	p.srv.Drain(p.ctx)
	return nil
}

func sweepOnce(p *process) error {
	_, err := p.sweep()
	return err
}

func pushAndSweep(p *process) error { return errors.Join(push(p), sweepOnce(p)) }
func maintain(p *process) error     { return p.inbox.Maintain(p.with(p.ctx)) }

const history = 4 // events that happened before the stream was attached

// firstMail is what there is to find: a page of 8 and one of 2, and among them
// what the cursor does not show yet.
func firstMail(w *world) error {
	w.webhook()
	w.srv.FaultEvents(efatest.EventFault{Copies: 1, When: efatest.When{Skip: 1}})
	w.mail(2, efatest.Mail{})
	w.mail(1, efatest.Mail{NoPush: true, Late: 100 * time.Second})
	w.fail(w.mail(1, efatest.Mail{})[0].EventID)
	w.mail(7, quiet)
	return nil
}

// lived is how a life went.
type lived struct {
	verdict
	points  []passed
	reached bool
	where   string
}

// live is one life, with a point at which something happens; or nowhere.
func live(ctx context.Context, s *store, at point, m mode) (l lived, err error) {
	w, err := newWorld(ctx, s, setup{start: events.FromNow, page: 8, commit: 1})
	if err != nil {
		return l, err
	}
	defer w.srv.Close()
	w.mail(history, quiet)
	e := &ending{at: at}
	defer func() { l.points, l.reached, l.where = e.points, e.reached, e.where }()
	p, err := w.open(0, w.srv.Key(), e.hook)
	if err != nil {
		return l, err
	}
	w.atDoor.Store(p)
	acts := lives()
	if at.act >= 0 && !long() {
		acts = acts[:max(at.act+1, 3)] // what comes later has points of its own
	}
	for i, a := range acts {
		if p, err = w.perform(p, e, i, a, m); err != nil {
			return l, fmt.Errorf("%s: %w", a.name, err)
		}
	}
	w.heal()
	p.hook = nil // it lives on
	if err := p.rest(); err != nil {
		return l, err
	}
	l.verdict, err = p.judge()
	return l, errors.Join(err, p.settledDown(), violations(w.srv))
}

func violations(srv *efatest.Server) (err error) {
	for _, v := range srv.Violations() {
		err = errors.Join(err, errors.New(v))
	}
	return err
}

// perform does one act and returns the process that goes on.
func (w *world) perform(p *process, e *ending, i int, a act, m mode) (*process, error) {
	e.begins(i, true)
	if a.before != nil {
		if err := a.before(w); err != nil {
			return nil, err
		}
	}
	e.begins(i, false)
	if p.hook == nil { // the one that took over
		return p, a.do(p)
	}
	if m == alone || i != e.at.act {
		err := a.do(p)
		if e.alive() {
			return p, err
		}
		return w.takeOver(a)
	}
	return w.performBoth(p, e, a, m)
}

// takeOver is a process that starts and does an act.
func (w *world) takeOver(a act) (*process, error) {
	p, err := w.open(0, w.srv.Key(), nil)
	if err != nil {
		return nil, err
	}
	w.atDoor.Store(p)
	if err := p.promised(); err != nil {
		return nil, err
	}
	return p, a.do(p)
}

// performBoth is an act with a second process.
func (w *world) performBoth(p *process, e *ending, a act, m mode) (*process, error) {
	second, err := w.open(1, w.srv.Key(), nil)
	if err != nil {
		return nil, err
	}
	p.rival, second.rival = true, true
	if m == stalled {
		return second, w.performStalled(p, second, e, a)
	}
	var sweeping sync.WaitGroup
	var sweepErr error
	sweeping.Go(func() {
		if sweepErr = second.sweeper.Attach(w.ctx); sweepErr == nil {
			_, sweepErr = second.sweep()
		}
	})
	err = a.do(p)
	if e.die() && err != nil { // it never came to the point
		return nil, err
	}
	w.atDoor.Store(second)
	sweeping.Wait()
	if sweepErr != nil {
		return nil, fmt.Errorf("the second process: %w", sweepErr)
	}
	return second, errors.Join(second.promised(), a.do(second))
}

// performStalled has the second process do the act while the first stands
// still, and new mail come before it wakes up. What becomes of it is all the
// same.
func (w *world) performStalled(first, second *process, e *ending, a act) error {
	e.stalls(func() error {
		w.atDoor.Store(second)
		err := a.do(second)
		w.mail(1, quiet)
		return err
	})
	err := a.do(first)
	e.die()
	if !e.reached {
		return fmt.Errorf("%w: %w", errNotReached, err)
	}
	return errors.Join(e.stallErr, second.promised(), sweepOnce(second))
}

var errNotReached = errors.New("the point was not reached")

// promised looks at what a process left behind, wherever it ended: everything
// up to the cursor that was shown, and up to the settled position everything,
// has had its effect or is parked.
func (p *process) promised() error {
	pos, err := p.inbox.Position(p.ctx)
	if err != nil {
		return err
	}
	done, err := p.store.took(p.ctx, p.stream)
	if err != nil {
		return err
	}
	parked, err := p.inbox.Parked(p.ctx, "", 0)
	for _, ev := range parked {
		done[ev.ID] = append(done[ev.ID], ev.Due)
	}
	for _, e := range p.record() {
		seq := events.Cursor(e.Sequence)
		passed := seq <= pos.Settled || seq <= pos.Cursor && !p.wasLate[e.ID]
		if n := len(done[e.ID]); seq > pos.Attached && passed && n != 1 && !p.excused[e.ID] {
			err = errors.Join(err, fmt.Errorf("event %d was passed and handled or parked %d times: %+v", seq, n, pos))
		}
	}
	return err
}

// settledDown looks at what must stand in the store at the end of a life.
func (p *process) settledDown() error {
	s, err := p.inbox.Status(p.ctx)
	if err != nil {
		return err
	}
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(s.Attached != history, "attached at %s", s.Attached)
	wrong(int64(s.Cursor) != p.srv.Head(), "the cursor is %s, the head %d", s.Cursor, p.srv.Head())
	wrong(s.Settled > s.Cursor, "settled at %s, above the cursor %s", s.Settled, s.Cursor)
	wrong(s.Lost.Cursor != p.loss.Cursor || s.Lost.Oldest != p.loss.Oldest, "the loss after %s up to %s was told, not %+v", s.Lost.Cursor, s.Lost.Oldest, p.loss)
	wrong(s.Parked+s.Failed > 0, "%d events are parked", s.Parked+s.Failed)
	for _, d := range p.srv.Deliveries() {
		wrong(d.State != efatest.StateSucceeded && len(d.Attempts) < 8, "delivery of %s is %s", d.EventID, d.State)
	}
	return errors.Join(errs...)
}
