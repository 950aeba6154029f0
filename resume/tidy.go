package resume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/internal/sqldb"
)

const (
	tidyEvery = time.Minute
	tidyPause = 20 * time.Millisecond // between two transactions, for others' turn
	tidyBatch = 1000
	// unclaimedFor is how long a person has for mail without candidates.
	unclaimedFor = 30 * 24 * time.Hour
)

// tidy drops what no replay and no person can need, in small transactions, as
// many as it takes.
func (e *Engine) tidy(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := e.tidyRound(ctx, tidyBatch)
		if err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "tidying failed", "error", err)
		}
		if !more || err != nil {
			pause(ctx, tidyEvery)
		}
	}
}

// tidyJob is a statement that looks at no more than so many rows.
type tidyJob struct {
	query string
	args  []any
}

func (e *Engine) tidyJobs(batch int) []tidyJob {
	name, old, again := e.cfg.Name, -e.cfg.Retain, min(lookAgain, e.cfg.Retain)-e.cfg.Retain
	return []tidyJob{
		{e.st.PruneBodies, []any{name, -e.cfg.ReplayWindow, batch}},
		{e.st.PruneUnclaimed, []any{name, -unclaimedFor, batch}},
		{e.st.PruneSignals, []any{name, old, batch, again}},
		{e.st.PruneSends, []any{name, old, batch, again}},
		{e.st.PruneDecisions, []any{name, old, batch}},
		{e.st.PruneHistory, []any{name, old, batch}},
		{e.st.PruneWorkflows, []any{name, old, batch}},
	}
}

// lookAgain is when to look again at what is old, but of a workflow that is not
// over.
const lookAgain = 24 * time.Hour

// tidyRound does each job once and says whether one has more to do.
func (e *Engine) tidyRound(ctx context.Context, batch int) (more bool, err error) {
	for _, job := range e.tidyJobs(batch) {
		err := e.db.Tx(ctx, func(tx sqldb.Tx) error {
			n, err := tx.Exec(ctx, job.query, job.args...)
			more = more || n >= int64(batch)
			return err
		})
		if err != nil {
			return more, err
		}
		pause(ctx, tidyPause)
	}
	return more, nil
}

// Forget erases what is stored for an address: the state, signals, errors,
// subjects, recipients and bytes of every run that it was the counterparty of,
// and the texts of their timelines and of people's decisions on their mail. IDs
// stay, so that a replay still finds its event handled. An earlier run of an ID
// that sent no mail is not found; its timeline goes with the ID's last run's.
// Workflows that are not over, and sends without an outcome, are [ErrNotOver]:
// cancel, and wait.
func (e *Engine) Forget(ctx context.Context, addr string) error {
	a, err := client.NormalizeAddress(addr)
	if err != nil {
		return fmt.Errorf("%w: not an e-mail address", Err)
	}
	var keys []string // nobody starts a workflow with the address meanwhile
	for _, inbox := range slices.Sorted(maps.Keys(e.cfg.Inboxes)) {
		keys = append(keys, e.addressKey(inbox, a))
	}
	return e.db.Tx(ctx, func(tx sqldb.Tx) error {
		if err := e.lockKeys(ctx, tx, keys...); err != nil {
			return err
		}
		live, err := (&ledger{e: e, tx: tx}).count(ctx, e.st.ForgetLive, e.cfg.Name, a)
		if err != nil {
			return err
		}
		if live > 0 {
			return ErrNotOver
		}
		return e.forget(ctx, tx, a)
	})
}

func (e *Engine) forget(ctx context.Context, tx sqldb.Tx, addr string) error {
	var ids, runs []string
	err := tx.Query(ctx, e.st.ForgetRuns, []any{e.cfg.Name, addr}, func(scan sqldb.Scan) error {
		var id, run string
		err := scan(&id, &run)
		ids, runs = append(ids, id), append(runs, run)
		return err
	})
	if err != nil {
		return err
	}
	for _, q := range []struct {
		query string
		args  []any
	}{
		{e.st.ForgetWorkflows, []any{e.cfg.Name, addr}},
		{e.st.ForgetSends, []any{e.cfg.Name, addr}},
		{e.st.ForgetMail, []any{e.cfg.Name, ids, runs}},
		{e.st.ForgetHistory, []any{e.cfg.Name, ids, runs}},
		{e.st.ForgetDecisions, []any{e.cfg.Name, e.stream, ids, runs}},
	} {
		if _, err := tx.Exec(ctx, q.query, q.args...); err != nil {
			return err
		}
	}
	return nil
}
