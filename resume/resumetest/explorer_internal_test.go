package resumetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

func TestScheduleText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schedule{"": "", "a": "a", "a3b": "aaab", "ab2a10": "abbaaaaaaaaaa"} {
		got, err := parseSchedule(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"3", "A", "a-1"} {
		_, err := parseSchedule(text)
		require.Error(t, err, text)
	}
}

// Two actors of two stops each: every order of theirs is found, each once.
func TestBranchesAreComplete(t *testing.T) {
	t.Parallel()
	run := func(s schedule) (log []decision) {
		left, last := []int{2, 2}, -1
		pick := follower(s)
		for left[0]+left[1] > 0 {
			var enabled []int
			for i, n := range left {
				if n > 0 {
					enabled = append(enabled, i)
				}
			}
			i := pick(enabled, last)
			log = append(log, decision{enabled: enabled, chosen: i, forced: last < 0 || left[last] == 0})
			left[i]--
			last = i
		}
		return log
	}
	for bound, want := range []int{2, 4, 6} {
		seen := map[schedule]bool{}
		for open := []branch{{}}; len(open) > 0; open = open[1:] {
			log := run(open[0].prefix)
			require.False(t, seen[scheduleOf(log)], "twice: %s", scheduleOf(log))
			seen[scheduleOf(log)] = true
			open = append(open, branches(log, open[0], bound)...)
		}
		require.Len(t, seen, want, "bound %d", bound)
	}
}

func TestRunText(t *testing.T) {
	t.Parallel()
	s, c, err := parseRun("a3b!b7")
	require.NoError(t, err)
	require.Equal(t, schedule("aaab"), s)
	require.Equal(t, ending{actor: 1, at: 7}, c)
	require.Equal(t, "a3b!b7", s.String()+c.String())
	for _, text := range []string{"a!", "a!b", "a!7", "a!b0", "a!bx"} {
		_, _, err := parseRun(text)
		require.Error(t, err, text)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	require.Equal(t, "explored: 412 crash points, 3,180 schedules (all of bound 2), 0 violations",
		Report{CrashPoints: 412, Boundaries: 412, Schedules: 3180, Bound: 2, Complete: 2}.String())
	require.Equal(t, "explored: 2 of 1,000 crash points, 1,234,567 schedules (all of bound 1, cut off in 2, 9 with a crash), 1 violations, 3 deadlocks",
		Report{CrashPoints: 2, Boundaries: 1000, Schedules: 1234567, Crashed: 9, Bound: 2, Complete: 1, Deadlocks: 3, Violations: 1}.String())
	require.Equal(t, "explored: 0 crash points, 3 schedules (cut off in bound 0), 0 violations", Report{Schedules: 3, Bound: 1, Complete: -1}.String())
	require.Equal(t, "explored: 7 crash points, 0 schedules, 0 violations", Report{CrashPoints: 7, Boundaries: 7, Bound: 1, Complete: -1}.String())
}

// A search that is cut off says what it has completed.
func TestFrontierKnowsWhatIsComplete(t *testing.T) {
	t.Parallel()
	for runs, want := range map[int]int{1: -1, 2: 0, 3: 0, 5: 1} {
		f := newFrontier(1, runs, 1)
		more := [][]branch{{{"a", 0}, {"b", 1}, {"c", 1}}, {{"d", 1}}} // of the first run and the second
		for {
			b, ok := f.next()
			if !ok {
				break
			}
			_ = b
			var found []branch
			if len(more) > 0 {
				found, more = more[0], more[1:]
			}
			f.found(found, false)
		}
		require.Equal(t, want, f.complete(), "%d runs", runs)
	}
}

// The clock moves every time that is stored.
func TestClocksAreAllTimes(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	script, err := resume.SQL(db.Schema)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), script)
	require.NoError(t, err)
	rows, err := db.Pool.Query(t.Context(), `select table_name, column_name from information_schema.columns
		where table_schema = $1 and data_type like 'timestamp%' order by ordinal_position`, db.Schema)
	require.NoError(t, err)
	want := clocks{}
	for rows.Next() {
		var table, column string
		require.NoError(t, rows.Scan(&table, &column))
		want[table] = append(want[table], column)
	}
	require.NoError(t, rows.Err())
	got, err := clocksOf()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// outOfOrder is a scenario whose check finds one order wrong.
