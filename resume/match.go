package resume

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// The matcher reads what Route could not place and binds it, settles it, or
// puts it before a person.

const (
	matchers = 8 // at once in a process
	// outcomeWait is how long a stranger's mail waits for sends of its inbox,
	// begun before it, whose outcome would tell its thread. What is about mail of
	// ours waits until they have one.
	outcomeWait = time.Hour
)

// soon is when to look again for what others are about to bring: 250 ms,
// doubling to a minute.
func soon(n int64) time.Duration { return min(250*time.Millisecond<<min(n, 10), time.Minute) }

// claimMail leases up to n unplaced mails that are due.
func (e *Engine) claimMail(ctx context.Context, n int) ([]*mailRow, error) {
	if err := e.take(ctx); err != nil || e.refused() {
		return nil, err
	}
	return claimOf(ctx, e.db, scanMail, e.st.MailUnplaced, e.cfg.Name, n, e.cfg.Lease)
}

// tryMatch looks at one mail, and sets when to look again if it stays unplaced.
func (e *Engine) tryMatch(ctx context.Context, m *mailRow) {
	ctx, measured := e.tel.match(ctx)
	err := e.matchOne(ctx, m)
	measured(err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		e.mailBack(ctx, m)
	default:
		e.retryMail(ctx, m, err)
	}
}

// retryMail sets when an unplaced row is looked at again.
func (e *Engine) retryMail(ctx context.Context, m *mailRow, cause error) {
	query, wait := e.st.MailRetry, e.backoff(e.readBase(), m.attempts, cause)
	later, isLater := errors.AsType[*laterError](cause)
	switch {
	case isLater:
		query, wait = e.st.MailWait, later.wait
	case errors.Is(cause, errOpen): // a quarter of the time it has waited already
		query, wait = e.st.MailWait, min(max(e.age(ctx, m)/4, 100*time.Millisecond), e.cfg.SendRetryAfter)
	case isMissing(cause): // listings lag for moments, rarely for long
		wait = soon(m.attempts)
	default:
		e.log.WarnContext(ctx, "matching failed", "event", m.eventID, "error", cause)
	}
	if err := e.exec(ctx, query, m.id, wait); err != nil {
		e.log.WarnContext(ctx, "a retry could not be stored; its lease runs out by itself", "event", m.eventID, "error", err)
	}
}

func (e *Engine) matchOne(ctx context.Context, m *mailRow) error {
	switch m.kind {
	case events.KindReceived:
		return e.matchReceived(ctx, m)
	case events.KindQueued:
		return e.matchQueued(ctx, m)
	}
	return e.matchAbout(ctx, m)
}

// matchReceived places a message: by its thread if that is known by now, else
// by its sender.
func (e *Engine) matchReceived(ctx context.Context, m *mailRow) error {
	placed, err := e.matchThread(ctx, m)
	if err != nil || placed {
		return err
	}
	if err := e.settledNow(ctx, m); err != nil && (!errors.Is(err, errOpen) || e.age(ctx, m) <= outcomeWait) {
		return err
	}
	if wait := e.reads.ask(m.inbox, time.Now()); wait > 0 {
		return &laterError{wait}
	}
	msg, err := e.find(ctx, m.inbox, m.thread, m.message)
	if err != nil {
		return e.unreadable(ctx, m, err)
	}
	from, _ := client.NormalizeAddress(msg.From.Text())
	return e.inTx(ctx, func(l *ledger) error { return ignore(l.matchSender(ctx, m, msg, from), errNotMine) })
}

// matchThread places a message whose thread is known.
func (e *Engine) matchThread(ctx context.Context, m *mailRow) (placed bool, err error) {
	if o, err := (&ledger{e: e, tx: e.db.Read()}).owner(ctx, m.inbox, m.thread); err != nil || o.workflow == "" {
		return false, err
	}
	err = e.inTx(ctx, func(l *ledger) error {
		placed, err = l.placeByThread(ctx, m)
		return ignore(err, errNotMine)
	})
	return placed, err
}

