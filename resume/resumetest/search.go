package resumetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
)

// frontier are the schedules still to run, those with fewest preemptions
// first.
type frontier struct {
	mu      sync.Mutex
	cond    sync.Cond
	open    [][]branch // by preemptions
	busy    int        // runs under way, which may find more
	left    int        // runs still allowed
	stopped bool
	rng     *rand.Rand // which first, of those with equally many preemptions
}

func newFrontier(bound, runs int, seed uint64) *frontier {
	f := &frontier{open: make([][]branch, bound+1), left: runs, rng: rand.New(rand.NewPCG(seed, 1))}
	f.cond.L = &f.mu
	f.open[0] = []branch{{}}
	return f
}

// next waits for a schedule to run; false once there is none.
func (f *frontier) next() (branch, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if f.stopped {
			return branch{}, false
		}
		for i := range f.open {
			if n := len(f.open[i]); n > 0 {
				if f.left == 0 {
					f.stopped = true
					f.cond.Broadcast()
					return branch{}, false
				}
				b := f.take(i, f.rng.IntN(n))
				f.left--
				f.busy++
				return b, true
			}
		}
		if f.busy == 0 {
			f.stopped = true
			f.cond.Broadcast()
			return branch{}, false
		}
		f.cond.Wait()
	}
}

func (f *frontier) take(preemptions, i int) branch {
	list := f.open[preemptions]
	b := list[i]
	list[i] = list[len(list)-1]
	f.open[preemptions] = list[:len(list)-1]
	return b
}

func (f *frontier) found(more []branch, stop bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	f.stopped = f.stopped || stop
	for _, b := range more {
		f.open[b.preemptions] = append(f.open[b.preemptions], b)
	}
	f.cond.Broadcast()
}

// schedules runs every schedule up to the bound.
func (x *exploration) schedules() {
	f := newFrontier(x.options.Preemptions, x.options.Runs, x.options.Seed)
	parallel(x.options.Runs, func() {
		for {
			b, ok := f.next()
			if !ok {
				return
			}
			var p played
			x.run(func(r *rig) (v *violation, err error) {
				p, v, err = scheduleRun(r, ending{}, follower(b.prefix))
				return v, cmp.Or(err, followed(b.prefix, p, v))
			})
			x.ran(Report{Schedules: 1, Deadlocks: p.deadlocks})
			if b == (branch{}) {
				x.first = p // nobody else runs yet
			}
			f.found(branches(p.log, b, x.options.Preemptions), x.enough())
		}
	})
	x.report.Complete = f.complete()
}

// followed is nil if a run went as its schedule says.
func followed(prefix schedule, p played, v *violation) error {
	went := scheduleOf(p.log)
	if v != nil || len(went) == 0 || strings.HasPrefix(string(went), string(prefix)) {
		return nil
	}
	return fmt.Errorf("a run is not the same each time: to follow %s, it went %s; does the step keep something outside its state?", prefix, went)
}

// complete is the bound of which no schedule is left.
func (f *frontier) complete() int {
	for i, left := range f.open {
		if len(left) > 0 {
			return i - 1
		}
	}
	return len(f.open) - 1
}

// wander runs random schedules, each by a seed of its own.
func (x *exploration) wander() {
	if x.options.Random < 0 || len(x.first.passed) == 0 {
		return
	}
	seeds := make(chan uint64, x.options.Random)
	for i := range x.options.Random {
		seeds <- x.options.Seed + uint64(i) //nolint:gosec // not negative
	}
	close(seeds)
	parallel(x.options.Random, func() {
		for seed := range seeds {
			if x.enough() {
				return
			}
			rng := rand.New(rand.NewPCG(seed, 0))
			c := endingBy(rng, x.first.passed)
			var p played
			x.run(func(r *rig) (v *violation, err error) {
				if p, v, err = scheduleRun(r, c, wanderer(rng)); v != nil {
					v.Detail += "\n  seed: RESUMETEST_SEED=" + strconv.FormatUint(seed, 10)
				}
				return v, err
			})
			ran := Report{Schedules: 1, Deadlocks: p.deadlocks}
			if p.crashed {
				ran.Crashed = 1
			}
			x.ran(ran)
		}
	})
}
