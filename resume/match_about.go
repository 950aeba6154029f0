package resume

import (
	"context"
	"slices"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// What the matcher does with events about mail of ours: deliveries, bounces,
// approvals, and messages taken for sending.

// matchAbout places an event about a message or approval of ours that Route
// did not know as ours, or that does not say the delivery's state.
func (e *Engine) matchAbout(ctx context.Context, m *mailRow) error {
	if err := e.readDelivery(ctx, m); err != nil {
		return err
	}
	return e.inTx(ctx, func(l *ledger) error {
		k, err := l.lookUp(ctx, []events.Event{{Kind: m.kind, Inbox: m.inbox, Message: m.message, Approval: m.approval}})
		if err != nil {
			return err
		}
		read := m.delivery
		if err := l.stillUnplaced(ctx, m); err != nil {
			return ignore(err, errNotMine)
		}
		m.delivery = read
		s := k.sent[address{m.inbox, m.message}]
		if m.kind == events.KindApproval {
			s = k.approvals[m.approval]
		}
		if s == nil {
			return l.unknown(ctx, m)
		}
		l.placeAbout(m, s)
		if m.place == placeUnplaced { // the provider's listing does not tell the state either
			m.place, m.reason, m.workflow, m.run = placeSettled, "noted", s.workflow, s.run
		}
		m.due = l.now
		l.mail = append(l.mail, m)
		return l.applied(ctx, m, k)
	})
}

// unknown settles an event about nothing of ours, once no send is without
// outcome that it could be about, and for an hour none held or without a message
// ID. A send that then turns out to be it finds the row: see noteAbout.
func (l *ledger) unknown(ctx context.Context, m *mailRow) error {
	if err := l.settled(ctx, m); err != nil {
		return err
	}
	n, err := l.count(ctx, l.e.st.SendDoubt, l.e.cfg.Name, m.inbox)
	if err != nil {
		return err
	}
	if n > 0 && l.now.Sub(m.arrived) <= outcomeWait {
		return errOpen
	}
	l.settle(m, reasonNotOurs)
	return nil
}

// readDelivery reads the state of a delivery whose event does not say it, from
// the listing of the message's thread.
func (e *Engine) readDelivery(ctx context.Context, m *mailRow) error {
	if m.kind != events.KindDelivery || m.delivery != client.DeliveryUnknown {
		return nil
	}
	l := &ledger{e: e, tx: e.db.Read()}
	s, err := l.sentAs(ctx, m.inbox, m.message)
	if err != nil || s == nil || s.thread == "" {
		return err
	}
	msg, err := e.find(ctx, m.inbox, s.thread, m.message)
	if err != nil && m.attempts > 5 && e.listed.blames(address{m.inbox, s.thread}, err) {
		return nil // a state that nobody can read is no news
	}
	m.delivery = msg.Delivery
	return err
}

// matchQueued: a message was taken for sending. It is one whose acceptance we
// know, or gives its ID to a send whose answer lacked it, or confirms a send
// that was held, or is not ours.
func (e *Engine) matchQueued(ctx context.Context, m *mailRow) error {
	var fit []*sendRow
	settled := false
	// First look without locks: reading the provider takes long.
	look := &ledger{e: e, tx: e.db.Read()}
	sent, err := look.sentAs(ctx, m.inbox, m.message)
	if err != nil {
		return err
	}
	if sent == nil {
		if err := e.settledNow(ctx, m); err != nil {
			return err
		}
		if fit, err = look.fits(ctx, m); err != nil {
			return e.unreadable(ctx, m, err)
		}
		settled = len(fit) == 0
	}
	return e.inTx(ctx, func(l *ledger) error { return ignore(l.confirm(ctx, m, fit, settled), errNotMine) })
}

// fits are the sends that a queued message may be: on the thread of a workflow
// that has one, its held reply or the accepted send without a message ID; else
// held sends with its recipients and subject, which the approval is bound to.
func (l *ledger) fits(ctx context.Context, m *mailRow) ([]*sendRow, error) {
	nameless, err := rowsOf(ctx, l.tx, scanSend, l.e.st.SendsNameless, l.e.cfg.Name, m.inbox, m.thread)
	if err != nil {
		return nil, err
	}
	held, err := rowsOf(ctx, l.tx, scanSend, l.e.st.SendsHeld, l.e.cfg.Name, m.inbox)
	if err != nil || len(held) == 0 {
		return nameless, err
	}
	o, err := l.owner(ctx, m.inbox, m.thread)
	if err != nil {
		return nil, err
	}
	msg, err := l.e.find(ctx, m.inbox, m.thread, m.message)
	if err != nil {
		return nil, err
	}
	fit := nameless
	for _, s := range held {
		if o.workflow == "" && sameMail(s, msg) || o == (owner{s.workflow, s.run}) && (s.replyTo != "" || sameMail(s, msg)) {
			fit = append(fit, s)
		}
	}
	return fit, nil
}

// confirm stores what a queued message was found to be.
func (l *ledger) confirm(ctx context.Context, m *mailRow, fit []*sendRow, notOurs bool) error {
	if m.thread != "" {
		if err := l.e.lockKeys(ctx, l.tx, l.e.threadKey(m.inbox, m.thread)); err != nil {
			return err
		}
	}
	var ids []string
	for _, s := range fit {
		ids = append(ids, s.workflow)
	}
	if err := l.lock(ctx, ids...); err != nil {
		return err
	}
	if err := l.stillUnplaced(ctx, m); err != nil {
		return err
	}
	switch {
	case notOurs: // the held ones were compared
		if err := l.settled(ctx, m); err != nil {
			return err
		}
		l.settle(m, reasonNotOurs)
		return nil
	case len(fit) > 1:
		if err := l.settled(ctx, m); err != nil {
			return err
		}
		l.review(m, ReasonSeveralCandidates, ids)
		return nil
	}
	if len(fit) == 0 {
		l.settle(m, "noted")
		return nil
	}
	if fit[0].state == sendHeld {
		if err := l.settled(ctx, m); err != nil {
			return err
		}
		l.settle(m, "noted")
		return l.acceptSend(ctx, fit[0], client.Outcome{Message: m.message, Thread: m.thread, Approval: fit[0].approval})
	}
	l.settle(m, "noted")
	s := fit[0]
	if _, err := l.tx.Exec(ctx, l.e.st.SendName, l.e.cfg.Name, s.workflow, s.run, s.step, m.message); err != nil {
		return err
	}
	return l.noteAbout(ctx, m.inbox, m.message)
}

func sameMail(s *sendRow, msg client.Message) bool {
	to := []string{}
	for _, a := range msg.To {
		if n, err := client.NormalizeAddress(a.Text()); err == nil {
			to = append(to, n)
		}
	}
	return s.subject == msg.Subject.Text() && slices.Equal(slices.Sorted(slices.Values(to)), slices.Sorted(slices.Values(s.recipients)))
}
