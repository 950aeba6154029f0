package resume

import (
	"context"

	"github.com/replywake/replywake/events"
)

// RunNow skips what a workflow waits for at our side: the hold of a bind, a
// failing step's back-off, a review. A workflow that waits for a reply stays
// waiting.
func (e *Engine) RunNow(ctx context.Context, workflow, by string) error {
	err := e.change(ctx, workflow, func(l *ledger, w *workflowRow) error {
		if w.Status.Terminal() {
			return ErrTerminal
		}
		if _, err := l.tx.Exec(ctx, e.st.MailRelease, e.cfg.Name, w.id, w.run); err != nil {
			return err
		}
		w.state = w.runNow(l.now)
		l.record(w, "run_now", "by "+by)
		return nil
	})
	e.Wake()
	return err
}

// Cancel ends a workflow. A send that was never attempted is dropped; one that
// was is driven to its outcome. Later mail goes to a person as a late reply.
func (e *Engine) Cancel(ctx context.Context, workflow, by string) error {
	return e.change(ctx, workflow, func(l *ledger, w *workflowRow) error {
		if w.Status == StatusCanceled {
			return nil
		}
		if w.Status.Terminal() {
			return ErrTerminal
		}
		pending, err := rowsOf(ctx, l.tx, scanMail, e.st.MailPending, e.cfg.Name, w.id, w.run)
		if err != nil {
			return err
		}
		for _, m := range pending {
			if m.kind == events.KindReceived {
				l.review(m, ReasonLateReply, []string{w.id})
			} else {
				l.settle(m, "canceled")
			}
			w.Consumed++
		}
		if _, err := l.tx.Exec(ctx, e.st.SendDrop, e.cfg.Name, w.id, w.run); err != nil {
			return err
		}
		w.state = w.cancel()
		l.record(w, "canceled", "by "+by)
		return nil
	})
}

// Reopen lets a finished workflow wait again, without a deadline; bind a late
// reply to it to make it run. One that is not over is [ErrNotOver].
func (e *Engine) Reopen(ctx context.Context, workflow, by string) error {
	w, err := e.Workflow(ctx, workflow)
	if err != nil {
		return err
	}
	return e.inTx(ctx, func(l *ledger) error {
		if err := e.lockShared(ctx, l.tx, e.addressKey(w.Inbox, w.Counterparty.Text())); err != nil {
			return err
		}
		row, err := l.one(ctx, workflow)
		switch {
		case err != nil:
			return err
		case row == nil:
			return ErrNotFound
		case !row.Status.Terminal():
			return ErrNotOver
		}
		open, err := l.openSend(ctx, row)
		if err != nil {
			return err
		}
		row.state = row.reopen(l.now, open)
		l.record(row, "reopened", "by "+by)
		return nil
	})
}

// openSend is the status of a workflow whose last step's send has no outcome
// yet; empty if it has one.
func (l *ledger) openSend(ctx context.Context, w *workflowRow) (Status, error) {
	s, err := oneOf(ctx, l.tx, scanSend, l.e.st.SendLock, l.e.cfg.Name, w.id, w.run, w.Step)
	switch {
	case err != nil || s == nil:
		return "", err
	case s.state == sendPlanned:
		return StatusSending, nil
	case s.state == sendHeld:
		return StatusAwaitingApproval, nil
	}
	return "", nil
}

// change runs fn on a workflow under its lock.
func (e *Engine) change(ctx context.Context, workflow string, fn func(l *ledger, w *workflowRow) error) error {
	return e.inTx(ctx, func(l *ledger) error {
		w, err := l.one(ctx, workflow)
		if err != nil {
			return err
		}
		if w == nil {
			return ErrNotFound
		}
		return fn(l, w)
	})
}
