package resume

import (
	"context"
	"errors"
	"slices"

	"github.com/replywake/replywake/internal/sqldb"
)

// adopt binds a thread to a workflow and takes along the mail of that thread
// that nobody has placed. The caller holds the thread's key and the workflow's
// row.
//
// A thread of a finished workflow moves. One of another live workflow stays,
// and conflict names that workflow.
func (l *ledger) adopt(ctx context.Context, inbox, thread string, w *workflowRow, matchedBy string) (conflict string, err error) {
	conflict, err = l.bind(ctx, inbox, thread, w, matchedBy)
	if err != nil || conflict != "" {
		return conflict, err
	}
	return "", l.takeAlong(ctx, inbox, thread, func(m *mailRow) { l.follow(m, w) })
}

// takeAlong places a bound thread's unplaced mail, and what is in review and
// no person has decided, each row once.
func (l *ledger) takeAlong(ctx context.Context, inbox, thread string, place func(*mailRow)) error {
	waiting, err := rowsOf(ctx, l.tx, scanMail, l.e.st.ThreadMail, l.e.cfg.Name, l.e.stream, inbox, thread)
	if err != nil {
		return err
	}
	for _, m := range waiting {
		if !slices.ContainsFunc(l.mail, func(other *mailRow) bool { return other.id == m.id }) {
			place(m)
		}
	}
	return nil
}

// follow places mail with the owner of its thread.
func (l *ledger) follow(m *mailRow, w *workflowRow) {
	if w.Status.Terminal() {
		l.review(m, ReasonLateReply, nil)
		return
	}
	l.input(m, w, matchedByThread, l.now)
}

// bind makes the workflow the thread's owner: the only writer of thread rows
// but Undo.
func (l *ledger) bind(ctx context.Context, inbox, thread string, w *workflowRow, matchedBy string) (conflict string, err error) {
	args := []any{l.e.cfg.Name, l.e.stream, inbox, thread, w.id, w.run, matchedBy}
	n, err := l.tx.Exec(ctx, l.e.st.ThreadInsert, args...)
	if err != nil {
		return "", err
	}
	if n == 1 {
		l.record(w, "thread", thread+" by "+matchedBy)
		return "", nil
	}
	o, err := l.owner(ctx, inbox, thread)
	if err != nil || o == (owner{w.id, w.run}) {
		return "", err
	}
	held, err := l.one(ctx, o.workflow)
	if err != nil {
		return "", err
	}
	if held.live(o.run) {
		return o.workflow, nil
	}
	l.record(w, "thread", thread+" by "+matchedBy+", moved from "+o.workflow)
	if held != nil && held.id != w.id {
		l.record(held, "thread", thread+" moved to "+w.id)
	}
	_, err = l.tx.Exec(ctx, l.e.st.ThreadMove, args...)
	return "", err
}

// giveBack takes a thread that a person gave to w by binding m from it again:
// its owner is the earlier one, if it had one. It says whether there was such a
// thread.
func (l *ledger) giveBack(ctx context.Context, m *mailRow, w *workflowRow) (bool, error) {
	for _, query := range []string{l.e.st.ThreadBack, l.e.st.ThreadDrop} {
		n, err := l.tx.Exec(ctx, query, l.e.cfg.Name, l.e.stream, m.inbox, m.thread, w.id, m.id)
		if err != nil || n > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// owner is a thread's owner; zero if there is none.
func (l *ledger) owner(ctx context.Context, inbox, thread string) (owner, error) {
	var o owner
	err := sqldb.One(ctx, l.tx, l.e.st.ThreadOwner, []any{l.e.cfg.Name, l.e.stream, inbox, thread}, &o.workflow, &o.run)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = nil
	}
	return o, err
}

// lockOwner locks the owner of a thread and makes sure that it still is. The
// row is nil if the thread has no owner, or one whose row is pruned.
func (l *ledger) lockOwner(ctx context.Context, inbox, thread string) (*workflowRow, owner, error) {
	for {
		o, err := l.owner(ctx, inbox, thread)
		if err != nil || o.workflow == "" {
			return nil, o, err
		}
		w, err := l.one(ctx, o.workflow)
		if err != nil {
			return nil, o, err
		}
		if again, err := l.owner(ctx, inbox, thread); err != nil || again == o {
			return w, o, err
		}
	}
}
