package resume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// Senders drive planned sends to an outcome. A send is a leased row: its bytes
// and key never change, so any sender may try it again at any time.

// claimSends leases up to n due sends.
func (e *Engine) claimSends(ctx context.Context, n int) ([]*sendRow, error) {
	if err := e.take(ctx); err != nil || e.refused() {
		return nil, err
	}
	return claimOf(ctx, e.db, scanSend, e.st.SendClaim, e.cfg.Name, n, e.cfg.SendRetryAfter)
}

// trySend makes one attempt; a failure to store it leaves the row to its lease.
func (e *Engine) trySend(ctx context.Context, s *sendRow) {
	err := e.sendOne(ctx, s)
	if err != nil && ctx.Err() != nil { // it may have left: whoever is next asks, with the same bytes and key
		e.sendBack(ctx, e.st.SendBack, s)
		return
	}
	if err != nil {
		e.log.WarnContext(ctx, "sending failed", "workflow", s.workflow, "step", s.step, "error", err)
	}
}

// sendOne makes one attempt and stores what came of it.
func (e *Engine) sendOne(ctx context.Context, s *sendRow) error {
	now, err := e.now(ctx, e.db.Read())
	if err != nil {
		return err
	}
	if now.Sub(s.firstAttempt) > e.cfg.ReplayWindow {
		return e.settle(ctx, s, client.Outcome{}, client.ErrKeyExpired)
	}
	try, cancel := context.WithTimeoutCause(ctx, e.cfg.SendTimeout, errors.New("resume: the send took too long"))
	try, measured := e.tel.send(try)
	out, err := e.mail.Send(try, s.key, client.Sealed{Inbox: s.inbox, ReplyTo: s.replyTo, Body: s.body})
	measured(err)
	cancel()
	if at := ctx.Err(); at != nil && err != nil {
		return at // stopped
	}
	// The answer is worth storing even if the engine stops now.
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return e.settle(store, s, out, err)
}

// settle stores an attempt's outcome.
func (e *Engine) settle(ctx context.Context, s *sendRow, out client.Outcome, err error) error {
	if err == nil {
		e.credential(true)
		err := e.inTx(ctx, func(l *ledger) error {
			if out.Held {
				return l.holdSend(ctx, s, out)
			}
			return l.acceptSend(ctx, s, out)
		})
		e.Wake()
		return err
	}
	_ = e.seen(err)
	switch {
	case errors.Is(err, client.ErrConflict):
		return e.inTx(ctx, func(l *ledger) error { return l.doubtSend(ctx, s, "its key was used with another body") })
	case errors.Is(err, client.ErrKeyExpired):
		return e.inTx(ctx, func(l *ledger) error {
			return l.doubtSend(ctx, s, "its outcome is unknown and too old to ask for")
		})
	case errors.Is(err, client.ErrUncertain) && e.since(ctx, s.firstAttempt) > uncertainFor:
		return e.inTx(ctx, func(l *ledger) error {
			return l.doubtSend(ctx, s, "the provider itself does not know its outcome")
		})
	case isRefusal(err):
		err := e.inTx(ctx, func(l *ledger) error { return l.failSend(ctx, s, err) })
		e.Wake()
		return err
	}
	// Nothing is settled: the same bytes under the same key again, later. An
	// outcome that got lost on the way is asked for at the same pace; only a
	// provider that says no is given more and more time.
	stalls := int64(0)
	if !errors.Is(err, client.ErrUnavailable) {
		stalls = s.stalls + 1
	}
	return e.exec(ctx, e.st.SendLater, e.cfg.Name, s.workflow, s.run, s.step, s.attempts,
		e.backoff(e.cfg.SendRetryAfter, max(stalls, 1), err), reasonOf(err), stalls)
}

// uncertainFor is how long a provider may take to find out what became of a
// send. It will not send it again by itself, and neither may we.
const uncertainFor = 6 * time.Hour

