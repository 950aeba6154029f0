package resumetest

import (
	"context"
	"fmt"
)

func (w *world) context() context.Context { return context.Background() }

// story is what stands in the tables after the last commit, for people.
func (w *world) story() []string {
	w.mu.Lock()
	t := w.before
	w.mu.Unlock()
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, r := range t.workflows {
		say("workflow %s: %s, step %d, arrived %d, consumed %d, gen %d %s", r.ID, r.Status, r.Step, r.Arrived, r.Consumed, r.Gen, r.Error)
	}
	for _, r := range t.sends {
		say("send %s step %d: %s, message %s in %s", r.Workflow, r.Step, r.State, r.Message, r.Thread)
	}
	for _, r := range t.threads {
		say("thread %s: of %s by %s", r.Thread, r.Workflow, r.MatchedBy)
	}
	for _, r := range t.mail {
		say("mail %s (%s, message %s in %s): %s of %s by %s, consumed by gen %d, %s", r.EventID, r.Kind, r.Message, r.Thread, r.Place, r.Workflow,
			r.MatchedBy, r.ConsumedBy, r.Reason)
	}
	for _, r := range t.calls {
		say("step call %d of %s at step %d in gen %d, inputs:%s", r.ID, r.Workflow, r.Step, r.Gen, r.Inputs)
	}
	return out
}
