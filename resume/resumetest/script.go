package resumetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/replywake/replywake/client"
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
	messages []client.Message
	bodies   map[string]client.Body
	sealed   *client.Outgoing // the last
}

func newScript(c Call) *script {
	began := time.Now().Add(-time.Hour)
	s := &script{given: c, bodies: map[string]client.Body{}}
	s.messages = []client.Message{{ID: scriptQuestion, Inbox: scriptInbox, Thread: scriptThread, Outbound: true, At: began}}
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
			m.At = began.Add(time.Duration(i+1) * time.Minute)
		}
		in.Body.Available = true
		s.messages = append(s.messages, m)
		s.bodies[m.ID] = in.Body
	}
	return s
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

func (s *script) Stream() events.Stream { return events.Stream{Name: "script"} }

func (s *script) Seal(inbox string, out client.Outgoing) (client.Sealed, error) {
	body, err := json.Marshal(out)
	s.sealed = &out
	return client.Sealed{Inbox: inbox, ReplyTo: out.ReplyTo, Body: body}, err
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
