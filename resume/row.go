package resume

import (
	"context"
	"encoding/json"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// workflowRow is a row of workflows.
type workflowRow struct {
	id, run, kind       string
	inbox, counterparty string
	state               // what decisions are made from
	owner               string
	saved               []byte // the user's state
	created, updated    time.Time
	finished            time.Time
}

func scanWorkflow(scan sqldb.Scan, w *workflowRow) error {
	var wait int64
	err := scan(&w.id, &w.run, &w.kind, &w.inbox, &w.counterparty, &w.Status, &w.Step, &w.Arrived, &w.Consumed, &w.Gen, &w.Due, &w.Deadline,
		&wait, &w.Finish, &w.Kick, &w.TimedOut, &w.Timeouts, &w.Attempts, &w.Stalls, &w.Begun, &w.Error, &w.owner, &w.saved, &w.created, &w.updated, &w.finished)
	w.Wait = time.Duration(wait) * time.Microsecond
	return err
}

// live says whether run is the workflow's present run and not over.
func (w *workflowRow) live(run string) bool { return w != nil && w.run == run && !w.Status.Terminal() }

func (w *workflowRow) values() map[string]any {
	if w.Status != StatusRunning {
		w.owner = ""
	}
	return map[string]any{
		"id": w.id, "status": w.Status, "step": w.Step, "arrived": w.Arrived, "consumed": w.Consumed, "gen": w.Gen, "due": w.Due,
		"deadline": w.Deadline, "wait": w.Wait, "finish": w.Finish, "kick": w.Kick, "timed_out": w.TimedOut, "timeouts": w.Timeouts,
		"attempts": w.Attempts, "stalls": w.Stalls, "begun": w.Begun, "error": w.Error, "owner": w.owner, "terminal": w.Status.Terminal(),
	}
}

// The places of a mail row. It is in exactly one.
const (
	placeUnplaced = "unplaced"
	placeInput    = "input"
	placeReview   = "review"
	placeSettled  = "settled"
)

// Why a row is settled that may be placed again.
const (
	reasonNotOurs  = "not_ours" // it is about no send of ours that we know
	reasonCanceled = "canceled" // a cancel took it from its workflow
)

// mailRow is a row of mail.
type mailRow struct {
	id                     int64
	stream, eventID        string
	kind                   events.Kind
	inbox, thread, message string
	approval               string
	delivery               client.Delivery
	version                int64
	alias                  bool
	place                  string
	workflow, run          string
	matchedBy, proof       string
	consumed               bool
	reason                 string
	candidates             []string
	data                   []byte
	due                    time.Time
	attempts               int64
	unread                 int64     // tries in a row to read it that failed, itself being the trouble
	unreadSince            time.Time // the first of them
	decidedBy              string
	decidedAt              time.Time
	decision, target       string
	arrived                time.Time
}

func scanMail(scan sqldb.Scan, m *mailRow) error {
	var candidates string
	if err := scan(&m.id, &m.stream, &m.eventID, &m.kind, &m.inbox, &m.thread, &m.message, &m.approval, &m.delivery, &m.version, &m.alias,
		&m.place, &m.workflow, &m.run, &m.matchedBy, &m.proof, &m.consumed, &m.reason, &candidates, &m.data, &m.due, &m.attempts,
		&m.unread, &m.unreadSince, &m.decidedBy, &m.decidedAt, &m.decision, &m.target, &m.arrived); err != nil {
		return err
	}
	return json.Unmarshal([]byte(candidates), &m.candidates)
}

func (m *mailRow) values() map[string]any {
	if m.candidates == nil {
		m.candidates = []string{}
	}
	candidates, _ := json.Marshal(m.candidates) // strings always marshal
	return map[string]any{
		"id": m.id, "place": m.place, "workflow": m.workflow, "run": m.run, "matched_by": m.matchedBy, "proof": m.proof,
		"reason": m.reason, "candidates": string(candidates), "due": m.due, "delivery": m.delivery,
	}
}

// The states of a send.
const (
	sendPlanned  = "planned"  // to be driven to an outcome
	sendHeld     = "held"     // a person at the provider must approve it
	sendAccepted = "accepted" // it left, or will
	sendFailed   = "failed"   // it will not leave
	sendUnknown  = "unknown"  // a person must find out
	sendDropped  = "dropped"  // canceled before the first attempt
)

// sendRow is a row of sends.
type sendRow struct {
	workflow, run  string
	step           int64
	key            string
	inbox, replyTo string
	body           []byte
	hash           string
	recipients     []string
	subject        string
	state          string
	attempts       int64
	stalls         int64
	firstAttempt   time.Time
	message        string
	thread         string
	approval       string
	version        int64
	delivery       client.Delivery
	failure        string // why it failed, or waits
	created        time.Time
	settled        time.Time // when it had its outcome
}

func scanSend(scan sqldb.Scan, s *sendRow) error {
	var recipients string
	if err := scan(&s.workflow, &s.run, &s.step, &s.key, &s.inbox, &s.replyTo, &s.body, &s.hash, &recipients, &s.subject, &s.state, &s.attempts, &s.stalls,
		&s.firstAttempt, &s.message, &s.thread, &s.approval, &s.version, &s.delivery, &s.failure, &s.created, &s.settled); err != nil {
		return err
	}
	return json.Unmarshal([]byte(recipients), &s.recipients)
}

// each reads every row and hands it on.
func each[T any](read func(sqldb.Scan, *T) error, got func(*T)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		v := new(T)
		err := read(scan, v)
		if err == nil {
			got(v)
		}
		return err
	}
}

// rowsOf collects the rows of a query.
func rowsOf[T any](ctx context.Context, tx sqldb.Tx, read func(sqldb.Scan, *T) error, query string, args ...any) ([]*T, error) {
	var out []*T
	err := tx.Query(ctx, query, args, each(read, func(v *T) { out = append(out, v) }))
	return out, err
}

// oneOf is the first row of a query, nil if there is none.
func oneOf[T any](ctx context.Context, tx sqldb.Tx, read func(sqldb.Scan, *T) error, query string, args ...any) (*T, error) {
	out, err := rowsOf(ctx, tx, read, query, args...)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out[0], nil
}

// claimOf runs a claiming statement in a transaction of its own.
func claimOf[T any](ctx context.Context, db *sqldb.DB, read func(sqldb.Scan, *T) error, query string, args ...any) ([]*T, error) {
	var out []*T
	err := db.Tx(ctx, func(tx sqldb.Tx) (err error) {
		out, err = rowsOf(ctx, tx, read, query, args...)
		return err
	})
	if err != nil { // not committed: nothing is ours
		return nil, err
	}
	return out, nil
}

// exec runs one statement in a transaction of its own.
func (e *Engine) exec(ctx context.Context, query string, args ...any) error {
	return e.db.Tx(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
}

// count reads a statement's one number.
func (l *ledger) count(ctx context.Context, query string, args ...any) (int64, error) {
	var n int64
	err := sqldb.One(ctx, l.tx, query, args, &n)
	return n, err
}