func outOfOrder() Scenario {
	wait := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(time.Hour), nil }
	return Scenario{
		Name: "second-comes-first", Step: wait,
		Actors: []Actor{
			{"first", func(w *World) error { return w.Start(resume.Start{ID: "first", Counterparty: "a@example.com"}) }},
			{"second", func(w *World) error { return w.Start(resume.Start{ID: "second", Counterparty: "a@example.com"}) }},
		},
		Check: func(w *World) error {
			first, err := w.Engine().Timeline(w.Context(), "first")
			if err != nil || len(first) == 0 {
				return err
			}
			second, err := w.Engine().Timeline(w.Context(), "second")
			if err == nil && len(second) > 0 && second[0].At.Before(first[0].At) {
				err = errors.New("the second came first")
			}
			return err
		},
	}
}

// What a scenario's own check finds wrong in one order only is found, and its
// word for replaying leads there again.
func TestViolationReplays(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := Options{Stride: -1, Random: -1, Postgres: testdb.URL(t)}.withDefaults()
			_, violations := explore(t, outOfOrder(), o, kind)
			require.NotEmpty(t, violations)
			o.Replay = violations[0].Replay
			_, violations = explore(t, outOfOrder(), o, kind)
			require.NotEmpty(t, violations, o.Replay)
			o.Replay = "second-comes-first/" + kind + "/schedule/a"
			r, _ := explore(t, outOfOrder(), o, kind)
			require.Zero(t, r.Violations)
		})
	}
}

var seedLine = regexp.MustCompile(`RESUMETEST_SEED=(\d+)`)

// The seed that is printed with a random schedule leads there again, and so
// does its word for replaying, where a process ended on the way too.
func TestSeedReplays(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for from, crashes := uint64(1), 0; crashes == 0; from += 40 {
				// Of the exhaustive search only the first schedule, in which all is well.
				o := Options{Stride: -1, Runs: 1, Random: 40, Seed: from, Postgres: testdb.URL(t)}.withDefaults()
				_, violations := explore(t, outOfOrder(), o, kind)
				require.NotEmpty(t, violations)
				for _, v := range violations {
					again := o
					again.Random = 1
					again.Seed, _ = strconv.ParseUint(seedLine.FindStringSubmatch(v.Detail)[1], 10, 64)
					_, same := explore(t, outOfOrder(), again, kind)
					require.Len(t, same, 1, v.Detail)
					require.Equal(t, v.Replay, same[0].Replay)
					again.Replay = v.Replay
					_, same = explore(t, outOfOrder(), again, kind)
					require.Len(t, same, 1, v.Replay)
					crashes += strings.Count(v.Replay, "!")
				}
			}
		})
	}
}

// What an engine remembers of one run is no part of the next: how much mail of
// an inbox it has read within a minute, and that its credential was refused.
func TestRunsBeginAlike(t *testing.T) {
	t.Parallel()
	wait := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
	read := Actor{"read", func(w *World) error {
		for range mostReads + 1 {
			if err := w.InboundAndPush(efatest.Mail{From: "who@example.com", Text: "x"}); err != nil {
				return err
			}
			if err := w.Match(); err != nil {
				return err
			}
		}
		return nil
	}}
	refused := Actor{"refused", func(w *World) error {
		w.Provider().RevokeKey(w.Provider().Key())
		w.Inbound(efatest.Mail{From: "who@example.com", Text: "x"})
		return w.PushEvent(events.Event{ID: "e", Kind: events.KindReceived, Inbox: w.Provider().Inbox(), Thread: "t", Message: "m"})
	}}
	for _, actor := range []Actor{read, Do("refused", refused.Do, (*World).Match)} {
		x := &exploration{tb: t, scenario: Scenario{Name: actor.Name, Step: wait, Actors: []Actor{actor}}, options: Options{}.withDefaults(), kind: "sqlite"}
		r, err := x.rig()
		require.NoError(t, err)
		_, err = begin(r)
		require.NoError(t, err)
		p, err := r.processOf(0)
		require.NoError(t, err)
		a, err := r.world.Load().as(actor.Name, 0, nil)
		require.NoError(t, err)
		require.NoError(t, actor.Do(a))
		_, err = begin(r)
		require.NoError(t, err)
		next, err := r.processOf(0)
		require.NoError(t, err)
		require.NotSame(t, p, next, actor.Name)
		_, err = begin(r)
		require.NoError(t, err)
		same, err := r.processOf(0)
		require.NoError(t, err)
		require.Same(t, next, same, "kept where there is nothing to remember")
	}
}