// isRefusal says whether the provider itself, with a code of its own, refuses
// the request. A bare 4xx may be a gateway's in between.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Class == client.ClassRequest && e.Code != "" && !errors.Is(err, client.ErrInProgress) && !errors.Is(err, client.ErrUncertain)
}

// reasonOf is what a row keeps of an error: never a stranger's text.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", err)
}

// patience is how long a refused credential is left alone, and the most that a
// Retry-After is honoured.
const patience = 5 * time.Minute

// backoff is how long to wait after the n-th try in a row that failed with
// err: base, doubling up to ten times SendRetryAfter, with jitter.
func (e *Engine) backoff(base time.Duration, n int64, err error) time.Duration {
	if after := client.RetryAfter(err); after > 0 {
		return min(after, patience)
	}
	if err != nil && client.ClassOf(err) == client.ClassCredential {
		return patience
	}
	top := 10 * e.cfg.SendRetryAfter
	for wait := base; n > 0 && wait < top; wait *= 2 {
		if n--; n == 0 {
			top = wait
		}
	}
	return top/2 + time.Duration(rand.Int64N(int64(top/2)+1))
}

// readBase is where the back-off of reads begins.
func (e *Engine) readBase() time.Duration { return min(time.Second, e.cfg.SendRetryAfter) }

// lockSend locks a send's thread, workflow and row, in that order. The send is
// nil once it has an outcome: whoever comes later changes nothing.
func (l *ledger) lockSend(ctx context.Context, s *sendRow, thread string) (*workflowRow, *sendRow, error) {
	if thread != "" {
		if err := l.e.lockKeys(ctx, l.tx, l.e.threadKey(s.inbox, thread)); err != nil {
			return nil, nil, err
		}
	}
	w, err := l.one(ctx, s.workflow)
	if err != nil || w == nil {
		return nil, nil, err
	}
	now, err := oneOf(ctx, l.tx, scanSend, l.e.st.SendLock, l.e.cfg.Name, s.workflow, s.run, s.step)
	if err != nil || now == nil || now.state != sendPlanned && now.state != sendHeld {
		return w, nil, err
	}
	return w, now, nil
}

func (l *ledger) settleSend(ctx context.Context, s *sendRow, to string, out client.Outcome, why string) error {
	_, err := l.tx.Exec(ctx, l.e.st.SendSettle, l.e.cfg.Name, s.workflow, s.run, s.step, to, out.Message, out.Thread, out.Approval, why)
	return err
}

// acceptSend: the mail left, or will. Its thread is the workflow's, mail that
// already stands there is adopted, and the workflow rests or goes on.
func (l *ledger) acceptSend(ctx context.Context, s *sendRow, out client.Outcome) error {
	w, open, err := l.lockSend(ctx, s, out.Thread)
	if err != nil || open == nil {
		return err
	}
	if err := l.settleSend(ctx, s, sendAccepted, out, ""); err != nil {
		return err
	}
	if w.run != s.run { // the ID was started anew; replies to this are late
		earlier := &workflowRow{id: s.workflow, run: s.run, state: state{Status: StatusCanceled, Step: s.step}}
		if out.Thread != "" {
			_, err = l.adopt(ctx, s.inbox, out.Thread, earlier, matchedBySend)
		}
		return err
	}
	l.record(w, "sent", out.Message+" in "+out.Thread)
	var conflict string
	if out.Thread != "" { // first, so that a reply that is there already counts as pending
		if conflict, err = l.adopt(ctx, s.inbox, out.Thread, w, matchedBySend); err != nil {
			return err
		}
	}
	over := w.Status.Terminal()
	w.state = w.accepted(s.step, l.now)
	if conflict != "" {
		l.record(w, "conflict", "thread "+out.Thread+" belongs to "+conflict)
		if !over { // also if that was all it had to do
			w.state = w.review("its mail stands in a thread of workflow " + conflict)
		}
	}
	return l.noteAbout(ctx, s.inbox, out.Message)
}

