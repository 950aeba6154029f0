package resume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// over puts n workflows into the store that finished so long ago, each with a
// send, a signal and three lines of history.
func (r *rig) over(prefix string, n int, ago time.Duration) {
	r.t.Helper()
	at := map[string]string{"postgres": "now() - " + micros(ago) + " * interval '1 microsecond'", "sqlite": "cast(unixepoch('subsec') * 1000000 as integer) - " + micros(ago)}[r.store]
	numbers := fmt.Sprintf("with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < %d) ", n)
	null := map[string]string{"postgres": "'x'::bytea", "sqlite": "'x'"}[r.store]
	insert := func(into, values, from string) {
		r.exec("insert into {s}" + into + " " + numbers + "select " + strings.ReplaceAll(strings.ReplaceAll(values, "AT", at), "ID", "'"+prefix+"' || n") + " from " + from)
	}
	insert("workflows (engine, id, run, kind, inbox, counterparty, status, step, arrived, consumed, gen, created_at, updated_at, finished_at)",
		"'default', ID, ID, '', '"+r.srv.Inbox()+"', 'a@example.com', 'canceled', 1, 1, 1, 1, AT, AT, AT", "numbers")
	insert("sends (engine, workflow, run, step, key, inbox, body, hash, counterparty, recipients, subject, answering, state, created_at, kept_from)",
		"'default', ID, ID, 1, ID, '"+r.srv.Inbox()+"', "+null+", '', 'a@example.com', '[]', 's', false, 'dropped', AT, AT", "numbers")
	insert("mail (engine, stream, event_id, kind, inbox, place, reason, workflow, run, data, due, arrived_at)",
		"'default', 's', ID, 'signal', '"+r.srv.Inbox()+"', 'settled', 'canceled', ID, ID, "+null+", AT, AT", "numbers")
	insert("history (engine, workflow, run, at, what)", "'default', ID, ID, AT, what", "numbers, (select 'a' as what union select 'b' union select 'c') as w")
}

// kept is what is left of what over made.
func (r *rig) kept() (out [4]int) {
	r.t.Helper()
	for i, query := range []string{"workflows", "sends where subject <> '' or body is not null", "mail where data is not null", "history"} {
		out[i] = r.count("select count(*) from {s}" + query)
	}
	return out
}

// Retention keeps up with more than a thousand workflows a minute.
func TestTidyingGoesOnWhileThereIsMore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.over("old", 1100, 91*day)
		r.over("new", 7, 89*day)
		r.tidied("all that is old is gone", func() bool { return r.kept() == [4]int{7, 7, 7, 21} })
	})
}

// No statement works on more rows than it should, however it is planned.
func TestTidyingIsDoneInSmallTransactions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.over("old", 100, 91*day)
		for query, args := range resume.TidyStatements(r.eng) {
			args[2] = 10
			before := r.rows()
			require.NoError(t, resume.Explain(t.Context(), r.eng, query, args, func(sqldb.Scan) error { return nil }))
			require.LessOrEqual(t, before-r.rows(), 10, query)
		}
	})
}

// rows is how much there is to tidy.
func (r *rig) rows() int {
	left := r.kept()
	return left[0] + left[1] + left[2] + left[3]
}

// What is not due is not looked at, minute after minute.
func TestTidyingFindsItsRowsByIndex(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.over("new", 1500, 20*day)
		r.over("old", 5, 91*day)
		r.exec("analyze")
		plans := map[string]string{}
		for query, args := range resume.TidyStatements(r.eng) {
			plans[query] = r.plan(query, args)
		}
		indexes := map[string]bool{}
		for query, plan := range plans {
			require.NotContains(t, plan, "USING INDEX replywake_workflows_finished (engine=? AND finished_at<?)\nLIST", "the batch is looked up, not looked for")
			for _, table := range []string{"workflows", "sends", "mail", "history"} {
				for _, line := range strings.Split(plan, "\n") {
					scan := strings.Contains(line, "Seq Scan on "+table) || strings.HasPrefix(line, "SCAN ") && strings.Contains(line, table) && !strings.Contains(line, "USING")
					require.False(t, scan, query+"\n"+plan)
				}
			}
			for _, index := range []string{"sends_bodies", "mail_review", "mail_data", "sends_kept", "history_mail", "workflows_finished", "history_workflow"} {
				indexes[index] = indexes[index] || strings.Contains(plan, index)
			}
		}
		for index, used := range indexes {
			require.True(t, used, "%s %v", index, plans)
		}
	})
}