// Two who take two locks in opposite orders are found, and nobody waits for
// the database to end one.
func TestDeadlockIsFound(t *testing.T) {
	t.Parallel()
	locks := func(names ...string) func(*World) error {
		return func(w *World) error {
			return w.process.db.Tx(w.Context(), func(tx sqldb.Tx) error {
				for _, name := range names {
					if _, err := tx.Exec(w.Context(), "select pg_advisory_xact_lock(hashtext($1))", w.process.dialect.prefix+name); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	wait := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
	s := Scenario{Name: "deadlock", Step: wait, Actors: []Actor{{"one", locks("a", "b")}, {"two", locks("b", "a")}}}
	o := Options{Stride: -1, Random: -1, Postgres: testdb.URL(t)}.withDefaults()
	_, violations := explore(t, s, o, "postgres")
	require.NotEmpty(t, violations)
	require.Contains(t, violations[0].Broken, "Locks")
}

// heard is a test that notes what it is told instead of failing.
type heard struct {
	testing.TB
	mu   sync.Mutex
	errs []string
}

func (h *heard) Fatalf(format string, args ...any) {
	h.Errorf(format, args...)
	runtime.Goexit()
}

func (h *heard) Errorf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, fmt.Sprintf(format, args...))
}

// An actor that does something else each time is told so: nothing that is found
// could be found again.
func TestScenarioThatVariesIsToldSo(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var lives atomic.Int32
			s := Scenario{
				Name: "varies",
				Step: func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil },
				Actors: []Actor{
					Do("varies", func(w *World) error {
						for range lives.Add(1) {
							if err := w.Start(resume.Start{Counterparty: "a@example.com"}); err != nil {
								return err
							}
						}
						return nil
					}),
					Do("other", (*World).Match),
				},
			}
			h := &heard{TB: t}
			o := Options{Stride: -1, Runs: 3, Random: -1, Postgres: testdb.URL(t)}.withDefaults()
			_, violations := explore(h, s, o, kind)
			require.Empty(t, violations)
			require.Len(t, h.errs, 1)
			require.Contains(t, h.errs[0], "not the same each time")
		})
	}
}

// A require that fails, or a panic, in any function of the scenario is told with
// the word that replays it, and nothing hangs.
func TestWhatEndsAGoroutineIsTold(t *testing.T) {
	t.Parallel()
	ends := map[string]func(){"panic": func() { panic("on purpose") }, "FailNow": runtime.Goexit}
	for name, end := range ends {
		once := func() func(*World) error { // not in the run that counts
			var runs atomic.Int32
			return func(*World) error {
				if runs.Add(1) > 1 {
					end()
				}
				return nil
			}
		}
		none := func(*World) error { return nil }
		for where, s := range map[string]Scenario{
			"setup": {Setup: once(), Actors: []Actor{{"a", none}, {"b", none}}},
			"actor": {Actors: []Actor{{"a", once()}, {"b", none}}},
			"check": {Check: once(), Actors: []Actor{{"a", none}, {"b", none}}},
		} {
			t.Run(where+" "+name, func(t *testing.T) {
				t.Parallel()
				s.Name, s.Step = where, func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
				h := &heard{TB: t}
				_, violations := explore(h, s, Options{Stride: -1, Random: -1}.withDefaults(), "sqlite")
				said := strings.Join(h.errs, "\n")
				for _, v := range violations {
					said += v.Error()
				}
				require.Contains(t, said, map[string]string{"panic": "on purpose", "FailNow": "FailNow"}[name])
				if where != "setup" {
					require.Contains(t, said, "RESUMETEST_REPLAY='"+where+"/sqlite/schedule/")
				}
			})
		}
	}
}

