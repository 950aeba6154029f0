package resume

import (
	"context"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// Bind gives mail to a workflow, and its thread too. The workflow runs after
// Config.Hold, so that [Engine.Undo] is real. The same again is fine, and so is
// mail that came along with other mail of its thread; mail that somebody
// handled otherwise is a [*HandledError], a workflow that is over
// [ErrTerminal], one unknown [ErrNotFound]. by names the person. The event may
// be any that told of the message.
//
// Messages that the engine settled by itself (a policy, an echo, a delivery
// notice) can be bound too.
func (e *Engine) Bind(ctx context.Context, eventID, workflow, by string) error {
	return e.decide(ctx, eventID, workflow, func(l *ledger, m *mailRow, w *workflowRow) error {
		if m.decision == "bind" && m.target == workflow && m.place != placeReview {
			return nil
		}
		if m.place == placeInput && m.decision == "" && w.live(m.run) { // it came along with other mail of its thread
			return l.decideBind(ctx, m, w, by)
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
		along, err := l.unbind(ctx, m, by)
		if err != nil {
			return err
		}
		return l.bindMail(ctx, m, w, by, along...)
	})
}

// Undo takes a decision back: a bind while its hold lasts, a dismissal at any
// time. The mail is in the queue again, also if the engine had settled it by
// itself before. Later it is [ErrTooLate].
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
		_, err := l.unbind(ctx, m, by)
		return err
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

// decide runs fn on mail and a workflow ("" for none) with every lock that a
// decision needs, in order: the thread's key, the workflows, the mail. Which
// workflows those are is read under the key: another person may have decided
// meanwhile.
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
		if m, err = oneOf(ctx, l.tx, scanMail, e.st.MailRead, e.cfg.Name, m.eventID); err != nil {
			return err
		}
		o, err := l.owner(ctx, m.inbox, m.thread)
		if err != nil {
			return err
		}
		if err := l.lock(ctx, workflow, m.target, o.workflow); err != nil {
			return err
		}
		if m, err = oneOf(ctx, l.tx, scanMail, e.st.MailByEvent, e.cfg.Name, m.eventID); err != nil {
			return err
		}
		if err := l.tx.Together(ctx, l.clock()); err != nil { // the locks may have taken long, and a hold has ended
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

// bindMail gives mail to a workflow. If its thread comes with it, so does the
// thread's other mail: what waits, and along, which this transaction took from
// another workflow.
func (l *ledger) bindMail(ctx context.Context, m *mailRow, w *workflowRow, by string, along ...*mailRow) error {
	switch {
	case w == nil || w.inbox != m.inbox:
		return ErrNotFound
	case w.Status.Terminal():
		return ErrTerminal
	}
	if err := l.decideBind(ctx, m, w, by); err != nil {
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
	for _, other := range along {
		l.bound(other, w, hold)
	}
	return l.takeAlong(ctx, m.inbox, m.thread, func(other *mailRow) { l.bound(other, w, hold) })
}

func (l *ledger) decideBind(ctx context.Context, m *mailRow, w *workflowRow, by string) error {
	m.decision, m.target = "bind", w.id
	l.decided(m, "bound", "to "+w.id+" by "+by)
	_, err := l.tx.Exec(ctx, l.e.st.MailDecide, m.id, m.decision, m.target, by)
	return err
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

// unbind takes a bind back that no run has taken yet, and the mail that went
// along.
func (l *ledger) unbind(ctx context.Context, m *mailRow, by string) (along []*mailRow, err error) {
	w := l.workflows[m.target]
	if m.decision != "bind" || m.place != placeInput || w == nil || m.consumed || !m.due.After(l.now) {
		return nil, ErrTooLate
	}
	given, err := l.giveBack(ctx, m, w)
	if err != nil {
		return nil, err
	}
	along, err = rowsOf(ctx, l.tx, scanMail, l.e.st.MailAlong, l.e.cfg.Name, w.id, w.run, m.inbox, m.thread)
	if err != nil {
		return nil, err
	}
	if !given { // the thread was the workflow's before, or is by another bind
		along = nil
	}
	for _, other := range along {
		l.unplace(other)
	}
	w.state = w.takeAway(1+int64(len(along)), l.now)
	l.decided(m, "unbound", "from "+w.id+" by "+by)
	l.unplace(m)
	return along, l.undecide(ctx, m)
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