// Found by the explorer: a finished workflow is dropped while its ID is used
// again, between the look whether it is there and the lock.
func TestStartOfAnIDThatIsDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t, "postgres", listens, resume.Config{})
	r.start(resume.Start{ID: "w1", Counterparty: supplier, First: resume.Done()})
	dropped := false
	ctx := sqldb.WithHook(t.Context(), func(point string) error {
		if !dropped && strings.Contains(point, "workflows as w where w.engine = $1 and w.id = $2") {
			dropped = true
			r.exec("delete from {s}workflows")
		}
		return nil
	})
	_, err := r.pg.Start(ctx, nil, resume.Start{ID: "w1", Inbox: r.srv.Inbox(), Counterparty: supplier, First: question(supplier)})
	require.NoError(t, err)
	require.True(t, dropped)
	require.Equal(t, resume.StatusSending, r.status("w1"))
}

// An event is looked up by its ID, whatever the mailbox holds.
func TestEventsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		for query, args := range resume.EventStatements(r.eng) {
			plan := r.plan(query, args)
			require.NotContains(t, plan, "Seq Scan")
			if r.store == "sqlite" {
				require.Contains(t, plan, "(engine=? AND event_id=?)", query)
			}
		}
	})
}

// plan is how the store would run a statement.
func (r *rig) plan(query string, args []any) string {
	r.t.Helper()
	explain, columns := "explain ", 1
	if r.store == "sqlite" {
		explain, columns = "explain query plan ", 4
	}
	var lines []string
	require.NoError(r.t, resume.Explain(r.t.Context(), r.eng, explain+query, args, func(scan sqldb.Scan) error {
		line := make([]any, columns)
		for i := range line {
			line[i] = new(string)
		}
		err := scan(line...)
		lines = append(lines, *line[columns-1].(*string))
		return err
	}))
	return strings.Join(lines, "\n")
}

// What belongs to a workflow that goes on stays, however old; what belongs to an
// earlier run of its ID does not.
func TestRetentionCountsFromTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.private("again", supplier)
		r.private("ends", supplier)
		r.jump(day)
		r.start(resume.Start{ID: "again", Counterparty: "buyer@example.com", First: question("buyer@example.com")})
		r.rest()
		r.ask("long", "carrier@example.com")
		r.jump(90*day - time.Hour)
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		require.Zero(t, r.count("select count(*) from {s}sends where subject = 'About "+secret+"'"), "91 days after the end")
		require.Equal(t, 2, r.count("select count(*) from {s}sends where subject = 'Quote request'"))
		require.NoError(t, r.eng.Cancel(t.Context(), "long", "ann"))
		r.jump(89 * day)
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		require.Equal(t, 2, r.count("select count(*) from {s}sends where subject = 'Quote request'"), "from when it was over")
		r.jump(day + time.Hour)
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		require.Equal(t, 1, r.count("select count(*) from {s}sends where subject = 'Quote request'"))
		require.Equal(t, 1, r.count("select count(*) from {s}workflows"))
	})
}

// A send without an outcome needs its workflow: without it the outcome could
// never be stored, and mail of its inbox would wait for it for ever.
func TestWorkflowWithAnOpenSendIsNotPruned(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		lost := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer, When: efatest.When{Always: true}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		r.jump(91 * day)
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		require.Equal(t, 1, r.count("select count(*) from {s}sends where state = 'planned'"))
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		lost.Disarm()
		r.rest() // its outcome cannot be asked for any more
		require.Zero(t, r.count("select count(*) from {s}sends where state = 'planned'"))
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		_, err := r.eng.Workflow(t.Context(), "w1")
		require.ErrorIs(t, err, resume.ErrNotFound)
	})
}

// Nor is what a held send is known by, when a person at last approves it.
func TestHeldSendOutlastsRetention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		held := r.held("w1", supplier)
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		r.jump(91 * day)
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		r.approve(held)
		r.rest()
		require.Equal(t, 1, r.count("select count(*) from {s}sends where state = 'accepted'"))
		require.NoError(t, resume.Tidy(t.Context(), r.eng, 2))
		require.Zero(t, r.count("select count(*) from {s}workflows"))
	})
}
