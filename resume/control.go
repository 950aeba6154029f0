package resume

import (
	"cmp"
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
				l.settle(m, reasonCanceled)
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
// reply to it to make it run. It runs at once if a cancel took inputs from it
// that are no mail, or if its last mail never left, which it is told as an
// [InputSendError]. If nobody knows whether that left, it goes before a person.
// One that is not over is [ErrNotOver].
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
		last, err := oneOf(ctx, l.tx, scanSend, e.st.SendLock, e.cfg.Name, row.id, row.run, row.Step)
		if err != nil {
			return err
		}
		if err := l.restore(ctx, row, last); err != nil {
			return err
		}
		row.state = row.reopen(l.now, last.waits())
		if last != nil && last.state == sendUnknown {
			row.state = row.review(last.failure)
		}
		l.record(row, "reopened", "by "+by)
		return nil
	})
}

// restore gives a workflow back what its cancel took from it, and tells it that
// its last mail never left, if it was not told.
func (l *ledger) restore(ctx context.Context, w *workflowRow, last *sendRow) error {
	rows, err := rowsOf(ctx, l.tx, scanMail, l.e.st.MailCanceled, l.e.cfg.Name, w.id, w.run)
	if err != nil {
		return err
	}
	for _, m := range rows {
		why := ""
		if m.kind == kindSendError {
			if last == nil || m.eventID != last.failureID() {
				continue // of an earlier mail
			}
			why = last.failure
		}
		l.input(m, w, m.matchedBy, l.now)
		m.reason = why
	}
	if last == nil || last.state != sendFailed && last.state != sendDropped {
		return nil
	}
	return l.tellFailure(ctx, w, last, cmp.Or(last.failure, "canceled before it left"))
}

// waits is the status of a workflow whose last send has no outcome yet; empty
// if it has one.
func (s *sendRow) waits() Status {
	switch {
	case s == nil:
	case s.state == sendPlanned:
		return StatusSending
	case s.state == sendHeld:
		return StatusAwaitingApproval
	}
	return ""
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