// What the cursor shows late, pushed before or not, has arrived at rest.
func TestLateEventsArrive(t *testing.T) {
	t.Parallel()
	for _, pushed := range []bool{false, true} {
		for _, kind := range []string{"sqlite", "postgres"} {
			s := Scenario{
				Name: "late",
				Step: func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil },
				Setup: func(w *World) error {
					late := w.Inbound(efatest.Mail{From: "a@example.com", Text: "late", Late: time.Hour})
					w.Inbound(efatest.Mail{From: "b@example.com", Text: "at once"})
					if pushed {
						return errors.Join(w.Push(late.EventID), w.Sweep())
					}
					return w.Sweep()
				},
				Actors: []Actor{Do("matcher", (*World).Match)},
				Check: func(w *World) error {
					page, err := w.mail.Source().Page(w.Context(), 0)
					if err == nil && len(page.Events) != 2 && !pushed {
						err = fmt.Errorf("%d events are shown", len(page.Events))
					}
					return err
				},
			}
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				r, violations := explore(t, s, Options{Stride: 9, Postgres: testdb.URL(t)}.withDefaults(), kind)
				require.Empty(t, violations)
				require.NotZero(t, r.CrashPoints)
			})
		}
	}
}

func TestScenarioIsChecked(t *testing.T) {
	t.Parallel()
	step := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
	none := func(*World) error { return nil }
	for name, s := range map[string]Scenario{
		"no step":    {Actors: []Actor{{"a", none}}},
		"twice":      {Step: step, Actors: []Actor{{"a", none}, {"a", none}}},
		"reserved":   {Step: step, Actors: []Actor{{"setup", none}}},
		"nothing":    {Step: step, Actors: []Actor{{"a", nil}}},
		"27 of them": {Step: step, Actors: make([]Actor, 27)},
	} {
		require.Error(t, s.check(), name)
	}
	require.NoError(t, (&Scenario{Step: step, Actors: []Actor{{"a", none}, {"b", none}}}).check())
}

// A word that replays nothing is no success.
func TestReplayOfNothingIsToldSo(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"crash", "second/comes/first/sqlite/crash/x", "second/comes/first/sqlite/crash/999", "second/comes/first/sqlite/sched/a", "second/comes/first/sqlite/schedule/A"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			s := outOfOrder()
			s.Name = "second/comes/first"
			h := &heard{TB: t}
			done := make(chan struct{})
			go func() { // Fatalf ends it
				defer close(done)
				explore(h, s, Options{Replay: word}.withDefaults(), "sqlite")
			}()
			<-done
			require.Len(t, h.errs, 1)
		})
	}
}

// An ID of a signal may have colons.
func TestSignalWithColons(t *testing.T) {
	t.Parallel()
	s := Scenario{
		Name: "colons",
		Step: func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil },
		Actors: []Actor{Do("signal",
			func(w *World) error { return w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com"}) },
			func(w *World) error { return w.Signal("w1", "payment:42", nil) },
		)},
	}
	_, violations := explore(t, s, Options{Stride: 5, Runs: 20, Random: 5}.withDefaults(), "sqlite")
	require.Empty(t, violations)
}

