package main

import (
	"context"
	"slices"
	"strings"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/resume"
)

// request is what POST /workflows takes: ask a counterparty something, and
// acknowledge what comes back until there were enough replies.
type request struct {
	ID           string `json:"id"`
	InboxID      string `json:"inbox_id"`
	Counterparty string `json:"counterparty"`
	Subject      string `json:"subject"`
	Text         string `json:"text"`
	Replies      int    `json:"replies"`
}

// state is what a workflow remembers from run to run.
type state struct {
	Request request  `json:"request"`
	Acked   int      `json:"acked"`             // replies acknowledged
	Last    []string `json:"last,omitempty"`    // of them, those in the last send
	Refused bool     `json:"refused,omitempty"` // which the provider refused
}

// start is how a workflow begins: with the question.
func (r request) start() resume.Start {
	return resume.Start{ID: r.ID, OnlyNew: true, Inbox: r.InboxID, Counterparty: r.Counterparty, State: state{Request: r}, First: resume.Send(r.question())}
}

func (r request) question() client.Outgoing {
	return client.Outgoing{To: []string{r.Counterparty}, Subject: r.Subject, Text: r.Text}
}

// acknowledge answers the newest of the replies and names them all.
func (r request) acknowledge(ids []string) client.Outgoing {
	return client.Outgoing{
		To: []string{r.Counterparty}, Subject: r.Subject,
		Text: "ack: " + strings.Join(ids, ","), ReplyTo: ids[len(ids)-1],
	}
}

// step is the agent. A real one would read the replies, ask a model and act;
// this one does the same thing every time, so that anybody can count: each run
// acknowledges every reply it was given, in one send.
func step(_ context.Context, run *resume.Run) (resume.Next, error) {
	var s state
	if err := run.Unmarshal(&s); err != nil {
		return resume.Next{}, err
	}
	return s.next(run.Inputs), nil
}

// next decides from what is remembered and what arrived, and from nothing
// else.
func (s state) next(inputs []resume.Input) resume.Next {
	var ids []string
	var refused string
	for _, in := range inputs {
		switch in.Kind {
		case resume.InputReply:
			ids = append(ids, in.Message.ID)
		case resume.InputSendError, resume.InputRejected: // the last send will not happen
			s.Refused, refused = true, string(in.Kind)+" "+in.Reason
		}
	}
	switch {
	case len(ids) == 0 && refused != "": // a person looks, and has the step run again
		return resume.Review(strings.TrimSpace(refused)).Save(s)
	case len(ids) == 0 && !s.Refused: // a bounce: its place is the timeline
		return resume.Wait(0)
	case s.Refused: // what the refused send said is still to be said
		ids = slices.Concat(s.Last, ids)
		s.Acked -= len(s.Last)
	}
	s.Acked, s.Last, s.Refused = s.Acked+len(ids), ids, false
	if len(ids) == 0 {
		return resume.Send(s.Request.question()).Save(s)
	}
	next := resume.Send(s.Request.acknowledge(ids)).Save(s)
	if s.Acked >= s.Request.Replies {
		next = next.Done()
	}
	return next
}
