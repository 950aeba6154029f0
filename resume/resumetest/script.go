package resumetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

const (
	scriptInbox    = "inbox"
	scriptThread   = "thread"
	scriptQuestion = "question"
	scriptApproval = "approval"
)

// script is a provider for one call: one thread with the question and what
// came.
type script struct {
	given    Call
	mail     *efa.Client // seals; it has no provider
	asked    time.Time   // when the question left
	messages []client.Message
	bodies   map[string]client.Body
	sealed   *client.Outgoing // the last
}

func newScript(c Call) *script {
	last := earliest(c.Inputs).Add(-time.Hour)
	c.Inputs = slices.Clone(c.Inputs)
	s := &script{given: c, asked: last.Add(-time.Duration(c.Timeouts) * time.Hour), bodies: map[string]client.Body{}}
	s.messages = []client.Message{{ID: scriptQuestion, Inbox: scriptInbox, Thread: scriptThread, Outbound: true, At: s.asked}}
	for i, in := range c.Inputs {
		if in.Kind != resume.InputReply {
			continue
		}
		m := in.Message
		m.ID = cmp.Or(m.ID, fmt.Sprintf("message-%d", i+1))
		m.Inbox, m.Thread = scriptInbox, scriptThread
		if m.From.Text() == "" {
			m.From = client.NewUntrusted(c.Counterparty)
		}
		if m.At.IsZero() {
			m.At = last.Add(time.Minute)
		}
		last = m.At
		c.Inputs[i].Message = m
		in.Body.Available = true
		s.messages = append(s.messages, m)
		s.bodies[m.ID] = in.Body
	}
	return s
}

// earliest is when the first reply was written, now if none says when.
func earliest(inputs []resume.Input) time.Time {
	first := time.Now()
	for _, in := range inputs {
		if at := in.Message.At; in.Kind == resume.InputReply && !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

func (s *script) has(kind resume.InputKind) bool {
	for _, in := range s.given.Inputs {
		if in.Kind == kind {
			return true
		}
	}
	return false
}

// events tell of everything that came.
func (s *script) events() (out []events.Event) {
	say := func(ev events.Event) {
		ev.ID, ev.Stream, ev.Inbox = fmt.Sprintf("event-%d", len(out)+1), s.Stream().Name, scriptInbox
		out = append(out, ev)
	}
	for _, m := range s.messages[1:] {
		say(events.Event{Kind: events.KindReceived, Thread: scriptThread, Message: m.ID})
	}
	for _, in := range s.given.Inputs {
		switch in.Kind {
		case resume.InputBounce:
			say(events.Event{Kind: events.KindDelivery, Message: scriptQuestion, Delivery: cmp.Or(in.Delivery, client.DeliveryBounced), Version: 1})
		case resume.InputRejected:
			say(events.Event{Kind: events.KindApproval, Approval: scriptApproval, Decision: events.DecisionRejected})
		}
	}
	return out
}

// missing is an error that names the inputs that the step did not get.
func (s *script) missing(got []resume.Input) error {
	if len(got) == len(s.given.Inputs) {
		return nil
	}
	got = slices.Clone(got)
	var names []string
	for i, in := range s.given.Inputs {
		at := slices.IndexFunc(got, func(g resume.Input) bool { return same(in, g) })
		if at < 0 {
			names = append(names, fmt.Sprintf("%s (Inputs[%d]): %s", in.Kind, i, s.whyMissing(in)))
			continue
		}
		got = slices.Delete(got, at, at+1)
	}
	return fmt.Errorf("the engine would not give the step all Inputs: %s", strings.Join(names, "; "))
}

func same(given, got resume.Input) bool {
	switch given.Kind {
	case resume.InputReply: // a suspected bounce now, if a daemon sent it
		return got.Message.ID == given.Message.ID
	case resume.InputSignal:
		return got.Kind == given.Kind && got.Signal == given.Signal
	}
	return got.Kind == given.Kind && !got.Suspected
}

// whyMissing is the probable cause.
func (s *script) whyMissing(in resume.Input) string {
	neverLeft := s.has(resume.InputSendError) || s.has(resume.InputRejected)
	switch in.Kind {
	case resume.InputReply, resume.InputBounce:
		if neverLeft {
			return "with a send error or a rejection the question never left"
		}
		if in.Kind == resume.InputBounce {
			return "its Delivery is no failure, or was said before"
		}
		return "it is the inbox's own mail, or has another's ID"
	case resume.InputSignal:
		return "it has another's ID"
	case resume.InputRejected, resume.InputSendError:
		return "a call has at most one rejection or send error"
	}
	return "there is no such kind"
}

func (s *script) Stream() events.Stream { return events.Stream{Name: "script"} }

func (s *script) Seal(inbox string, out client.Outgoing) (client.Sealed, error) {
	sealed, err := s.mail.Seal(inbox, out)
	if err == nil {
		s.sealed = &out
	}
	return sealed, err
}

func (s *script) Send(context.Context, string, client.Sealed) (client.Outcome, error) {
	switch {
	case s.has(resume.InputSendError):
		return client.Outcome{}, &client.Error{Op: "send", Status: 422, Code: "refused", Class: client.ClassRequest}
	case s.has(resume.InputRejected):
		return client.Outcome{Held: true, Approval: scriptApproval}, nil
	}
	return client.Outcome{Message: scriptQuestion, Thread: scriptThread}, nil
}

func (s *script) Messages(context.Context, string, string) iter.Seq2[client.Message, error] {
	return func(yield func(client.Message, error) bool) {
		for _, m := range s.messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (s *script) Body(_ context.Context, _ string, m client.Message) (client.Body, error) {
	return s.bodies[m.ID], nil
}
