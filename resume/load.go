package resume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// reading reads threads once for a run.
type reading struct {
	mail    Mail
	threads map[address][]client.Message
	broken  map[address]error // while inputs are loaded: what need not be asked for again
}

func (r *reading) thread(ctx context.Context, inbox, thread string) ([]client.Message, error) {
	key := address{inbox, thread}
	if got, ok := r.threads[key]; ok {
		return got, nil
	}
	if err := r.broken[key]; err != nil {
		return nil, err
	}
	var out []client.Message
	for m, err := range r.mail.Messages(ctx, inbox, thread) {
		if err != nil {
			if r.broken != nil {
				r.broken[key] = err
			}
			return nil, err
		}
		out = append(out, m)
	}
	r.threads[key] = out
	return out, nil
}

// threadsOf are the threads a workflow owns, oldest first.
func (e *Engine) threadsOf(ctx context.Context, w *workflowRow) ([]address, error) {
	rows, err := rowsOf(ctx, e.db.Read(), func(scan sqldb.Scan, a *address) error { return scan(&a.inbox, &a.id) },
		e.st.ThreadsOf, e.cfg.Name, e.stream, w.id, w.run)
	out := make([]address, len(rows))
	for i, a := range rows {
		out[i] = *a
	}
	return out, err
}

// loaded is a pending input with its content.
type loaded struct {
	row      *mailRow
	input    Input
	position int // in its thread
}

// inputs is what load found.
type inputs struct {
	ready []*loaded
	late  []*mailRow // could not be read for so long that a person must look
	next  time.Time  // when what is not ready may be; zero if all is
	wait  bool       // something unreadable holds the workflow back
}

// load reads the content of a claimed workflow's pending inputs. An input that
// cannot be read yet stays pending. It holds the workflow back for a while,
// then the others go on without it. A read that fails is an error while the
// service may be away; the others are read all the same, as evidence.
func (e *Engine) load(ctx context.Context, w *workflowRow, r *reading) (inputs, error) {
	var in inputs
	pending, err := rowsOf(ctx, e.db.Read(), scanMail, e.st.MailPending, e.cfg.Name, w.id, w.run)
	if err != nil {
		return in, err
	}
	now, err := e.now(ctx, e.db.Read())
	if err != nil {
		return in, err
	}
	r.broken = map[address]error{}
	defer func() { r.broken = nil }()
	var away error
	for _, m := range pending {
		age := m.unreadFor(now)
		if m.due.After(now) {
			in.later(m.due)
			// Between two tries; or bound by a person while the deadline's run worked.
			in.wait = in.wait || m.unread > 0 && age < e.cfg.UnreadableFor || m.unread == 0 && w.TimedOut
			continue
		}
		got, err := e.read(ctx, m, r)
		switch {
		case err == nil:
			in.ready = append(in.ready, got)
		case ctx.Err() != nil, isRefused(err):
			return in, e.seen(err)
		case !e.bodies.blames(address{m.inbox, m.message}, err):
			away = err
		case m.givenUp(now, err, e.cfg):
			in.late = append(in.late, m)
		default:
			in.wait = in.wait || age < e.cfg.UnreadableFor
			wait := e.rereadAfter(age)
			if err := e.exec(ctx, e.st.MailUnread, m.id, wait); err != nil {
				return in, err
			}
			in.later(now.Add(wait))
		}
	}
	slices.SortStableFunc(in.ready, inOrder)
	return in, away
}

// unreadFor is how long the message has been the reason that it is not read.
func (m *mailRow) unreadFor(now time.Time) time.Duration {
	if m.unread == 0 {
		return 0
	}
	return now.Sub(m.unreadSince)
}

// givenUp says whether a person must look at a message that cannot be read. A
// service that fails must have failed it often: it may come and go.
func (m *mailRow) givenUp(now time.Time, err error, cfg Config) bool {
	return m.unreadFor(now) >= cfg.UnreadableUntil && (isMissing(err) || m.unread >= int64(cfg.Attempts))
}

// rereadAfter is when an unreadable message of that age is tried again: after
// its age once more, between a second and ten minutes, and at the moment at
// which it no longer holds its workflow back.
func (e *Engine) rereadAfter(age time.Duration) time.Duration {
	wait := min(max(age, time.Second), 10*time.Minute)
	if left := e.cfg.UnreadableFor - age; left > 0 {
		wait = min(wait, left)
	}
	return wait
}

func (in *inputs) later(t time.Time) {
	if in.next.IsZero() || t.Before(in.next) {
		in.next = t
	}
}

// isMissing says whether the provider itself says that the message is the
// trouble: it is not there yet, or will not be shown.
func isMissing(err error) bool {
	if errors.Is(err, errUnreadable) || errors.Is(err, client.ErrNotFound) {
		return true
	}
	return client.ClassOf(err) == client.ClassRequest
}

// isRefused says whether no read would succeed now: the credential or a quota
// is the trouble.
func isRefused(err error) bool {
	class := client.ClassOf(err)
	return class == client.ClassCredential || class == client.ClassQuota
}

// inOrder: by position within a thread; between threads by the messages' own
// times, then by arrival. The user's own inputs stand by arrival.
func inOrder(a, b *loaded) int {
	if a.row.thread == b.row.thread && a.row.inbox == b.row.inbox && a.row.thread != "" {
		return cmp.Compare(a.position, b.position)
	}
	if at, bt := a.input.Message.At, b.input.Message.At; !at.IsZero() && !bt.IsZero() && !at.Equal(bt) {
		return at.Compare(bt)
	}
	return cmp.Compare(a.row.id, b.row.id)
}

// read makes an input of a row.
func (e *Engine) read(ctx context.Context, m *mailRow, r *reading) (*loaded, error) {
	l := &loaded{row: m, input: Input{
		EventID: m.eventID, At: m.arrived, MatchedBy: m.matchedBy, Delivery: m.delivery, Reason: m.reason,
	}}
	switch m.kind {
	case events.KindReceived:
		return l, e.readMessage(ctx, l, r)
	case events.KindApproval:
		l.input.Kind = InputRejected
	case kindSendError:
		l.input.Kind = InputSendError
	case kindSignal:
		l.input.Kind, l.input.Data = InputSignal, m.data
		l.input.Signal = m.eventID[len("signal:")+len(m.run)+len(":"):]
	default:
		l.input.Kind = InputBounce
		l.input.Message.ID = m.message
	}
	return l, nil
}

func (e *Engine) readMessage(ctx context.Context, l *loaded, r *reading) error {
	l.input.Kind = InputReply
	messages, err := r.thread(ctx, l.row.inbox, l.row.thread)
	if err != nil {
		return err
	}
	e.listed.succeeded(address{l.row.inbox, l.row.thread})
	i := slices.IndexFunc(messages, func(m client.Message) bool { return m.ID == l.row.message })
	if i < 0 {
		return errUnreadable
	}
	l.position, l.input.Message = i, messages[i]
	if l.input.Body, err = e.mail.Body(ctx, l.row.inbox, messages[i]); err != nil {
		return err
	}
	e.credential(true)
	e.bodies.succeeded(address{l.row.inbox, l.row.message})
	if !l.input.Body.Available {
		return errUnreadable
	}
	return nil
}
