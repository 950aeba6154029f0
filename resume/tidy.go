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
	tidyBatch = 500
	// unclaimedFor is how long a person has for mail without candidates.
	unclaimedFor = 30 * 24 * time.Hour
)

// tidy drops what no replay and no person can need, in small transactions.
func (e *Engine) tidy(ctx context.Context) {
	for ctx.Err() == nil {
		if err := e.tidyOnce(ctx); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "tidying failed", "error", err)
		}
		pause(ctx, tidyEvery)
	}
}

func (e *Engine) tidyOnce(ctx context.Context) error {
	for _, job := range []struct {
		query string
		args  []any
	}{
		{e.st.PruneBodies, []any{e.cfg.Name, -e.cfg.ReplayWindow}},
		{e.st.PruneUnclaimed, []any{e.cfg.Name, -unclaimedFor, tidyBatch}},
		{e.st.PruneSignals, []any{e.cfg.Name, -e.cfg.Retain}},
		{e.st.PruneSends, []any{e.cfg.Name, -e.cfg.Retain}},
		{e.st.PruneHistory, []any{e.cfg.Name, -e.cfg.Retain, tidyBatch}},
		{e.st.PruneWorkflows, []any{e.cfg.Name, -e.cfg.Retain, tidyBatch}},
	} {
		if err := e.exec(ctx, job.query, job.args...); err != nil {
			return err
		}
	}
	return nil
}

// Forget erases what is stored for an address: the state, signals, subjects,
// recipients and bytes of every run that it was the counterparty of. IDs
// stay, so that a replay still finds its event handled. Workflows that are not
// over, and sends without an outcome, are [ErrNotOver]: cancel, and wait.
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
		for _, q := range []string{e.st.ForgetMail, e.st.ForgetSends, e.st.ForgetWorkflows} {
			if _, err := tx.Exec(ctx, q, e.cfg.Name, a); err != nil {
				return err
			}
		}
		return nil
	})
}
