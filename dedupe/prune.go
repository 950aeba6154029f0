package dedupe

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/replywake/replywake/internal/sqldb"
)

// pruneBatch keeps each transaction short, so that no door waits for one.
const pruneBatch = 1000

// prune forgets what is old, batch after batch. Claims wait for a batch at most,
// and only for IDs that are in it.
func (in *Inbox) prune(ctx context.Context) error {
	limits, err := in.parkedLimits(ctx)
	if err != nil {
		return wrap("prune", err)
	}
	pruneSwept := func(ctx context.Context, tx sqldb.Tx) (int64, error) { return in.pruneSwept(ctx, tx, limits) }
	for _, batch := range []func(context.Context, sqldb.Tx) (int64, error){
		pruneSwept, in.pruneUnswept, in.pruneUnreadable, in.pruneContent, in.pruneDiscarded,
	} {
		for more := true; more; {
			err := in.inTx(ctx, "prune", func(tx sqldb.Tx) error {
				n, err := batch(ctx, tx)
				more = n >= pruneBatch/2 // some of a batch may be too young
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// pruneSwept deletes IDs and stretches the floors of their inboxes over them,
// not as far as the limits.
func (in *Inbox) pruneSwept(ctx context.Context, tx sqldb.Tx, limits map[string]int64) (int64, error) {
	var ids []string
	var life string
	floors := map[string]map[string]any{}
	err := tx.Query(ctx, in.st.PruneSwept, []any{in.name(), -in.cfg.Retain, pruneBatch}, func(scan sqldb.Scan) error {
		var id, inbox string
		var sequence int64
		err := scan(&id, &inbox, &sequence, &life)
		if limit, ok := limits[inbox]; ok && sequence >= limit {
			return err
		}
		ids = append(ids, id)
		lowest, highest := sequence, sequence
		if f := floors[inbox]; f != nil {
			lowest, highest = min(lowest, f["lowest"].(int64)), max(highest, f["highest"].(int64))
		}
		floors[inbox] = map[string]any{"inbox": inbox, "lowest": lowest, "highest": highest}
		return err
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(ctx, in.st.PruneFloors, in.name(), sqldb.Rows(slices.Collect(maps.Values(floors))), life); err != nil {
		return 0, err
	}
	return tx.Exec(ctx, in.st.PruneIDs, in.name(), ids)
}

// parkedLimits are the lowest sequences of parked events, by inbox.
func (in *Inbox) parkedLimits(ctx context.Context) (map[string]int64, error) {
	limits := map[string]int64{}
	err := in.db.Read().Query(ctx, in.st.PruneLimits, []any{in.name()}, func(scan sqldb.Scan) error {
		var inbox *string
		var sequence *int64
		if err := scan(&inbox, &sequence); err != nil || inbox == nil || sequence == nil {
			return err
		}
		if lowest, ok := limits[*inbox]; !ok || *sequence < lowest {
			limits[*inbox] = *sequence
		}
		return nil
	})
	return limits, err
}

// sweepMargin is how long after an ID was last seen a sweep must have reached
// the head without meeting it, before it counts as one that no sweep can meet.
const sweepMargin = day

func (in *Inbox) pruneUnswept(ctx context.Context, tx sqldb.Tx) (int64, error) {
	var known bool
	var through, now time.Time
	if err := sqldb.One(ctx, tx, in.st.Through, []any{in.name()}, &known, &through, &now); err != nil {
		return 0, err
	}
	before := now.Add(-in.cfg.RetainUnswept)
	if passed := through.Add(-sweepMargin); known && passed.Before(before) {
		before = passed
	}
	return in.forgetPushed(ctx, tx, before)
}

// clockSkew is how far the provider's clock may be ahead of the store's.
const clockSkew = 5 * time.Minute

// forgetPushed deletes IDs that no sweep has met. Should one meet them after
// all, it must not hand them over again; it knows their sequence, which we do
// not, but we both know when they happened: up to Retain before we saw them.
func (in *Inbox) forgetPushed(ctx context.Context, tx sqldb.Tx, before time.Time) (int64, error) {
	var ids []string
	spans := map[string]map[string]any{}
	err := tx.Query(ctx, in.st.PruneUnswept, []any{in.name(), before, pruneBatch}, func(scan sqldb.Scan) error {
		var id, inbox string
		var seen time.Time
		err := scan(&id, &inbox, &seen)
		ids = append(ids, id)
		since, until := seen.Add(-in.cfg.Retain), seen.Add(clockSkew)
		if s := spans[inbox]; s != nil {
			since, until = earlier(since, s["since"].(time.Time)), later(until, s["until"].(time.Time))
		}
		spans[inbox] = map[string]any{"inbox": inbox, "since": since, "until": until}
		return err
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(ctx, in.st.PrunePushed, in.name(), sqldb.Rows(slices.Collect(maps.Values(spans)))); err != nil {
		return 0, err
	}
	return tx.Exec(ctx, in.st.PruneIDs, in.name(), ids)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (in *Inbox) pruneUnreadable(ctx context.Context, tx sqldb.Tx) (int64, error) {
	return tx.Exec(ctx, in.st.PruneUnreadable, in.name(), -in.cfg.RetainUnswept, pruneBatch)
}

func (in *Inbox) pruneContent(ctx context.Context, tx sqldb.Tx) (int64, error) {
	return tx.Exec(ctx, in.st.PruneContent, in.name(), -in.cfg.RetainContent, []byte{}, pruneBatch)
}

func (in *Inbox) pruneDiscarded(ctx context.Context, tx sqldb.Tx) (int64, error) {
	return tx.Exec(ctx, in.st.PruneDiscarded, in.name(), -in.cfg.RetainUnswept, pruneBatch)
}
