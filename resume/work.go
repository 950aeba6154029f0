package resume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/internal/sqldb"
)

// claim takes up to n due workflows under a lease.
func (e *Engine) claim(ctx context.Context, n int) (claimed []*workflowRow, err error) {
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
	return claimed, err
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
	for _, k := range held {
		rows = append(rows, map[string]any{"held": k.id, "held_gen": k.gen})
	}
	alive := map[runKey]bool{}
	err := e.db.Tx(ctx, func(tx sqldb.Tx) error {
		return tx.Query(ctx, e.st.WorkflowBeat, []any{e.cfg.Name, rows, e.cfg.Lease}, func(scan sqldb.Scan) error {
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

// work runs one claimed workflow to a commit, or gives it back.
func (e *Engine) work(ctx context.Context, w *workflowRow) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.runs.add(w, cancel)
	defer e.runs.remove(w)

	ctx, measured := e.tel.run(ctx)
	err := e.runOnce(ctx, w)
	measured(err)
	// What follows is worth storing even if the run was stopped.
	store, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	switch {
	case err == nil:
	case errors.Is(err, ErrLeaseLost):
		e.log.InfoContext(ctx, "another worker has the workflow; this run's work is dropped", "workflow", w.id)
	case errors.Is(context.Cause(ctx), ErrStopped):
		err = e.giveBack(store, w)
	default:
		e.log.WarnContext(ctx, "a run failed", "workflow", w.id, "step", w.Step, "error", err)
		err = e.failRun(store, w, err)
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		e.log.WarnContext(ctx, "a run's end could not be stored; its lease runs out by itself", "workflow", w.id, "error", err)
	}
	e.Wake()
}

// runOnce loads what arrived, admits it, calls the step and commits.
func (e *Engine) runOnce(ctx context.Context, w *workflowRow) error {
	r := &reading{mail: e.mail, threads: map[address][]client.Message{}}
	in, err := e.load(ctx, w, r)
	if err != nil {
		return &serviceError{err}
	}
	accepted, verdicts, err := e.admit(ctx, w, in.ready)
	if err != nil {
		return err
	}
	for _, m := range in.late {
		m.place, m.reason, m.workflow, m.candidates = placeReview, ReasonUnreadable, "", []string{w.id}
		verdicts = append(verdicts, m)
	}
	if in.wait || len(accepted) == 0 && !w.Kick && !w.TimedOut {
		return e.yield(ctx, w, verdicts, in.next)
	}
	run := e.newRun(w, r, accepted)
	next, err := e.call(ctx, run)
	if err != nil {
		return err
	}
	// From here on the fence decides, not the context: a stop, or a heartbeat
	// that meets the commit, must not leave its outcome in doubt.
	ctx, done := context.WithTimeoutCause(context.WithoutCancel(ctx), commitTimeout, errors.New("resume: the commit took too long"))
	defer done()
	return e.commit(ctx, run, next, accepted, verdicts)
}

const commitTimeout = 30 * time.Second

func (e *Engine) newRun(w *workflowRow, r *reading, accepted []*loaded) *Run {
	run := &Run{
		ID: w.id, RunID: w.run, Kind: w.kind, Inbox: w.inbox, Counterparty: w.counterparty, Step: w.Step, Attempt: w.Attempts + 1,
		Timeouts: w.Timeouts, TimedOut: w.TimedOut && len(accepted) == 0, engine: e, row: w, reading: r,
	}
	if run.TimedOut {
		run.Timeouts++
	}
	for _, l := range accepted {
		run.Inputs = append(run.Inputs, l.input)
	}
	return run
}

// call calls the step. A panic is an error of the step.
func (e *Engine) call(ctx context.Context, run *Run) (next Next, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "the step panicked", "workflow", run.ID, "step", run.Step, "stack", string(debug.Stack()))
			err = &stepError{fmt.Errorf("%w: the step panicked", Err)}
		}
	}()
	next, err = e.step(ctx, run)
	if cause := context.Cause(ctx); cause != nil {
		return next, cause // whatever it returned: it was stopped
	}
	if err == nil {
		err = next.check()
	}
	if err != nil {
		err = &stepError{err}
	}
	return next, err
}

// stepError: the step itself failed, whatever the error looks like.
type stepError struct{ err error }

func (s *stepError) Error() string { return s.err.Error() }
func (s *stepError) Unwrap() error { return s.err }

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

// commit consumes the inputs and stores what the step decided, in one
// transaction with what the step joined to it.
func (e *Engine) commit(ctx context.Context, run *Run, next Next, accepted []*loaded, verdicts []*mailRow) error {
	saved, err := next.newState(run.row.saved)
	if err != nil {
		return err
	}
	return e.db.Tx(ctx, func(tx sqldb.Tx) error {
		for _, join := range run.joins {
			if err := join(ctx, tx); err != nil {
				return err
			}
		}
		l, err := e.ledger(ctx, tx)
		if err != nil {
			return err
		}
		if err := l.commit(ctx, run, next, saved, accepted, verdicts); err != nil {
			return err
		}
		return l.save(ctx)
	})
}

func (l *ledger) commit(ctx context.Context, run *Run, next Next, saved []byte, accepted []*loaded, verdicts []*mailRow) error {
	w, err := l.fenced(ctx, run.row)
	if err != nil {
		return err
	}
	if len(accepted) == 0 && w.outrun(run.row.Arrived) {
		return errOutrun
	}
	if next.send != nil {
		if err := l.conflicts(ctx, run, w, next.send.ReplyTo); err != nil {
			return err
		}
		if err := l.plan(ctx, w, next, len(run.Replies()) > 0); err != nil {
			return err
		}
	}
	if err := l.consume(ctx, w, accepted); err != nil {
		return err
	}
	if err := l.judged(w, verdicts); err != nil {
		return err
	}
	if next.saves {
		if _, err := l.tx.Exec(ctx, l.e.st.WorkflowState, l.e.cfg.Name, w.id, saved); err != nil {
			return err
		}
	}
	w.state = w.commit(next, int64(len(accepted)), l.now)
	l.record(w, "step", next.kind)
	if w.Status == StatusDone || w.Status == StatusNeedsReview {
		l.record(w, string(w.Status), w.Error)
	}
	return nil
}

// conflicts finds out, before anything leaves, that the thread the step wants
// to answer in belongs to another live workflow.
func (l *ledger) conflicts(ctx context.Context, run *Run, w *workflowRow, replyTo string) error {
	thread := run.threadOf(replyTo)
	if thread == "" {
		return nil
	}
	o, err := l.owner(ctx, run.Inbox, thread)
	if err != nil || o.workflow == "" || o.workflow == w.id {
		return err
	}
	other, err := l.one(ctx, o.workflow)
	if err != nil || !other.live(o.run) {
		return err
	}
	return &conflictError{thread: thread, owner: other.id}
}

// conflictError: nothing of the run is stored. The step runs again with an
// input that says so beside the others.
type conflictError struct{ thread, owner string }

func (c *conflictError) Error() string { return "the thread belongs to workflow " + c.owner }

func (l *ledger) tellConflict(ctx context.Context, w *workflowRow, c *conflictError) error {
	m := &mailRow{
		kind: kindSendError, eventID: fmt.Sprintf("conflict:%s-%d:%s", w.run, w.Step+1, c.thread), inbox: w.inbox, reason: c.Error(),
	}
	if err := l.tell(ctx, w, m, matchedByEngine); err != nil {
		return err
	}
	w.state = w.release(l.now)
	return nil
}

// threadOf is the thread of a message the run has read; empty if it has not.
func (r *Run) threadOf(message string) string {
	for key, messages := range r.reading.threads {
		for _, m := range messages {
			if m.ID == message && message != "" {
				return key.id
			}
		}
	}
	return ""
}

// consume marks the inputs as taken by this run: all of them, or none.
func (l *ledger) consume(ctx context.Context, w *workflowRow, accepted []*loaded) error {
	if len(accepted) == 0 {
		return nil
	}
	var rows sqldb.Rows
	for i, a := range accepted {
		rows = append(rows, map[string]any{"id": a.row.id, "position": i, "proof": a.row.proof})
	}
	n, err := l.tx.Exec(ctx, l.e.st.MailConsume, w.Gen, rows)
	if err == nil && n != int64(len(accepted)) {
		err = errNotMine // one was taken away by a person meanwhile
	}
	return err
}

// judged stores verdicts: those inputs are no longer the workflow's.
func (l *ledger) judged(w *workflowRow, verdicts []*mailRow) error {
	for _, m := range verdicts {
		l.mail = append(l.mail, m)
		l.record(w, "verdict", m.eventID+": "+m.reason)
	}
	w.Consumed += int64(len(verdicts))
	return nil
}

// yield ends a run that calls no step.
func (e *Engine) yield(ctx context.Context, w *workflowRow, verdicts []*mailRow, next time.Time) error {
	return e.inTx(ctx, func(l *ledger) error {
		row, err := l.fenced(ctx, w)
		if err != nil {
			return err
		}
		if err := l.judged(row, verdicts); err != nil {
			return err
		}
		row.state = row.yield(l.now, next)
		return nil
	})
}

// giveBack returns a stopped run's workflow at once.
func (e *Engine) giveBack(ctx context.Context, w *workflowRow) error {
	return e.inTx(ctx, func(l *ledger) error {
		row, err := l.fenced(ctx, w)
		if err != nil {
			return err
		}
		row.state = row.release(l.now)
		return nil
	})
}

// serviceError: the provider or its answer, not the step, is the trouble.
type serviceError struct{ err error }

func (s *serviceError) Error() string { return "load inputs: " + s.err.Error() }
func (s *serviceError) Unwrap() error { return s.err }

// failRun backs off, or puts the workflow before a person. A provider that is
// away is not the step's fault: it is waited for as long as it takes.
func (e *Engine) failRun(ctx context.Context, w *workflowRow, cause error) error {
	if errors.Is(cause, errOutrun) || errors.Is(cause, errNotMine) {
		return e.giveBack(ctx, w)
	}
	return e.inTx(ctx, func(l *ledger) error {
		row, err := l.fenced(ctx, w)
		if err != nil {
			return err
		}
		if c, ok := errors.AsType[*conflictError](cause); ok {
			return l.tellConflict(ctx, row, c)
		}
		if isOutage(cause) {
			row.state = row.stall(reasonOf(cause), l.now, e.backoff(e.readBase(), row.Stalls+1, cause))
			return nil
		}
		row.state = row.fail(errorText(cause), l.now, stepBackoff(row.Attempts), int64(e.cfg.Attempts))
		l.record(row, "failed", "")
		return nil
	})
}

// isOutage says whether the provider or the database, not the step, is the
// trouble.
func isOutage(err error) bool {
	if _, ok := errors.AsType[*stepError](err); ok {
		return false
	}
	_, service := errors.AsType[*serviceError](err)
	return service || sqldb.IsUnavailable(err)
}

// errorText is what is kept of a step's error for a person.
func errorText(err error) string {
	const most = 500
	s := err.Error()
	if len(s) > most {
		s = s[:most]
	}
	return s
}

// stepBackoff: 1 s, doubling to 5 minutes, with jitter.
func stepBackoff(failed int64) time.Duration {
	top := min(time.Second<<min(failed, 10), 5*time.Minute)
	return top/2 + time.Duration(rand.Int64N(int64(top/2)+1))
}
