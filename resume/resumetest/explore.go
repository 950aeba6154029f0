package resumetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/replywake/replywake/client/efa/efatest"
)

// Options bounds an exploration. The zero value is the default.
type Options struct {
	// Postgres is the URL of a database to explore on, beside SQLite. A schema
	// is made in it and dropped. Without one only SQLite is explored.
	Postgres string
	// NoSQLite leaves SQLite out.
	NoSQLite bool

	// Preemptions is the bound of the exhaustive search: schedules in which an
	// actor that could go on has to wait at most so often. Default 1, or 2
	// where REPLYWAKE_EXPLORE is longest. -1 explores no schedule.
	Preemptions int
	// Random schedules beyond the bound; in every other one of them a process ends
	// on the way too. Default 20, or 40 where it is long, 200 where it is longest;
	// -1 is none.
	Random int
	// Stride: only every n-th crash point, from one by chance. Default 1; -1
	// explores none.
	Stride int
	// Runs is the most schedules of the exhaustive search. Of more, those with
	// fewest preemptions and among them some by chance are run, and the report
	// says that it was cut off. Default 400, or 2,000 where it is long or longest.
	Runs int

	// Seed is for all that is by chance; default RESUMETEST_SEED, or by chance.
	Seed uint64
	// Replay runs one violation again: what was printed behind "replay:".
	// Default RESUMETEST_REPLAY.
	Replay string

	// Done, if set, gets what was done on each store, from several goroutines: to
	// add up the explorations of many scenarios.
	Done func(Report)
}