// noteAbout places what came about a message before we knew it was ours, also
// what was settled as not ours by then.
func (l *ledger) noteAbout(ctx context.Context, inbox, message string) error {
	if message == "" {
		return nil
	}
	rows, err := rowsOf(ctx, l.tx, scanMail, l.e.st.MailAbout, l.e.cfg.Name, inbox, message)
	if err != nil || len(rows) == 0 {
		return err
	}
	sent, err := l.sentAs(ctx, inbox, message)
	if err != nil {
		return err
	}
	for _, m := range rows {
		if m.kind == events.KindQueued {
			l.settle(m, "noted")
			continue
		}
		if err := l.placeAgain(ctx, m, sent); err != nil {
			return err
		}
	}
	return nil
}

// placeAgain places what came about a send before we knew the send.
func (l *ledger) placeAgain(ctx context.Context, m *mailRow, s *sendRow) error {
	m.place, m.reason, m.due = placeUnplaced, "", l.now
	l.placeAbout(m, s)
	l.mail = append(l.mail, m)
	return l.applied(ctx, m, known{approvals: map[string]*sendRow{s.approval: s}})
}

// holdSend: a person at the provider must approve it, or has refused already.
func (l *ledger) holdSend(ctx context.Context, s *sendRow, out client.Outcome) error {
	w, open, err := l.lockSend(ctx, s, "")
	if err != nil || open == nil || open.state == sendHeld {
		return err
	}
	if err := l.settleSend(ctx, s, sendHeld, out, ""); err != nil {
		return err
	}
	if w.run == s.run {
		l.record(w, "held", out.Approval)
		w.state = w.held(s.step)
	}
	open.state, open.approval = sendHeld, out.Approval
	rows, err := rowsOf(ctx, l.tx, scanMail, l.e.st.MailApproval, l.e.cfg.Name, out.Approval)
	if err != nil {
		return err
	}
	for _, m := range rows {
		if err := l.placeAgain(ctx, m, open); err != nil {
			return err
		}
	}
	return nil
}

// failSend: the provider refuses the request; the step is told.
func (l *ledger) failSend(ctx context.Context, s *sendRow, cause error) error {
	w, open, err := l.lockSend(ctx, s, "")
	if err != nil || open == nil || open.state == sendHeld || open.attempts != s.attempts {
		return err // a stale refusal decides nothing
	}
	why := reasonOf(cause)
	if err := l.settleSend(ctx, s, sendFailed, client.Outcome{}, why); err != nil {
		return err
	}
	if !w.live(s.run) {
		return nil
	}
	if err := l.tellFailure(ctx, w, s, why); err != nil {
		return err
	}
	w.state = w.refused(s.step, l.now)
	l.record(w, "refused", why)
	return nil
}

// tellFailure tells the step, once, that a send will not happen.
func (l *ledger) tellFailure(ctx context.Context, w *workflowRow, s *sendRow, why string) error {
	_, err := l.tell(ctx, w, &mailRow{kind: kindSendError, eventID: s.failureID(), inbox: s.inbox, reason: why}, matchedByEngine)
	return err
}

// failureID is the event ID of the input that tells of the send's failure.
func (s *sendRow) failureID() string { return "send:" + s.key }

// doubtSend puts a send whose outcome nobody can ask for before a person.
func (l *ledger) doubtSend(ctx context.Context, s *sendRow, why string) error {
	w, open, err := l.lockSend(ctx, s, "")
	if err != nil || open == nil || open.state == sendHeld || open.attempts != s.attempts {
		return err
	}
	if err := l.settleSend(ctx, s, sendUnknown, client.Outcome{}, why); err != nil {
		return err
	}
	if w.live(s.run) {
		l.record(w, "review", why)
		w.state = w.reviewSend(s.step, why)
	}
	return nil
}
