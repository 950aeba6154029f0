package dedupe

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// outcome is what becomes of an event. The zero value is for an ID that was
// there already.
type outcome int

const (
	duplicate outcome = iota
	fresh
	skipped
	parked
)

// outcomes is by event ID.
type outcomes map[string]outcome

func (o outcomes) count(evs []events.Event) (r events.Result) {
	for _, ev := range evs {
		*o[ev.ID].in(&r)++
	}
	return r
}

// in is the outcome's place in a result.
func (o outcome) in(r *events.Result) *int {
	return [...]*int{duplicate: &r.Duplicate, fresh: &r.Fresh, skipped: &r.Skipped, parked: &r.Parked}[o]
}

// lastSeenExact is how exact last_seen is: a duplicate writes nothing more often.
const lastSeenExact = time.Hour

// claim claims the IDs of a part, in a constant number of statements. What it
// answers holds until the commit.
func (in *Inbox) claim(ctx context.Context, tx sqldb.Tx, p *part) (outcomes, error) {
	out := outcomes{}
	if len(p.events) == 0 {
		return out, nil
	}
	rows, sequenced := rowsOf(p.events)
	var err error
	if in.db.SQLite {
		err = in.claimSQLite(ctx, tx, p, rows, out)
	} else {
		err = in.claimPostgres(ctx, tx, p, rows, sequenced, out)
	}
	if err == nil && (sequenced || len(out) < len(p.events)) {
		err = in.check(ctx, tx, p, rows, out)
	}
	if err != nil {
		return nil, fmt.Errorf("claim IDs: %w", err)
	}
	return out, nil
}

func rowsOf(evs []events.Event) (rows sqldb.Rows, sequenced bool) {
	for _, ev := range evs {
		rows = append(rows, map[string]any{"event_id": ev.ID, "sequence": int64(ev.Sequence), "inbox": ev.Inbox, "occurred": ev.OccurredAt})
		sequenced = sequenced || ev.Sequence > 0
	}
	return rows, sequenced
}

func (in *Inbox) claimPostgres(ctx context.Context, tx sqldb.Tx, p *part, rows sqldb.Rows, sequenced bool, out outcomes) error {
	wait := in.lockTimeout()
	if !sequenced {
		ids, inboxes := columns(p.events)
		return tx.Query(ctx, in.st.ClaimAll, []any{in.name(), ids, inboxes, p.door == push, in.refresh(), wait}, out.readInserted)
	}
	return tx.Query(ctx, in.st.Claim, []any{in.name(), rows, p.history, p.door == push, in.refresh(), wait}, out.read)
}

// lockTimeout is as Postgres takes it: 0 would be for ever.
func (in *Inbox) lockTimeout() string {
	return strconv.FormatInt(max(in.cfg.LockTimeout.Milliseconds(), 1), 10)
}

func (in *Inbox) claimSQLite(ctx context.Context, tx sqldb.Tx, p *part, rows sqldb.Rows, out outcomes) error {
	if err := tx.Query(ctx, in.st.Claim, []any{in.name(), rows, p.history}, out.read); err != nil {
		return err
	}
	var taken sqldb.Rows
	for i, ev := range p.events {
		if out[ev.ID] != skipped {
			taken = append(taken, rows[i])
		}
	}
	_, err := tx.Exec(ctx, in.st.Remember, in.name(), taken, p.history, p.door == push, in.refresh())
	return err
}

func columns(evs []events.Event) (ids, inboxes []string) {
	for _, ev := range evs {
		ids, inboxes = append(ids, ev.ID), append(inboxes, ev.Inbox)
	}
	return ids, inboxes
}

// readInserted takes a row of ClaimAll: an ID, and whether it is new.
func (o outcomes) readInserted(scan sqldb.Scan) error {
	var id string
	var isNew bool
	err := scan(&id, &isNew)
	if isNew {
		o[id] = fresh
	}
	return err
}

// read takes a row of the claim: an ID, and whether it is skipped or fresh.
func (o outcomes) read(scan sqldb.Scan) error {
	var id string
	var skip bool
	err := scan(&id, &skip)
	o[id] = fresh
	if skip {
		o[id] = skipped
	}
	return err
}

// refresh is how old last_seen may grow, before now.
func (in *Inbox) refresh() time.Duration {
	return -min(in.cfg.Retain/10, in.cfg.RetainUnswept/10, lastSeenExact)
}

// check looks at what the claim could not know: which known IDs are parked, and
// whether the claim waited for a pruning that deleted an ID and raised the
// floor over it. Such an ID is given up again.
func (in *Inbox) check(ctx context.Context, tx sqldb.Tx, p *part, rows sqldb.Rows, out outcomes) error {
	var below []string
	err := tx.Query(ctx, in.st.Check, []any{in.name(), rows, p.history}, func(scan sqldb.Scan) error {
		var id string
		var isParked, isBelow bool
		err := scan(&id, &isParked, &isBelow)
		switch {
		case isBelow && out[id] == fresh:
			below = append(below, id)
			out[id] = skipped
		case isParked && p.door == push && out[id] == duplicate:
			out[id] = parked
		}
		return err
	})
	if err == nil && len(below) > 0 {
		_, err = tx.Exec(ctx, in.st.Unclaim, in.name(), below)
	}
	return err
}