// placeByThread places a message with the owner of its thread, if it has one.
func (l *ledger) placeByThread(ctx context.Context, m *mailRow) (bool, error) {
	if err := l.e.lockKeys(ctx, l.tx, l.e.threadKey(m.inbox, m.thread)); err != nil {
		return false, err
	}
	w, o, err := l.lockOwner(ctx, m.inbox, m.thread)
	if err != nil || o.workflow == "" {
		return false, err
	}
	if err := l.stillUnplaced(ctx, m); err != nil {
		return true, err
	}
	if !w.live(o.run) {
		l.review(m, ReasonLateReply, nil)
		return true, nil
	}
	l.input(m, w, matchedByThread, l.now)
	return true, nil
}

// stillUnplaced reads the row again, under its lock: errNotMine if somebody
// placed it meanwhile.
func (l *ledger) stillUnplaced(ctx context.Context, m *mailRow) error {
	now, err := oneOf(ctx, l.tx, scanMail, l.e.st.MailByEvent, l.e.cfg.Name, m.eventID)
	if err != nil {
		return err
	}
	if now == nil || now.place != placeUnplaced {
		return errNotMine
	}
	*m = *now
	return nil
}

// matchSender applies the sender rule: the one workflow of this inbox that
// waits for this address, counted under lock over every status. One that has
// finished since the mail arrived counts too: that we look late makes nothing
// certain.
func (l *ledger) matchSender(ctx context.Context, m *mailRow, msg client.Message, from string) error {
	if err := l.e.lockKeys(ctx, l.tx, l.e.addressKey(m.inbox, from)); err != nil {
		return err
	}
	if placed, err := l.placeByThread(ctx, m); err != nil || placed {
		return err
	}
	if reason := l.e.notAReply(m.inbox, msg, from); reason != "" {
		if err := l.stillUnplaced(ctx, m); err != nil {
			return err
		}
		l.settle(m, reason)
		return nil
	}
	var found []*workflowRow
	if from != "" { // a From that is no address is nobody's
		var err error
		if found, err = rowsOf(ctx, l.tx, scanWorkflow, l.e.st.Candidates, l.e.cfg.Name, m.inbox, from, m.arrived); err != nil {
			return err
		}
	}
	for _, w := range found {
		l.workflows[w.id] = w
	}
	if err := l.stillUnplaced(ctx, m); err != nil {
		return err
	}
	err := l.settled(ctx, m)
	if errors.Is(err, errOpen) && l.now.Sub(m.arrived) > outcomeWait { // a person may know
		l.review(m, reasonFor(found), liveIDs(found))
		return nil
	}
	if err != nil {
		return err
	}
	return l.decide(ctx, m, msg, found)
}

// reasonFor says why a person must choose.
func reasonFor(found []*workflowRow) string {
	if len(found) > 1 {
		return ReasonSeveralCandidates
	}
	return ReasonNoCandidate
}

func liveIDs(found []*workflowRow) (ids []string) {
	for _, w := range found {
		if !w.Status.Terminal() {
			ids = append(ids, w.id)
		}
	}
	return ids
}

// settledNow is settled outside a transaction, before the provider is read.
func (e *Engine) settledNow(ctx context.Context, m *mailRow) error {
	l, err := e.ledger(ctx, e.db.Read())
	if err != nil {
		return err
	}
	return l.settled(ctx, m)
}

// decide binds the one candidate, or asks a person.
func (l *ledger) decide(ctx context.Context, m *mailRow, msg client.Message, found []*workflowRow) error {
	ids := liveIDs(found)
	switch {
	case len(found) != 1:
		l.review(m, reasonFor(found), ids)
		return nil
	case len(ids) == 0:
		l.review(m, ReasonLateReply, nil)
		return nil
	}
	w := found[0]
	began, err := l.began(ctx, w, written(m, msg))
	if err != nil {
		return err
	}
	if !began { // it cannot be an answer to mail that had not left
		l.review(m, ReasonNoCandidate, ids)
		return nil
	}
	conflict, err := l.bind(ctx, m.inbox, m.thread, w, matchedBySender)
	if err != nil {
		return err
	}
	if conflict != "" {
		l.review(m, ReasonConflict, append(ids, conflict))
		return nil
	}
	l.input(m, w, matchedBySender, l.now)
	return l.takeAlong(ctx, m.inbox, m.thread, func(other *mailRow) { l.follow(other, w) })
}

