package resume

import (
	"context"
	"time"

	"github.com/replywake/replywake/internal/sqldb"
)

// ledger is one transaction's view of the rows it changes: rows are loaded
// under their locks, changed by the machine, and saved in one statement a
// table at the end.
type ledger struct {
	e   *Engine
	tx  sqldb.Tx
	now time.Time

	workflows map[string]*workflowRow
	mail      []*mailRow
	delivery  map[address]*mailRow // the newest snapshot of each of our messages
	history   sqldb.Rows
}

func (e *Engine) ledger(ctx context.Context, tx sqldb.Tx) (*ledger, error) {
	l := e.timeless(tx)
	return l, tx.Together(ctx, l.clock())
}

// timeless is a ledger whose clock has yet to be read.
func (e *Engine) timeless(tx sqldb.Tx) *ledger {
	return &ledger{e: e, tx: tx, workflows: map[string]*workflowRow{}, delivery: map[address]*mailRow{}}
}

func (l *ledger) clock() sqldb.Statement {
	return sqldb.Statement{Query: l.e.st.Now, Row: func(scan sqldb.Scan) error { return scan(&l.now) }}
}

// inTx runs fn on a ledger in a transaction of the engine's and saves it.
func (e *Engine) inTx(ctx context.Context, fn func(l *ledger) error) error {
	return e.db.Tx(ctx, func(tx sqldb.Tx) error {
		l, err := e.ledger(ctx, tx)
		if err != nil {
			return err
		}
		if err := fn(l); err != nil {
			return err
		}
		return l.save(ctx)
	})
}

// lock loads workflows under their row locks, in the order of their IDs.
func (l *ledger) lock(ctx context.Context, ids ...string) error {
	return l.tx.Together(ctx, l.locking(ids)...)
}

// locking is the statement of lock, none if nothing is missing.
func (l *ledger) locking(ids []string) []sqldb.Statement {
	var missing []string
	for _, id := range ids {
		if l.workflows[id] == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []sqldb.Statement{{
		Query: l.e.st.WorkflowsLock, Args: []any{l.e.cfg.Name, missing},
		Row: each(scanWorkflow, func(w *workflowRow) { l.workflows[w.id] = w }),
	}}
}

// one loads one workflow under its lock; nil if there is none.
func (l *ledger) one(ctx context.Context, id string) (*workflowRow, error) {
	err := l.lock(ctx, id)
	return l.workflows[id], err
}

// input places a mail row with a live workflow, which may take it from at on.
func (l *ledger) input(m *mailRow, w *workflowRow, matchedBy string, at time.Time) {
	m.place, m.workflow, m.run, m.matchedBy, m.reason, m.candidates, m.due = placeInput, w.id, w.run, matchedBy, "", nil, at
	l.mail = append(l.mail, m)
	w.state = w.arrive(1, at)
	l.record(w, "input", string(m.kind)+" "+m.eventID+" by "+matchedBy)
}

// review puts a mail row before a person.
func (l *ledger) review(m *mailRow, reason string, candidates []string) {
	m.place, m.workflow, m.run, m.matchedBy, m.reason, m.candidates = placeReview, "", "", "", reason, candidates
	l.mail = append(l.mail, m)
}

// settle ends a mail row with a reason.
func (l *ledger) settle(m *mailRow, reason string) {
	m.place, m.reason, m.candidates = placeSettled, reason, nil
	l.mail = append(l.mail, m)
}

// record writes a line of the workflow's timeline.
func (l *ledger) record(w *workflowRow, what, detail string) {
	l.history = append(l.history, map[string]any{"workflow": w.id, "run": w.run, "event_id": "", "what": what, "step": w.Step, "detail": detail})
}

// decided writes a person's decision about mail.
func (l *ledger) decided(m *mailRow, what, detail string) {
	step := int64(0)
	if w := l.workflows[m.target]; w != nil {
		step = w.Step
	}
	l.history = append(l.history, map[string]any{"workflow": m.target, "run": m.run, "event_id": m.eventID, "what": what, "step": step, "detail": detail})
}

// snapshot keeps the newest delivery state of a message of ours.
func (l *ledger) snapshot(m *mailRow) {
	a := address{m.inbox, m.message}
	if old := l.delivery[a]; old == nil || old.version <= m.version {
		l.delivery[a] = m
	}
}

// save writes what changed, one statement a table.
func (l *ledger) save(ctx context.Context) error {
	var workflows, mail, deliveries sqldb.Rows
	var ids []string
	var mailIDs []int64
	for _, w := range l.workflows {
		workflows, ids = append(workflows, w.values()), append(ids, w.id)
	}
	for _, m := range l.mail {
		mail, mailIDs = append(mail, m.values()), append(mailIDs, m.id)
	}
	for a, m := range l.delivery {
		deliveries = append(deliveries, map[string]any{"inbox": a.inbox, "message": a.id, "delivery": m.delivery, "version": m.version})
	}
	name := l.e.cfg.Name
	inboxes, messages := columnsOf(deliveries)
	var writes []sqldb.Statement
	write := func(query string, rows sqldb.Rows, args ...any) {
		if len(rows) > 0 {
			writes = append(writes, sqldb.Statement{Query: query, Args: args})
		}
	}
	write(l.e.st.WorkflowSave, workflows, name, workflows, ids)
	write(l.e.st.SendDelivery, deliveries, name, deliveries, messages, inboxes)
	write(l.e.st.MailPlace, mail, mail, mailIDs)
	write(l.e.st.HistoryInsert, l.history, name, l.history)
	return l.tx.Together(ctx, writes...)
}