// A worker that does more after its run, in the same process, is no stale one.
func TestActorsGoOnAfterTheirRun(t *testing.T) {
	t.Parallel()
	s := Scenario{
		Name: "goes-on",
		Step: func(context.Context, *resume.Run) (resume.Next, error) {
			return resume.Send(client.Outgoing{To: []string{"a@example.com"}, Text: "?"}), nil
		},
		Setup: func(w *World) error { return w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com"}) },
		Actors: []Actor{Do("everything",
			func(w *World) error { _, err := w.Engine().Once(w.Context(), resume.JobWork); return err },
			func(w *World) error { _, err := w.Engine().Once(w.Context(), resume.JobSend); return err },
		)},
	}
	_, violations := explore(t, s, Options{Stride: 5, Runs: 20, Random: 5}.withDefaults(), "sqlite")
	require.Empty(t, violations)
}

// A step's own writes stand where its run does, in tables that each run finds
// empty.
func TestTablesOfTheScenario(t *testing.T) {
	t.Parallel()
	s := Scenario{
		Name:   "tables",
		Tables: `create table orders (workflow text primary key); create table "Lines" (workflow text references orders)`,
		Step: func(_ context.Context, run *resume.Run) (resume.Next, error) {
			const orders, lines = "insert into orders values ('w1')", `insert into "Lines" values ('w1')`
			run.InPostgres(func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, orders+"; "+lines)
				return err
			})
			return resume.Done(), nil
		},
		Setup:  func(w *World) error { return w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com"}) },
		Actors: []Actor{{"worker", (*World).Work}, {"other", (*World).Work}},
		Check: func(w *World) error {
			var n int
			err := w.Postgres().QueryRow(w.Context(), `select count(*) from orders natural join "Lines"`).Scan(&n)
			if err == nil && n != 1 {
				err = fmt.Errorf("%d orders", n)
			}
			return err
		},
	}
	lite := s
	lite.Step = func(_ context.Context, run *resume.Run) (resume.Next, error) {
		run.InSQL(func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `insert into orders values ('w1'); insert into "Lines" values ('w1')`)
			return err
		})
		return resume.Done(), nil
	}
	lite.Check = func(w *World) error {
		var n int
		err := w.SQLite().QueryRowContext(w.Context(), `select count(*) from orders natural join "Lines"`).Scan(&n)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d orders", n)
		}
		return err
	}
	for kind, s := range map[string]Scenario{"postgres": s, "sqlite": lite} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, violations := explore(t, s, Options{Stride: 9, Runs: 20, Random: 5, Postgres: testdb.URL(t)}.withDefaults(), kind)
			require.Empty(t, violations)
			require.NotZero(t, r.Schedules)
			s.Tables = "create nonsense"
			h := &heard{TB: t}
			explore(h, s, Options{Postgres: testdb.URL(t)}.withDefaults(), kind)
			require.NotEmpty(t, h.errs)
			require.Contains(t, h.errs[0], "make the scenario's tables")
		})
	}
}

// isDone is a check that the workflow w1 has ended.
func isDone(w *World) error {
	row, err := w.Engine().Workflow(w.Context(), "w1")
	if err == nil && row.Status != resume.StatusDone {
		err = fmt.Errorf("w1 is %s", row.Status)
	}
	return err
}

// A worker that looks at a deadline before a sweep showed that nothing came puts
// it off; at rest it has fired.
func TestEarlyLookAtADeadlineIsNoViolation(t *testing.T) {
	t.Parallel()
	s := Scenario{
		Name: "early look",
		Step: func(_ context.Context, run *resume.Run) (resume.Next, error) { return resume.Done(), nil },
		Setup: func(w *World) error {
			return errors.Join(w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com", First: resume.Wait(time.Hour)}), w.Settle(), w.Jump(49*time.Hour))
		},
		Actors: []Actor{{"worker", (*World).Work}, {"sweep", (*World).Sweep}},
		Check:  isDone,
	}
	_, violations := explore(t, s, Options{Stride: 5, Runs: 20, Random: 5}.withDefaults(), "sqlite")
	require.Empty(t, violations)
}

// What a step keeps in memory a crash takes away, and only that.
func TestMemoryIsAProcesss(t *testing.T) {
	t.Parallel()
	s := Scenario{
		Name: "memory",
		NewStep: func() resume.Step {
			asked := false
			return func(_ context.Context, run *resume.Run) (resume.Next, error) {
				if !asked {
					asked = true
					return resume.Wait(time.Hour), nil
				}
				return resume.Done(), nil
			}
		},
		Setup:  func(w *World) error { return w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com"}) },
		Actors: []Actor{Do("worker", (*World).Work, func(w *World) error { return w.Jump(2 * time.Hour) }, (*World).Sweep, (*World).Work)},
		Check:  isDone,
	}
	for range 2 { // a run has its own
		r, violations := explore(t, s, Options{}.withDefaults(), "sqlite")
		require.NotEmpty(t, violations)
		require.Greater(t, r.Boundaries, 10)
		require.NotContains(t, violations[0].Replay, "crash/0")
		require.Contains(t, violations[0].Detail, "w1 is waiting")
	}
}