// settled is errOpen while a send of the inbox that began before m arrived has
// no outcome yet: its thread may be m's. Once none is open none can become so,
// since other sends begin after m.
func (l *ledger) settled(ctx context.Context, m *mailRow) error {
	n, err := l.count(ctx, l.e.st.SendOpen, l.e.cfg.Name, m.inbox, m.arrived)
	if err == nil && n > 0 {
		err = errOpen
	}
	return err
}

// clocksDiffer is how far the provider's clock may be behind the database's.
const clocksDiffer = time.Minute

// written is when a message was there at the latest: when it arrived here or,
// if its webhook came again and again, when the provider says.
func written(m *mailRow, msg client.Message) time.Time {
	if at := msg.At.Add(clocksDiffer); !msg.At.IsZero() && at.Before(m.arrived) {
		return at
	}
	return m.arrived
}

// began says whether the workflow's first send was under way at t.
func (l *ledger) began(ctx context.Context, w *workflowRow, t time.Time) (bool, error) {
	n, err := l.count(ctx, l.e.st.SendBegan, l.e.cfg.Name, w.id, w.run, t)
	return n > 0, err
}

// notAReply says why mail on a thread that nobody owns is nobody's answer.
func (e *Engine) notAReply(inbox string, msg client.Message, from string) string {
	switch {
	case msg.Outbound || e.own[inbox][from]:
		return "echo"
	case isDaemon(from):
		return "delivery_notice"
	}
	return ""
}

// isDaemon knows the senders of delivery notices by the local parts that RFC
// 5321 and common practice give them.
func isDaemon(from string) bool {
	local, _, _ := strings.Cut(from, "@")
	return local == "mailer-daemon" || local == "postmaster"
}

// find reads a message's line in its thread's listing.
func (e *Engine) find(ctx context.Context, inbox, thread, message string) (client.Message, error) {
	for msg, err := range e.mail.Messages(ctx, inbox, thread) {
		if err != nil {
			return client.Message{}, e.seen(err)
		}
		if msg.ID == message {
			e.credential(true)
			e.listed.succeeded(address{inbox, thread})
			return msg, nil
		}
	}
	e.listed.succeeded(address{inbox, thread})
	return client.Message{}, errUnreadable
}

// seen notes whether the provider accepts the credential.
func (e *Engine) seen(err error) error {
	if client.ClassOf(err) == client.ClassCredential {
		e.credential(false)
	}
	return err
}

// unreadable keeps a message that could not be read. After a day in which it
// was itself the trouble it is before a person.
func (e *Engine) unreadable(ctx context.Context, m *mailRow, cause error) error {
	if !e.listed.blames(address{m.inbox, m.thread}, cause) {
		return cause
	}
	now, err := e.now(ctx, e.db.Read())
	if err != nil {
		return err
	}
	if !m.givenUp(now, cause, e.cfg) {
		if err := e.exec(ctx, e.st.MailUnread, m.id, e.cfg.Lease); err != nil {
			return err
		}
		return cause
	}
	return e.inTx(ctx, func(l *ledger) error {
		if err := l.stillUnplaced(ctx, m); err != nil {
			return ignore(err, errNotMine)
		}
		l.review(m, ReasonUnreadable, nil)
		return nil
	})
}

// age is how long ago a row arrived.
func (e *Engine) age(ctx context.Context, m *mailRow) time.Duration { return e.since(ctx, m.arrived) }

// since is the time since t by the database's clock; 0 if it does not answer.
func (e *Engine) since(ctx context.Context, t time.Time) time.Duration {
	now, err := e.now(ctx, e.db.Read())
	if err != nil {
		return 0
	}
	return now.Sub(t)
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