func (o Options) withDefaults() Options {
	depth := 0
	if Long() {
		depth = 1
		if os.Getenv("REPLYWAKE_EXPLORE") == longest {
			depth = 2
		}
	}
	set := func(v *int, by [3]int) {
		if *v == 0 {
			*v = by[depth]
		}
	}
	set(&o.Preemptions, [3]int{1, 1, 2})
	set(&o.Random, [3]int{20, 40, 200})
	set(&o.Stride, [3]int{1, 1, 1})
	set(&o.Runs, [3]int{400, 2000, 2000})
	if o.Seed == 0 {
		o.Seed, _ = strconv.ParseUint(os.Getenv("RESUMETEST_SEED"), 10, 64)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.Replay == "" {
		o.Replay = os.Getenv("RESUMETEST_REPLAY")
	}
	return o
}

const longest = "longest"

// Long says whether a long exploration is asked for: REPLYWAKE_EXPLORE is long,
// or longest, which takes hours for many scenarios.
func Long() bool {
	how := os.Getenv("REPLYWAKE_EXPLORE")
	return how == "long" || how == longest
}

// Report is what an exploration of a scenario did on one store. It prints as
// one line.
type Report struct {
	CrashPoints int
	Boundaries  int // of which each could have been a crash point
	Schedules   int
	Crashed     int // schedules in which a process ended too
	Deadlocks   int // that the database had to end
	Bound       int // of preemptions
	Complete    int // every schedule with at most so many was run; below Bound the search was cut off
	Violations  int
}

func (r Report) String() string {
	how := fmt.Sprintf(" (all of bound %d", r.Complete)
	switch {
	case r.Schedules == 0:
		how = ""
	case r.Complete < 0:
		how = " (cut off in bound 0"
	case r.Complete < r.Bound:
		how += fmt.Sprintf(", cut off in %d", r.Complete+1)
	}
	if r.Crashed > 0 {
		how += fmt.Sprintf(", %s with a crash", thousands(r.Crashed))
	}
	if how != "" {
		how += ")"
	}
	points := thousands(r.CrashPoints)
	if r.CrashPoints < r.Boundaries {
		points += " of " + thousands(r.Boundaries)
	}
	s := fmt.Sprintf("explored: %s crash points, %s schedules%s, %d violations", points, thousands(r.Schedules), how, r.Violations)
	if r.Deadlocks > 0 {
		s += fmt.Sprintf(", %d deadlocks", r.Deadlocks)
	}
	return s
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Explore runs a scenario with a crash at every boundary, and in every order of
// its actors up to a bound, and fails the test where a promise does not hold.
// See [Invariants] for the promises. The stores are subtests that run in
// parallel, as [testing.T.Parallel] says: it returns before they begin. Several
// runs go on at once, so functions of the scenario share no variables; what one
// needs of another is in the world, such as in [World.Provider]'s record.
func Explore(t *testing.T, s Scenario, o Options) {
	t.Helper()
	if err := s.check(); err != nil {
		t.Fatalf("resumetest: %v", err)
	}
	o = o.withDefaults()
	for _, kind := range o.stores() {
		t.Run(s.Name+"/"+kind, func(t *testing.T) {
			t.Parallel()
			r, violations := explore(t, s, o, kind)
			for _, v := range violations {
				t.Error(v)
			}
			t.Log(r)
			if o.Done != nil {
				o.Done(r)
			}
		})
	}
}

func (o Options) stores() []string {
	var out []string
	if !o.NoSQLite {
		out = append(out, "sqlite")
	}
	if o.Postgres != "" {
		out = append(out, "postgres")
	}
	return out
}

// explore explores a scenario on one kind of store.
func explore(tb testing.TB, s Scenario, o Options, kind string) (Report, []*violation) {
	tb.Helper()
	x := &exploration{tb: tb, scenario: s, options: o, kind: kind, report: Report{Bound: o.Preemptions, Complete: -1}}
	if o.Replay != "" {
		x.again(o.Replay)
		return x.report, x.violations
	}
	x.crashes()
	if o.Preemptions >= 0 && len(s.Actors) > 1 && len(x.violations) == 0 {
		x.schedules()
		x.wander()
		x.alike()
	}
	return x.report, x.violations
}

// alike runs again what was run first, on a rig that other runs have used. Were
// it not the same, nothing that is found would be found again.
func (x *exploration) alike() {
	if len(x.violations) > 0 || len(x.first.log) == 0 {
		return
	}
	x.run(func(r *rig) (*violation, error) {
		p, v, err := scheduleRun(r, ending{}, follower(""))
		return v, cmp.Or(err, followed(scheduleOf(x.first.log), p, v))
	})
}

// exploration is the exploring of one scenario on one kind of store.
type exploration struct {
	tb       testing.TB
	scenario Scenario
	options  Options
	kind     string

	mu         sync.Mutex
	rigs       []*rig // not in use
	first      played // the first schedule
	report     Report
	violations []*violation
}

// run gives a rig to one run at a time, and notes what came of it.
func (x *exploration) run(fn func(r *rig) (*violation, error)) {
	r, err := x.rig()
	var v *violation
	if err == nil {
		v, err = fn(r)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if r != nil {
		x.rigs = append(x.rigs, r)
	}
	if err != nil {
		x.tb.Errorf("resumetest: %s on %s: %v", x.scenario.Name, x.kind, err)
	}
	if v != nil {
		v.Scenario, v.Store = x.scenario.Name, x.kind
		x.violations = append(x.violations, v)
		x.report.Violations++
	}
}

func (x *exploration) rig() (*rig, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.rigs); n > 0 {
		r := x.rigs[n-1]
		x.rigs = x.rigs[:n-1]
		return r, nil
	}
	return x.newRig()
}

func (x *exploration) newRig() (*rig, error) {
	cfg := x.scenario.Provider
	cfg.InMemory, cfg.Manual, cfg.Seed = true, true, 1
	srv, err := efatest.Start(cfg)
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	mail, err := clientOf(srv)
	if err != nil {
		return nil, err
	}
	r := &rig{scenario: &x.scenario, config: x.scenario.Config, stream: mail.Stream()}
	inboxes := cfg.Inboxes
	if len(inboxes) == 0 {
		inboxes = map[string]string{srv.Inbox(): srv.Address(srv.Inbox())}
	}
	r.config.Inboxes = map[string][]string{}
	for id, address := range inboxes {
		r.config.Inboxes[id] = []string{address}
	}
	if x.kind == "postgres" {
		r.store, err = newPostgres(x.tb, x.options.Postgres, x.scenario.Tables)
	} else {
		r.store, err = newLite(x.tb, x.scenario.Tables)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// enough says whether there is no use in exploring on.
func (x *exploration) enough() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.violations) >= 3 || x.tb.Failed()
}

// parallel calls fn from several goroutines, for n runs together. Each needs a
// database of its own, which is worth making only for some runs.
func parallel(n int, fn func()) {
	var wg sync.WaitGroup
	for range min(max(n/8, 1), max(2, runtime.GOMAXPROCS(0))) {
		wg.Go(fn)
	}
	wg.Wait()
}

// crashes runs the scenario once to count its boundaries, and then with a crash
// at each.
func (x *exploration) crashes() {
	x.run(func(r *rig) (v *violation, err error) {
		x.report.Boundaries, v, err = crashRun(r, 0)
		return v, err
	})
	if x.enough() || len(x.violations) > 0 || x.options.Stride < 0 {
		return
	}
	var next atomic.Int64
	stride := x.options.Stride
	from := 1 + int(x.options.Seed%uint64(stride)) //nolint:gosec // not negative
	parallel(x.report.Boundaries/stride, func() {
		for !x.enough() {
			n := int(next.Add(1)-1)*stride + from
			if n > x.report.Boundaries {
				return
			}
			x.run(func(r *rig) (v *violation, err error) {
				passed, v, err := crashRun(r, n)
				return v, cmp.Or(err, reached(n, passed, v))
			})
			x.ran(Report{CrashPoints: 1})
		}
	})
}

// reached is nil if a run came to the boundary at which its process ends.
func reached(n, passed int, v *violation) error {
	if v != nil || passed >= n {
		return nil
	}
	return fmt.Errorf("a run is not the same each time: to end at boundary %d, it passed %d; does the step keep something outside its state?", n, passed)
}

func (x *exploration) ran(r Report) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.report.CrashPoints += r.CrashPoints
	x.report.Schedules += r.Schedules
	x.report.Crashed += r.Crashed
	x.report.Deadlocks += r.Deadlocks
}

// again replays one run.
func (x *exploration) again(text string) {
	parts := strings.Split(text, "/")
	at := len(parts) - 3 // a name may have slashes
	if at < 1 {
		x.tb.Fatalf("resumetest: to replay %q: want scenario/store/mode/run, as it was printed", text)
	}
	if name := strings.Join(parts[:at], "/"); name != x.scenario.Name || parts[at] != x.kind {
		x.tb.Skipf("resumetest: %s is another scenario's or store's", text)
	}
	mode, what := parts[at+1], parts[at+2]
	x.run(func(r *rig) (v *violation, err error) {
		switch mode {
		case "crash":
			var n int
			if n, err = strconv.Atoi(what); err == nil {
				var passed int
				passed, v, err = crashRun(r, n)
				err = cmp.Or(err, reached(n, passed, v))
			}
		case "schedule":
			var s schedule
			var c ending
			var p played
			if s, c, err = parseRun(what); err == nil {
				p, v, err = scheduleRun(r, c, follower(s))
				err = cmp.Or(err, followed(s, p, v))
			}
		default:
			err = fmt.Errorf("to replay %q: want crash or schedule, not %q", text, mode)
		}
		return v, err
	})
}
