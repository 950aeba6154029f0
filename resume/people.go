package resume

import (
	"context"
	"fmt"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// Queue lists mail that a person must place, oldest first: at most limit items
// (0 is 100) behind the event ID after ("" from the beginning).
func (e *Engine) Queue(ctx context.Context, after string, limit int) ([]Item, error) {
	if limit <= 0 {
		limit = 100
	}
	tx := e.db.Read()
	var from int64
	if after != "" {
		m, err := oneOf(ctx, tx, scanMail, e.st.MailRead, e.cfg.Name, after)
		if err != nil {
			return nil, err
		}
		if m != nil {
			from = m.id
		}
	}
	rows, err := rowsOf(ctx, tx, scanMail, e.st.MailReview, e.cfg.Name, from, limit)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(rows))
	for i, m := range rows {
		items[i] = Item{EventID: m.eventID, Inbox: m.inbox, Thread: m.thread, Message: m.message, Kind: string(m.kind), Reason: m.reason, At: m.arrived}
		if items[i].Candidates, err = e.candidatesOf(ctx, m); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (e *Engine) candidatesOf(ctx context.Context, m *mailRow) ([]Candidate, error) {
	var out []Candidate
	for _, id := range m.candidates {
		w, err := oneOf(ctx, e.db.Read(), scanWorkflow, e.st.Workflow, e.cfg.Name, id)
		if err != nil {
			return nil, err
		}
		if w == nil {
			continue
		}
		c := Candidate{Workflow: w.id, Status: w.Status, Step: w.Step}
		sends, err := rowsOf(ctx, e.db.Read(), scanSend, e.st.SendOf, e.cfg.Name, w.id, w.run)
		if err != nil {
			return nil, err
		}
		if len(sends) > 0 {
			last := sends[len(sends)-1]
			c.Subject, c.SentAt = last.subject, last.created
		}
		out = append(out, c)
	}
	return out, nil
}

// Bind gives mail to a workflow, and its thread too. The workflow runs after
// Config.Hold, so that [Engine.Undo] is real. The same again is fine; mail
// that somebody handled otherwise is a [*HandledError], a workflow that is
// over [ErrTerminal], one unknown [ErrNotFound]. by names the person. The event
// may be any that told of the message.
//
// Messages that the engine settled by itself (a policy, an echo, a delivery
// notice) can be bound too.
func (e *Engine) Bind(ctx context.Context, eventID, workflow, by string) error {
	return e.decide(ctx, eventID, workflow, func(l *ledger, m *mailRow, w *workflowRow) error {
		if m.decision == "bind" && m.target == workflow && m.place != placeReview {
			return nil
		}
		if !bindable(m) {
			return handledBefore(m)
		}
		return l.bindMail(ctx, m, w, by)
	})
}

// Rebind moves mail that a person bound from its workflow to another, while
// the hold lasts; later it is [ErrTooLate].
func (e *Engine) Rebind(ctx context.Context, eventID, workflow, by string) error {
	return e.decide(ctx, eventID, workflow, func(l *ledger, m *mailRow, w *workflowRow) error {
		if m.decision == "bind" && m.target == workflow && m.place != placeReview {
			return nil
		}
		if err := l.unbind(ctx, m, by); err != nil {
			return err
		}
		return l.bindMail(ctx, m, w, by)
	})
}

// Undo takes a decision back: a bind while its hold lasts, a dismissal at any
// time. The mail is in the queue again, as before. Later it is [ErrTooLate].
func (e *Engine) Undo(ctx context.Context, eventID, by string) error {
	return e.decide(ctx, eventID, "", func(l *ledger, m *mailRow, _ *workflowRow) error {
		if m.place == placeReview {
			return nil
		}
		if m.decision == "dismiss" {
			l.review(m, m.reason, m.candidates)
			l.decided(m, "undone", "by "+by)
			return l.undecide(ctx, m)
		}
		return l.unbind(ctx, m, by)
	})
}

// Dismiss settles mail that needs no answer, with a reason. The same again is
// fine; mail that somebody handled otherwise is a [*HandledError].
func (e *Engine) Dismiss(ctx context.Context, eventID, reason, by string) error {
	return e.decide(ctx, eventID, "", func(l *ledger, m *mailRow, _ *workflowRow) error {
		if m.decision == "dismiss" && m.place == placeSettled {
			return nil
		}
		if m.place != placeReview {
			return handledBefore(m)
		}
		m.place = placeSettled // reason and candidates stay, for Undo
		l.mail = append(l.mail, m)
		m.decision, m.target = "dismiss", ""
		l.decided(m, "dismissed", "by "+by+": "+reason)
		_, err := l.tx.Exec(ctx, e.st.MailDecide, m.id, m.decision, m.target, by)
		return err
	})
}

// Decisions is what people did with mail, oldest first.
func (e *Engine) Decisions(ctx context.Context, eventID string) ([]Moment, error) {
	return e.moments(ctx, e.st.HistoryEvent, e.cfg.Name, eventID)
}

// decide runs fn on mail and a workflow ("" for none) with every lock that a
// decision needs, in order: the thread's key, the workflows, the mail.
func (e *Engine) decide(ctx context.Context, eventID, workflow string, fn func(*ledger, *mailRow, *workflowRow) error) error {
	err := e.inTx(ctx, func(l *ledger) error {
		m, err := oneOf(ctx, l.tx, scanMail, e.st.MailRead, e.cfg.Name, eventID)
		if err != nil {
			return err
		}
		if m == nil {
			return ErrNotFound
		}
		if err := e.lockKeys(ctx, l.tx, e.threadKey(m.inbox, m.thread)); err != nil {
			return err
		}
		if err := l.lock(ctx, workflow, m.target); err != nil {
			return err
		}
		if m, err = oneOf(ctx, l.tx, scanMail, e.st.MailByEvent, e.cfg.Name, m.eventID); err != nil {
			return err
		}
		return fn(l, m, l.workflows[workflow])
	})
	if err == nil {
		e.Wake()
	}
	return err
}

// bindable: in the queue, or a message that nobody has decided on: one that the
// matcher has not placed yet, or that the engine settled by a verdict of its
// own. A person may know better.
func bindable(m *mailRow) bool {
	undecided := m.kind == events.KindReceived && m.decision == ""
	return m.place == placeReview || undecided && (m.place == placeUnplaced || m.place == placeSettled)
}

func (l *ledger) bindMail(ctx context.Context, m *mailRow, w *workflowRow, by string) error {
	switch {
	case w == nil || w.inbox != m.inbox:
		return ErrNotFound
	case w.Status.Terminal():
		return ErrTerminal
	}
	m.decision, m.target = "bind", w.id
	l.decided(m, "bound", "to "+w.id+" by "+by)
	if _, err := l.tx.Exec(ctx, l.e.st.MailDecide, m.id, m.decision, m.target, by); err != nil {
		return err
	}
	if m.kind == events.KindQueued {
		return l.bindQueued(ctx, m, w)
	}
	hold := l.now.Add(l.e.cfg.Hold)
	l.bound(m, w, hold)
	if m.thread == "" || m.kind != events.KindReceived {
		return nil
	}
	conflict, err := l.bind(ctx, m.inbox, m.thread, w, matchedByPerson)
	if err != nil {
		return err
	}
	if conflict != "" {
		l.record(w, "conflict", "thread "+m.thread+" stays with "+conflict)
		return nil
	}
	return l.takeAlong(ctx, m.inbox, m.thread, func(other *mailRow) { l.bound(other, w, hold) })
}

// bound places mail that a person gave to the workflow. Its reason stays, for
// Undo.
func (l *ledger) bound(m *mailRow, w *workflowRow, hold time.Time) {
	reason, candidates := m.reason, m.candidates
	l.input(m, w, matchedByPerson, hold)
	m.reason, m.candidates = reason, candidates
}

// bindQueued: a person knows which held send a queued message is.
func (l *ledger) bindQueued(ctx context.Context, m *mailRow, w *workflowRow) error {
	s, err := oneOf(ctx, l.tx, scanSend, l.e.st.SendLock, l.e.cfg.Name, w.id, w.run, w.Step)
	if err != nil {
		return err
	}
	if s == nil || s.state != sendHeld {
		return ErrNotFound
	}
	l.settle(m, "noted")
	return l.acceptSend(ctx, s, client.Outcome{Message: m.message, Thread: m.thread, Approval: s.approval})
}

// unbind takes a bind back that no run has taken yet.
func (l *ledger) unbind(ctx context.Context, m *mailRow, by string) error {
	w := l.workflows[m.target]
	if m.decision != "bind" || m.place != placeInput || w == nil || m.consumed || !m.due.After(l.now) {
		return ErrTooLate
	}
	if _, err := l.tx.Exec(ctx, l.e.st.ThreadDrop, l.e.cfg.Name, l.e.stream, m.inbox, m.thread, w.id); err != nil {
		return err
	}
	along, err := rowsOf(ctx, l.tx, scanMail, l.e.st.MailAlong, l.e.cfg.Name, w.id, w.run, m.inbox, m.thread)
	if err != nil {
		return err
	}
	for _, other := range along {
		l.unplace(other)
	}
	w.state = w.takeAway(1+int64(len(along)), l.now)
	l.decided(m, "unbound", "from "+w.id+" by "+by)
	l.unplace(m)
	return l.undecide(ctx, m)
}

// unplace puts bound mail back where it was.
func (l *ledger) unplace(m *mailRow) {
	if m.reason != "" {
		l.review(m, m.reason, m.candidates)
		return
	}
	m.place, m.workflow, m.run, m.matchedBy, m.due = placeUnplaced, "", "", "", l.now
	l.mail = append(l.mail, m)
}

func (l *ledger) undecide(ctx context.Context, m *mailRow) error {
	m.decision, m.target = "", ""
	_, err := l.tx.Exec(ctx, l.e.st.MailUndecide, m.id)
	return err
}

func handledBefore(m *mailRow) error {
	h := &HandledError{EventID: m.eventID, Decision: m.decision, Workflow: m.target, By: m.decidedBy, At: m.decidedAt}
	if h.Decision == "" {
		h.Workflow, h.At = m.workflow, m.arrived
	}
	return h
}

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

// Workflow reads a workflow; [ErrNotFound] if there is none.
func (e *Engine) Workflow(ctx context.Context, id string) (Workflow, error) {
	w, err := oneOf(ctx, e.db.Read(), scanWorkflow, e.st.Workflow, e.cfg.Name, id)
	if err != nil {
		return Workflow{}, fmt.Errorf("read workflow: %w", err)
	}
	if w == nil {
		return Workflow{}, ErrNotFound
	}
	return w.view(), nil
}

// Workflows lists workflows by ID, behind after, with a status ("" for all);
// at most limit (0 is 100).
func (e *Engine) Workflows(ctx context.Context, status Status, after string, limit int) ([]Workflow, error) {
	if limit <= 0 {
		limit = 100
	}
	rows, err := rowsOf(ctx, e.db.Read(), scanWorkflow, e.st.List, e.cfg.Name, after, string(status), limit)
	out := make([]Workflow, len(rows))
	for i, w := range rows {
		out[i] = w.view()
	}
	return out, err
}

// Timeline is what happened to a workflow's present run, oldest first.
func (e *Engine) Timeline(ctx context.Context, id string) ([]Moment, error) {
	w, err := e.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	return e.moments(ctx, e.st.HistoryOf, e.cfg.Name, w.ID, w.Run)
}

func (e *Engine) moments(ctx context.Context, query string, args ...any) ([]Moment, error) {
	rows, err := rowsOf(ctx, e.db.Read(), func(scan sqldb.Scan, m *Moment) error { return scan(&m.At, &m.What, &m.Step, &m.Detail) }, query, args...)
	out := make([]Moment, len(rows))
	for i, m := range rows {
		out[i] = *m
	}
	return out, err
}

// Seen are the messages placed in a workflow's present run, in the order they
// were given to its steps, those not given yet last.
func (e *Engine) Seen(ctx context.Context, id string) ([]string, error) {
	w, err := e.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, e.db.Read(), scanMail, e.st.MailInputs, e.cfg.Name, w.ID, w.Run)
	out := []string{}
	for _, m := range rows {
		if m.kind == events.KindReceived {
			out = append(out, m.message)
		}
	}
	return out, err
}
