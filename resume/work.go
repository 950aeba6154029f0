package resume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/internal/sqldb"
)

// work runs one claimed workflow to a commit, or gives it back.
func (e *Engine) work(ctx context.Context, w *workflowRow) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.runs.add(w, cancel)
	defer e.runs.remove(w)

	ctx, measured := e.tel.run(ctx)
	err := e.recovered(ctx, w, e.runOnce)
	measured(err)
	store, done := storing(ctx)
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

// recovered makes a panic in code of the user's (a Policy, a joined write) an
// error of the step.
func (e *Engine) recovered(ctx context.Context, w *workflowRow, run func(context.Context, *workflowRow) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "the run panicked", "workflow", w.id, "step", w.Step, "stack", string(debug.Stack()))
			err = &stepError{fmt.Errorf("%w: the run panicked", Err)}
		}
	}()
	return run(ctx, w)
}

// runOnce loads what arrived, admits it, calls the step and commits.
func (e *Engine) runOnce(ctx context.Context, w *workflowRow) error {
	r := &reading{mail: e.mail, threads: map[address][]client.Message{}}
	in, err := e.load(ctx, w, r)
	if err != nil {
		return &serviceError{err}
	}
	if err := e.begin(ctx, w); err != nil {
		return err
	}
	accepted, verdicts, err := e.admit(ctx, w, in.ready)
	if err != nil {
		return err
	}
	for _, m := range in.late {
		verdicts = append(verdicts, m.toPerson(ReasonUnreadable, w))
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

// begin notes that the run comes to the user's code, if one before it ended
// badly: should its worker die now, that code may be why.
func (e *Engine) begin(ctx context.Context, w *workflowRow) error {
	if w.Attempts == 0 {
		return nil
	}
	return e.inTx(ctx, func(l *ledger) error {
		row, err := l.fenced(ctx, w)
		if err == nil {
			row.Begun = true
		}
		return err
	})
}

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

// call calls the step.
func (e *Engine) call(ctx context.Context, run *Run) (Next, error) {
	next, err := e.step(ctx, run)
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
		most := int64(e.cfg.Attempts)
		if errors.Is(cause, errLoop) {
			most = 0 // at once
		}
		row.state = row.fail(errorText(cause), l.now, stepBackoff(row.Attempts), most)
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
