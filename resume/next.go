package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replywake/replywake/client"
)

// Next is what a step wants to happen. Make one with [Send], [Wait], [Done] or
// [Review]; the zero Next is refused.
type Next struct {
	kind   string
	send   *client.Outgoing
	wait   time.Duration
	done   bool
	review string
	save   any
	saves  bool
}

// Send sends mail and then waits for an input, without a deadline unless
// [Next.Wait] gives one. With ReplyTo set it answers a message in its thread.
func Send(mail client.Outgoing) Next { return Next{kind: "send", send: &mail} }

// Wait waits for an input, at most d; 0 is without a deadline. When the time
// is up the step runs with [Run.TimedOut].
func Wait(d time.Duration) Next { return Next{kind: "wait", wait: d} }

// Done ends the workflow. If an input arrived meanwhile, the step runs again
// with it instead.
func Done() Next { return Next{kind: "done", done: true} }

// Review puts the workflow before a person, who reads why. RunNow runs the
// step again.
func Review(why string) Next { return Next{kind: "review", review: why} }

// Wait sets how long the wait after a send may last, counted from the moment
// the provider accepts it; 0 is without a deadline.
func (n Next) Wait(d time.Duration) Next {
	n.wait = d
	return n
}

// Done ends the workflow once the send is accepted, unless an input is pending
// by then.
func (n Next) Done() Next {
	n.done = true
	return n
}

// Save stores v, as JSON, as the workflow's state for later runs. Without it
// the state stays as it is.
func (n Next) Save(v any) Next {
	n.save, n.saves = v, true
	return n
}

var errNext = errors.New("resume: the step returned no Next: use Send, Wait, Done or Review")

func (n Next) check() error {
	switch {
	case n.kind == "":
		return errNext
	case n.kind == "review" && n.review == "":
		return errors.New("resume: Review needs a reason")
	case n.wait < 0:
		return errors.New("resume: a wait cannot be negative")
	case n.done && n.wait > 0:
		return errors.New("resume: Done and Wait exclude each other")
	case n.kind == "done" && n.send != nil:
		return errors.New("resume: use Send(…).Done()")
	}
	return nil
}

// newState is the state to store.
func (n Next) newState(old []byte) ([]byte, error) {
	if !n.saves {
		return old, nil
	}
	b, err := json.Marshal(n.save)
	if err != nil {
		return nil, fmt.Errorf("resume: save state: %w", err)
	}
	return b, nil
}
