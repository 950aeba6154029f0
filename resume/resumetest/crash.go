package resumetest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// crasher ends the process at its n-th boundary: from there on, everything in
// it fails.
type crasher struct {
	w       *world
	at      int        // never at 0
	mu      sync.Mutex // an actor may run a whole engine
	passed  int
	crashed bool
	where   string
	actor   *World
}

func (c *crasher) hook(point string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return errCrash
	}
	if point == afterCommit {
		if err := c.w.afterCommit(c.actor); err != nil {
			return err
		}
	}
	if c.passed++; c.passed == c.at {
		c.crashed, c.where = true, point
		return errCrash
	}
	return nil
}

const afterCommit = "after commit"

// watching is the hook of a process that does not crash.
func watching(w *world, a **World) sqldb.Hook {
	return func(point string) error {
		if point == afterCommit {
			return w.afterCommit(*a)
		}
		return nil
	}
}

// crashRun lets the actors act one after another, in a process that ends at
// the n-th boundary. Another process then does all that is due and takes over,
// beginning with the actor that was interrupted. It returns the number of
// boundaries that were passed.
func crashRun(r *rig, n int) (passed int, v *violation, err error) {
	w, err := begin(r)
	if err != nil {
		return 0, nil, err
	}
	defer w.srv.Close()
	c := &crasher{w: w, at: n}
	if err = w.setUp(); err == nil {
		err = w.crashActs(c)
	}
	if err == nil {
		err = w.finish()
	}
	return c.passed, w.explain(c), w.outcome(err)
}

// crashActs lets the actors act, and then the program do what is due by
// itself, in the process that ends.
func (w *world) crashActs(c *crasher) error {
	for _, actor := range append(slices.Clone(w.rig.scenario.Actors), Actor{"rest", (*World).Settle}) {
		if err := w.crashAct(actor, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) crashAct(actor Actor, c *crasher) error {
	if !c.crashed {
		a, err := w.as(actor.Name, 0, c.hook)
		if err != nil {
			return err
		}
		c.actor = a
		err = guarded(a, actor.Do)
		if !c.crashed {
			return w.acted(actor, err)
		}
		if err := w.settle(); err != nil {
			return err
		}
	}
	return w.again(actor)
}

// again lets an actor whose process has ended act in another one.
func (w *world) again(actor Actor) error {
	w.crashed = true
	a, err := w.restarted(actor.Name)
	if err != nil {
		return err
	}
	// What the first life did may have been done, or undone by what came after.
	if err := guarded(a, actor.Do); err != nil && !errors.Is(err, resume.Err) && w.failed() == nil {
		return w.acted(actor, err)
	}
	return nil
}

// acted takes an actor's error for a violation: it did what the scenario calls
// possible.
func (w *world) acted(actor Actor, err error) error {
	if err != nil {
		w.fail("the scenario", "%s: %v", actor.Name, err)
		return w.failed()
	}
	return nil
}

func begin(r *rig) (*world, error) {
	w, err := newWorld(r)
	if err != nil {
		return nil, err
	}
	r.renew()
	r.world.Store(w)
	return w, r.store.reset(w.context())
}

// restarted is the process that takes over. It is no actor's.
func (w *world) restarted(actor string) (*World, error) {
	var a *World
	a, err := w.as(actor, len(w.rig.scenario.Actors), watching(w, &a))
	return a, err
}

func (w *world) setUp() error {
	if w.rig.scenario.Setup == nil {
		return nil
	}
	a, err := w.restarted("setup")
	if err != nil {
		return err
	}
	if err := guarded(a, w.rig.scenario.Setup); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	return nil
}

func (w *world) settle() error {
	a, err := w.restarted("rest")
	if err != nil {
		return err
	}
	return a.Settle()
}

// finish brings the run to rest and checks it.
func (w *world) finish() error {
	if err := w.settle(); err != nil {
		return err
	}
	if err := w.watch(nil, true); err != nil {
		return err
	}
	if w.rig.scenario.Check == nil {
		return nil
	}
	a, err := w.restarted("check")
	if err != nil {
		return err
	}
	if err := guarded(a, w.rig.scenario.Check); err != nil {
		w.fail("the scenario's own check", "%v", err)
	}
	return nil
}

func (w *world) explain(c *crasher) *violation {
	v := w.failed()
	if v != nil {
		v.Replay = w.replay("crash", strconv.Itoa(c.at))
		if c.crashed {
			v.Trace = []string{"crash at boundary " + strconv.Itoa(c.at) + ", " + short(c.where)}
		}
		v.Trace = append(v.Trace, w.story()...)
	}
	return v
}

// outcome is the error of a run. A violation is reported by itself, whatever
// came of it.
func (w *world) outcome(err error) error {
	if w.failed() != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(err, w.trouble)
}

// guarded calls a function of the user's, in a goroutine that it may end: with
// a panic, or a require of a test's.
func guarded(w *World, fn func(*World) error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			} else if !returned {
				err = errors.New("it ended its goroutine, as FailNow does")
			}
		}()
		err = fn(w)
		returned = true
	}()
	<-done
	return err
}
