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
	JobWork  Job = "work"  // run one due workflow's step
	JobSend  Job = "send"  // drive due sends to an outcome
)

// Once does one piece of a job in this goroutine and says whether there was
// any: for hosts that wake up on a timer, and for tests that decide what
// happens when. A loop over all jobs until none does anything is what Run does
// at rest.
func (e *Engine) Once(ctx context.Context, job Job) (did bool, err error) {
	switch job {
	case JobMatch:
		n, err := e.match(ctx, ctx, 1)
		return n > 0, err
	case JobWork:
		claimed, _, err := e.claim(ctx, 1)
		for _, w := range claimed {
			e.work(ctx, w)
		}
		return len(claimed) > 0, err
	case JobSend:
		n, err := e.send(ctx, ctx, 1)
		return n > 0, err
	}
	return false, errors.New("resume: unknown job " + string(job))
}
