package resumetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

func TestReport(t *testing.T) {
	t.Parallel()
	require.Equal(t, "explored: 412 crash points, 3,180 schedules (bound 2), 0 violations",
		Report{CrashPoints: 412, Boundaries: 412, Schedules: 3180, Bound: 2}.String())
	require.Equal(t, "explored: 2 of 1,000 crash points, 1,234,567 schedules (bound 1, cut off), 1 violations, 3 deadlocks",
		Report{CrashPoints: 2, Boundaries: 1000, Schedules: 1234567, Bound: 1, CutOff: true, Deadlocks: 3, Violations: 1}.String())
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

// What a scenario's own check finds wrong in one order only is found, and its
// word for replaying leads there again.
func TestViolationReplays(t *testing.T) {
	t.Parallel()
	wait := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(time.Hour), nil }
	s := Scenario{
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
	o := Options{Stride: -1, Postgres: testdb.URL(t)}.withDefaults()
	_, violations := explore(t, s, o, "postgres")
	require.NotEmpty(t, violations)
	o.Replay = violations[0].Replay
	_, violations = explore(t, s, o, "postgres")
	require.NotEmpty(t, violations, o.Replay)
	o.Replay = "second-comes-first/postgres/schedule/a9b9"
	r, _ := explore(t, s, o, "postgres")
	require.Zero(t, r.Violations)
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
