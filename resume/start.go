package resume

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// Start describes a workflow to begin.
type Start struct {
	ID           string // your name for it, up to 200 bytes; empty makes a random one
	Kind         string // your own word for the step to branch on; may be empty
	Inbox        string // one of the engine's
	Counterparty string // the address the answer is expected from
	State        any    // stored as JSON, see Run.Unmarshal

	// OnlyNew refuses an ID that any workflow has had, also one that is over,
	// with ErrExists.
	OnlyNew bool

	// First is how it begins, such as Send(mail).Wait(48*time.Hour). The zero
	// Next runs the step at once, with no input.
	First Next
}

var errFirstSaves = errors.New("put what it would Save into State")

const maxID = 200

func (s Start) check(e *Engine) (counterparty string, saved []byte, err error) {
	var faults []error
	if len(s.ID) > maxID || !visible(s.ID) {
		faults = append(faults, fmt.Errorf("%w: ID: want at most %d visible characters", Err, maxID))
	}
	if !e.cfg.owns(s.Inbox) {
		faults = append(faults, fmt.Errorf("%w: %q", ErrInbox, s.Inbox))
	}
	counterparty, cerr := client.NormalizeAddress(s.Counterparty)
	if cerr != nil {
		faults = append(faults, fmt.Errorf("%w: Counterparty: not an e-mail address", Err))
	} else if e.own[s.Inbox][counterparty] {
		faults = append(faults, fmt.Errorf("%w: Counterparty is the inbox's own address", Err))
	}
	if s.First.kind != "" {
		if ferr := s.First.check(); ferr != nil || s.First.saves {
			faults = append(faults, fmt.Errorf("%w: First: %w", Err, cmp.Or(ferr, errFirstSaves)))
		}
	}
	if s.State != nil {
		if saved, cerr = json.Marshal(s.State); cerr != nil {
			faults = append(faults, fmt.Errorf("%w: State: %w", Err, cerr))
		}
	}
	return counterparty, saved, errors.Join(faults...)
}

func visible(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f {
			return false
		}
	}
	return true
}

func (e *Engine) start(ctx context.Context, tx sqldb.Tx, s Start) (string, error) {
	counterparty, saved, err := s.check(e)
	if err != nil {
		return "", err
	}
	if s.ID == "" {
		s.ID = rand.Text()
	}
	if err := e.compare(ctx, tx); err != nil {
		return "", err
	}
	l, err := e.ledger(ctx, tx)
	if err != nil {
		return "", err
	}
	// Shared: two starts may go on side by side, but not while the matcher
	// counts this counterparty's workflows.
	if err := e.lockShared(ctx, tx, e.addressKey(s.Inbox, counterparty)); err != nil {
		return "", err
	}
	w, err := l.create(ctx, s, counterparty, saved)
	if err != nil {
		return "", err
	}
	w.state = state{Status: StatusRunnable, Gen: w.Gen, Kick: true, Due: l.now}
	l.record(w, "started", "")
	if s.First.kind != "" {
		if s.First.send != nil {
			if err := l.plan(ctx, w, s.First, false); err != nil {
				return "", err
			}
		}
		w.state = w.commit(s.First, 0, l.now)
	}
	return s.ID, l.save(ctx)
}

// create makes the row, or takes over that of a finished run of the same ID.
func (l *ledger) create(ctx context.Context, s Start, counterparty string, saved []byte) (*workflowRow, error) {
	w := &workflowRow{id: s.ID, run: rand.Text(), kind: s.Kind, inbox: s.Inbox, counterparty: counterparty, saved: saved}
	args := []any{l.e.cfg.Name, w.id, w.run, w.kind, w.inbox, w.counterparty, StatusRunnable, saved}
	for {
		n, err := l.tx.Exec(ctx, l.e.st.WorkflowInsert, args...)
		if err != nil {
			return nil, err
		}
		if n == 1 {
			break
		}
		old, err := oneOf(ctx, l.tx, scanWorkflow, l.e.st.WorkflowLock, l.e.cfg.Name, w.id)
		if err != nil {
			return nil, err
		}
		if old == nil { // retention ended between the two
			continue
		}
		if s.OnlyNew || !old.Status.Terminal() {
			return nil, ErrExists
		}
		w.Gen = old.Gen + 1
		if _, err := l.tx.Exec(ctx, l.e.st.WorkflowRestart, args...); err != nil {
			return nil, err
		}
		break
	}
	l.workflows[w.id] = w
	return w, nil
}

// plan writes the send that a step decided on: its exact bytes and the key
// that every attempt carries. It must be committed before the first attempt.
func (l *ledger) plan(ctx context.Context, w *workflowRow, next Next, answering bool) error {
	sealed, err := l.e.mail.Seal(w.inbox, *next.send)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsealable, err)
	}
	recipients := []string{}
	for _, to := range next.send.To {
		n, err := client.NormalizeAddress(to)
		if err != nil {
			return fmt.Errorf("%w: a recipient is not an e-mail address", errUnsealable)
		}
		recipients = append(recipients, n)
	}
	list, _ := json.Marshal(recipients) // strings always marshal
	step := w.Step + 1
	_, err = l.tx.Exec(ctx, l.e.st.SendInsert, l.e.cfg.Name, w.id, w.run, step, w.run+"-"+strconv.FormatInt(step, 10), w.inbox, sealed.ReplyTo,
		sealed.Body, hashOf(sealed.Body), w.counterparty, string(list), next.send.Subject, answering)
	l.history = append(l.history, map[string]any{"workflow": w.id, "run": w.run, "event_id": "", "what": "planned", "step": step, "detail": ""})
	return err
}

var errUnsealable = fmt.Errorf("%w: mail that cannot be sent", Err)

func (e *Engine) signal(ctx context.Context, tx sqldb.Tx, workflow, id string, data []byte) error {
	if id == "" || len(id) > maxID || !visible(id) {
		return fmt.Errorf("%w: signal ID: want 1 to %d visible characters", Err, maxID)
	}
	l, err := e.ledger(ctx, tx)
	if err != nil {
		return err
	}
	w, err := l.one(ctx, workflow)
	switch {
	case err != nil:
		return err
	case w == nil:
		return ErrNotFound
	case w.Status.Terminal():
		return ErrTerminal
	}
	m := &mailRow{kind: kindSignal, eventID: "signal:" + w.run + ":" + id, inbox: w.inbox, data: data}
	if _, err := l.tell(ctx, w, m, matchedBySignal); err != nil {
		return err
	}
	return l.save(ctx)
}

// The kinds of mail rows that no provider sends.
const (
	kindSignal    events.Kind = "signal"
	kindSendError events.Kind = "send_error"
)

// tell gives the workflow an input that is no event. The same event ID again
// is no second input: told is false.
func (l *ledger) tell(ctx context.Context, w *workflowRow, m *mailRow, by string) (told bool, err error) {
	n, err := l.tx.Exec(ctx, l.e.st.MailTell, l.e.cfg.Name, l.e.stream, m.eventID, m.kind, m.inbox, w.id, w.run, by, m.reason, m.data)
	if err != nil || n == 0 {
		return false, err
	}
	w.state = w.arrive(1, l.now)
	l.record(w, "input", string(m.kind)+" by "+by)
	return true, nil
}
