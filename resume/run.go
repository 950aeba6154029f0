package resume

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// Run is one run of a step: what arrived, and what the workflow knows. It is
// used by one step call, not concurrently.
type Run struct {
	ID           string // the workflow's
	RunID        string // of this life of the ID; part of every idempotency key
	Kind         string
	Inbox        string
	Counterparty string // normalised address
	Step         int64  // sends planned so far
	Attempt      int64  // 1 for the first try of this run

	// Inputs are what this run consumes when it commits, replies in the order
	// of the thread. Empty for the first run and for a deadline's.
	Inputs []Input

	TimedOut bool  // the wait's deadline passed without an input
	Timeouts int64 // deadlines that fired since the last input, this one included

	engine  *Engine
	row     *workflowRow
	reading *reading
	joins   []func(ctx context.Context, tx sqldb.Tx) error
}

// Unmarshal reads the saved state into v, which stays as it is if none was
// saved yet, or if the Run was made by hand.
func (r *Run) Unmarshal(v any) error {
	if r.row == nil || len(r.row.saved) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.row.saved, v); err != nil {
		return fmt.Errorf("resume: read state: %w", err)
	}
	return nil
}

// Replies are the inputs that are messages.
func (r *Run) Replies() []Input {
	return slices.DeleteFunc(slices.Clone(r.Inputs), func(in Input) bool { return in.Kind != InputReply })
}

// answers says whether the run was given mail, or news of its own mail: what it
// sends now may be half of a loop.
func (r *Run) answers() bool {
	return slices.ContainsFunc(r.Inputs, func(in Input) bool { return in.Kind != InputSignal })
}

// History reads every thread of the workflow and merges them: each in the
// provider's order, between threads by the messages' own times. Bodies are
// read with [Run.Body].
func (r *Run) History(ctx context.Context) ([]client.Message, error) {
	threads, err := r.engine.threadsOf(ctx, r.row)
	if err != nil {
		return nil, err
	}
	var all [][]client.Message
	for _, t := range threads {
		messages, err := r.reading.thread(ctx, t.inbox, t.id)
		if err != nil {
			return nil, err
		}
		all = append(all, messages)
	}
	arrived, err := r.engine.arrivals(ctx, r.row)
	if err != nil {
		return nil, err
	}
	return merge(all, arrived), nil
}

// Body reads the content of a message of the history.
func (r *Run) Body(ctx context.Context, m client.Message) (client.Body, error) {
	return r.engine.mail.Body(ctx, r.Inbox, m)
}

// InPostgres joins fn to the transaction that commits this run: both happen or
// neither. It runs before the engine takes its locks, and again if that
// transaction must be repeated.
func (r *Run) InPostgres(fn func(ctx context.Context, tx pgx.Tx) error) {
	r.joins = append(r.joins, func(ctx context.Context, tx sqldb.Tx) error {
		native, ok := tx.Native().(pgx.Tx)
		if !ok {
			return errors.New("resume: InPostgres on an engine that runs on SQLite: use InSQL")
		}
		return fn(ctx, native)
	})
}

// InSQL is InPostgres for an engine on SQLite.
func (r *Run) InSQL(fn func(ctx context.Context, tx *sql.Tx) error) {
	r.joins = append(r.joins, func(ctx context.Context, tx sqldb.Tx) error {
		native, ok := tx.Native().(*sql.Tx)
		if !ok {
			return errors.New("resume: InSQL on an engine that runs on Postgres: use InPostgres")
		}
		return fn(ctx, native)
	})
}

// arrivals are when messages of the workflow came or were planned, by ID: the
// order to fall back on where the provider's listing has no times.
func (e *Engine) arrivals(ctx context.Context, w *workflowRow) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	inputs, err := rowsOf(ctx, e.db.Read(), scanMail, e.st.MailInputs, e.cfg.Name, w.id, w.run)
	if err != nil {
		return nil, err
	}
	for _, m := range inputs {
		if m.kind == events.KindReceived {
			out[m.message] = m.arrived
		}
	}
	sends, err := rowsOf(ctx, e.db.Read(), scanSend, e.st.SendOf, e.cfg.Name, w.id, w.run)
	for _, s := range sends {
		out[s.message] = s.created
	}
	return out, err
}

// merge merges lists that are each in order, by the messages' own times, else
// by arrival; a message with neither stays behind the one before it.
func merge(lists [][]client.Message, arrived map[string]time.Time) []client.Message {
	at := func(m client.Message) time.Time {
		if m.At.IsZero() {
			return arrived[m.ID]
		}
		return m.At
	}
	var out []client.Message
	for {
		next := -1
		for i, l := range lists {
			if len(l) > 0 && (next < 0 || at(l[0]).Before(at(lists[next][0]))) {
				next = i
			}
		}
		if next < 0 {
			return out
		}
		out = append(out, lists[next][0])
		lists[next] = lists[next][1:]
	}
}
