package resume

import (
	"context"
	"errors"
)

// Job is a part of an engine's work, for [Engine.Once].
type Job string

// The jobs of an engine.
const (
	JobMatch Job = "match" // place mail that Route could not
	JobWork  Job = "work"  // run a due workflow's step
	JobSend  Job = "send"  // try a due send
)

// Once does one piece of a job in this goroutine and says whether there was
// any: for hosts that wake up on a timer, and for tests that decide what
// happens when. Run does all jobs, many at once.
func (e *Engine) Once(ctx context.Context, job Job) (did bool, err error) {
	switch job {
	case JobMatch:
		return once(ctx, e.claimMail, e.tryMatch)
	case JobWork:
		return once(ctx, e.claim, e.work)
	case JobSend:
		return once(ctx, e.claimSends, e.trySend)
	}
	return false, errors.New("resume: unknown job " + string(job))
}

func once[T any](ctx context.Context, claim func(context.Context, int) ([]*T, error), run func(context.Context, *T)) (bool, error) {
	rows, err := claim(ctx, 1)
	for _, row := range rows {
		run(ctx, row)
	}
	return len(rows) > 0, err
}
