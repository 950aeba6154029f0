package resume

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/replywake/replywake/internal/sqldb"
)

// claim takes up to n due workflows under a lease.
func (e *Engine) claim(ctx context.Context, n int) (claimed []*workflowRow, err error) {
	if err := e.take(ctx); err != nil {
		return nil, err
	}
	err = e.inTx(ctx, func(l *ledger) error {
		claimed = nil
		rows, err := rowsOf(ctx, l.tx, scanWorkflow, e.st.WorkflowDue, e.cfg.Name, n)
		if err != nil || len(rows) == 0 {
			return err
		}
		through, err := l.through(ctx)
		if err != nil {
			return err
		}
		for _, w := range rows {
			l.workflows[w.id] = w
			was := w.Status
			var ours bool
			if w.state, ours = w.claim(l.now, through, e.cfg.Lease, int64(e.cfg.Attempts)); ours {
				w.owner = e.owner
				claimed = append(claimed, w)
			}
			if was == StatusRunning {
				l.record(w, "lease_lost", "")
			}
		}
		return nil
	})
	if err != nil { // not committed: nothing is ours
		return nil, err
	}
	return claimed, nil
}

// through is the moment up to which everything has been received, as the
// stream's sweeper stored it. Without a sweeper the clock decides.
func (l *ledger) through(ctx context.Context) (time.Time, error) {
	var through time.Time
	err := sqldb.One(ctx, l.tx, l.e.st.Through, []any{l.e.stream}, &through)
	if errors.Is(err, sqldb.ErrNoRows) {
		return l.now, nil
	}
	return through, err
}

// runs are the runs that this process holds, for heartbeats and shutdown.
type runs struct {
	mu   sync.Mutex
	held map[runKey]context.CancelCauseFunc
}

type runKey struct {
	id  string
	gen int64
}

func (r *runs) add(w *workflowRow, cancel context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[runKey]context.CancelCauseFunc{}
	}
	r.held[runKey{w.id, w.Gen}] = cancel
}

func (r *runs) remove(w *workflowRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, runKey{w.id, w.Gen})
}

func (r *runs) keys() []runKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]runKey, 0, len(r.held))
	for k := range r.held {
		out = append(out, k)
	}
	return out
}

func (r *runs) cancel(k runKey, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.held[k]; cancel != nil {
		cancel(cause)
	}
}

// beat extends the leases of the runs this process holds, each only in its own
// generation. A run whose lease another worker has is stopped.
func (e *Engine) beat(ctx context.Context) error {
	held := e.runs.keys()
	if len(held) == 0 {
		return nil
	}
	var rows sqldb.Rows
	var ids []string
	for _, k := range held {
		rows, ids = append(rows, map[string]any{"held": k.id, "held_gen": k.gen}), append(ids, k.id)
	}
	alive := map[runKey]bool{}
	err := e.db.Tx(ctx, func(tx sqldb.Tx) error {
		return tx.Query(ctx, e.st.WorkflowBeat, []any{e.cfg.Name, rows, e.cfg.Lease, ids}, func(scan sqldb.Scan) error {
			var k runKey
			err := scan(&k.id, &k.gen)
			alive[k] = true
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, k := range held {
		if !alive[k] {
			e.runs.cancel(k, ErrLeaseLost)
		}
	}
	return nil
}

// What is left when an engine stops goes back at once, each only in its own
// claim.

// storing is a context for what is worth storing even if ctx has ended.
func storing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// backed notes what could not be given back.
func (e *Engine) backed(ctx context.Context, what string, err error) {
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		e.log.WarnContext(ctx, "a lease could not be given back; it runs out by itself", "of", what, "error", err)
	}
}

func (e *Engine) runBack(ctx context.Context, w *workflowRow) {
	ctx, done := storing(ctx)
	defer done()
	e.backed(ctx, "workflow "+w.id, e.giveBack(ctx, w))
}

// sendBack makes a claimed send due: SendBack after an attempt, SendUnclaim if
// there was none.
func (e *Engine) sendBack(ctx context.Context, query string, s *sendRow) {
	ctx, done := storing(ctx)
	defer done()
	e.backed(ctx, "send "+s.key, e.exec(ctx, query, e.cfg.Name, s.workflow, s.run, s.step, s.attempts))
}

func (e *Engine) unclaimSend(ctx context.Context, s *sendRow) { e.sendBack(ctx, e.st.SendUnclaim, s) }

func (e *Engine) mailBack(ctx context.Context, m *mailRow) {
	ctx, done := storing(ctx)
	defer done()
	e.backed(ctx, "event "+m.eventID, e.exec(ctx, e.st.MailWait, m.id, time.Duration(0)))
}

// fenced locks the workflow in the run's own generation: ErrLeaseLost if
// another worker has claimed it since.
func (l *ledger) fenced(ctx context.Context, w *workflowRow) (*workflowRow, error) {
	row, err := oneOf(ctx, l.tx, scanWorkflow, l.e.st.WorkflowFenced, l.e.cfg.Name, w.id, w.run, w.Gen)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, ErrLeaseLost
	}
	l.workflows[row.id] = row
	return row, nil
}
