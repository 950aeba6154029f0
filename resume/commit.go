package resume

import (
	"context"
	"fmt"
	"time"

	"github.com/replywake/replywake/internal/sqldb"
)

const commitTimeout = 30 * time.Second

// commit consumes the inputs and stores what the step decided, in one
// transaction with what the step joined to it.
func (e *Engine) commit(ctx context.Context, run *Run, next Next, accepted []*loaded, verdicts []*mailRow) error {
	saved, err := next.newState(run.row.saved)
	if err != nil {
		return &stepError{err}
	}
	return e.db.Tx(ctx, func(tx sqldb.Tx) error {
		for _, join := range run.joins {
			if err := join(ctx, tx); err != nil {
				return joined(ctx, tx, err)
			}
		}
		l, err := e.ledger(ctx, tx)
		if err != nil {
			return err
		}
		if err := l.commit(ctx, run, next, saved, accepted, verdicts); err != nil {
			return err
		}
		return l.save(ctx)
	})
}

// joined makes an error of a joined write one of the step, unless the database
// is the trouble. A write that takes all of a commit's time is the step's, too.
func joined(ctx context.Context, tx sqldb.Tx, err error) error {
	if ctx.Err() == nil && sqldb.IsLost(ctx, tx, err) {
		return err
	}
	return &stepError{err}
}

func (l *ledger) commit(ctx context.Context, run *Run, next Next, saved []byte, accepted []*loaded, verdicts []*mailRow) error {
	w, err := l.fenced(ctx, run.row)
	if err != nil {
		return err
	}
	if len(accepted) == 0 && w.outrun(run.row.Arrived) {
		return errOutrun
	}
	if next.send != nil {
		if err := l.conflicts(ctx, run, w, next.send.ReplyTo); err != nil {
			return err
		}
		if err := l.plan(ctx, w, next, run.answers()); err != nil {
			return err
		}
	}
	if err := l.consume(ctx, w, accepted); err != nil {
		return err
	}
	if err := l.judged(ctx, w, verdicts); err != nil {
		return err
	}
	if next.saves {
		if _, err := l.tx.Exec(ctx, l.e.st.WorkflowState, l.e.cfg.Name, w.id, saved); err != nil {
			return err
		}
	}
	w.state = w.commit(next, int64(len(accepted)), l.now)
	l.record(w, "step", next.kind)
	if w.Status == StatusDone || w.Status == StatusNeedsReview {
		l.record(w, string(w.Status), w.Error)
	}
	return nil
}

// conflicts finds out, before anything leaves, that the thread the step wants
// to answer in belongs to another live workflow.
func (l *ledger) conflicts(ctx context.Context, run *Run, w *workflowRow, replyTo string) error {
	thread := run.threadOf(replyTo)
	if thread == "" {
		return nil
	}
	o, err := l.owner(ctx, run.Inbox, thread)
	if err != nil || o.workflow == "" || o.workflow == w.id {
		return err
	}
	other, err := l.one(ctx, o.workflow)
	if err != nil || !other.live(o.run) {
		return err
	}
	return &conflictError{thread: thread, owner: other.id}
}

// conflictError: nothing of the run is stored. The step runs again with an
// input that says so beside the others.
type conflictError struct{ thread, owner string }

func (c *conflictError) Error() string { return "the thread belongs to workflow " + c.owner }

// tellConflict tells the step once; a step that does the same again has failed.
func (l *ledger) tellConflict(ctx context.Context, w *workflowRow, c *conflictError) error {
	m := &mailRow{
		kind: kindSendError, eventID: fmt.Sprintf("conflict:%s-%d:%s", w.run, w.Step+1, c.thread), inbox: w.inbox, reason: c.Error(),
	}
	told, err := l.tell(ctx, w, m, matchedByEngine)
	switch {
	case err != nil:
		return err
	case told:
		w.state = w.release(l.now)
	default:
		w.state = w.fail(c.Error(), l.now, stepBackoff(w.Attempts), int64(l.e.cfg.Attempts))
	}
	return nil
}

// threadOf is the thread of a message the run has read; empty if it has not.
func (r *Run) threadOf(message string) string {
	for key, messages := range r.reading.threads {
		for _, m := range messages {
			if m.ID == message && message != "" {
				return key.id
			}
		}
	}
	return ""
}

// consume marks the inputs as taken by this run: all of them, or none.
func (l *ledger) consume(ctx context.Context, w *workflowRow, accepted []*loaded) error {
	if len(accepted) == 0 {
		return nil
	}
	var rows sqldb.Rows
	var ids []int64
	for i, a := range accepted {
		rows, ids = append(rows, map[string]any{"id": a.row.id, "position": i, "proof": a.row.proof}), append(ids, a.row.id)
	}
	n, err := l.tx.Exec(ctx, l.e.st.MailConsume, w.Gen, rows, ids, w.id, w.run)
	if err == nil && n != int64(len(accepted)) {
		err = errNotMine // one was taken away by a person meanwhile
	}
	return err
}

// judged stores verdicts: those inputs are no longer the workflow's.
func (l *ledger) judged(ctx context.Context, w *workflowRow, verdicts []*mailRow) error {
	if len(verdicts) == 0 {
		return nil
	}
	var ids []int64
	for _, m := range verdicts {
		ids = append(ids, m.id)
	}
	held, err := rowsOf(ctx, l.tx, func(scan sqldb.Scan, id *int64) error { return scan(id) }, l.e.st.MailStill, ids, w.id, w.run)
	if err != nil {
		return err
	}
	if len(held) != len(verdicts) {
		return errNotMine // one was taken away by a person meanwhile
	}
	for _, m := range verdicts {
		l.mail = append(l.mail, m)
		l.record(w, "verdict", m.eventID+": "+m.reason)
	}
	w.Consumed += int64(len(verdicts))
	return nil
}

// yield ends a run that calls no step.
func (e *Engine) yield(ctx context.Context, w *workflowRow, verdicts []*mailRow, next time.Time) error {
	return e.inTx(ctx, func(l *ledger) error {
		row, err := l.fenced(ctx, w)
		if err != nil {
			return err
		}
		if err := l.judged(ctx, row, verdicts); err != nil {
			return err
		}
		row.state = row.yield(l.now, next)
		return nil
	})
}

// giveBack returns a stopped run's workflow at once.
func (e *Engine) giveBack(ctx context.Context, w *workflowRow) error {
	return e.inTx(ctx, func(l *ledger) error {
		row, err := l.fenced(ctx, w)
		if err != nil {
			return err
		}
		row.state = row.release(l.now)
		return nil
	})
}
