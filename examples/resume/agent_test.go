package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/resume"
)

var asked = request{ID: "w1", InboxID: "ibx_a", Counterparty: "ann@example.com", Subject: "Quote", Text: "How much?", Replies: 3}

func TestStartAsks(t *testing.T) {
	t.Parallel()
	s := asked.start()
	require.Equal(t, resume.Start{
		ID: "w1", OnlyNew: true, Inbox: "ibx_a", Counterparty: "ann@example.com", State: state{Request: asked},
		First: resume.Send(client.Outgoing{To: []string{"ann@example.com"}, Subject: "Quote", Text: "How much?"}),
	}, s)
}

func TestStep(t *testing.T) {
	t.Parallel()
	ack := func(text, to string) client.Outgoing {
		return client.Outgoing{To: []string{"ann@example.com"}, Subject: "Quote", Text: text, ReplyTo: to}
	}
	for name, c := range map[string]struct {
		state  state
		inputs []resume.Input
		want   resume.Next
	}{
		"a reply": {
			inputs: replies("m1"),
			want:   resume.Send(ack("ack: m1", "m1")).Save(state{Request: asked, Acked: 1, Last: []string{"m1"}}),
		},
		"two replies in one send, the newest is answered": {
			inputs: replies("m1", "m2"),
			want:   resume.Send(ack("ack: m1,m2", "m2")).Save(state{Request: asked, Acked: 2, Last: []string{"m1", "m2"}}),
		},
		"the last of the replies": {
			state:  state{Acked: 2, Last: []string{"m2"}},
			inputs: replies("m3"),
			want:   resume.Send(ack("ack: m3", "m3")).Save(state{Request: asked, Acked: 3, Last: []string{"m3"}}).Done(),
		},
		"more than the last": {
			state:  state{Acked: 2, Last: []string{"m2"}},
			inputs: replies("m3", "m4"),
			want:   resume.Send(ack("ack: m3,m4", "m4")).Save(state{Request: asked, Acked: 4, Last: []string{"m3", "m4"}}).Done(),
		},
		"a bounce": {
			inputs: []resume.Input{{Kind: resume.InputBounce}},
			want:   resume.Wait(0),
		},
		"a bounce beside a reply": {
			inputs: append(replies("m1"), resume.Input{Kind: resume.InputBounce}),
			want:   resume.Send(ack("ack: m1", "m1")).Save(state{Request: asked, Acked: 1, Last: []string{"m1"}}),
		},
		"run now, with nothing to say": {
			want: resume.Wait(0),
		},
		"the send was refused": {
			state:  state{Acked: 1, Last: []string{"m1"}},
			inputs: []resume.Input{{Kind: resume.InputSendError, Reason: "422"}},
			want:   resume.Review("send_error 422").Save(state{Request: asked, Acked: 1, Last: []string{"m1"}, Refused: true}),
		},
		"a person has it sent again": {
			state: state{Acked: 1, Last: []string{"m1"}, Refused: true},
			want:  resume.Send(ack("ack: m1", "m1")).Save(state{Request: asked, Acked: 1, Last: []string{"m1"}}),
		},
		"a reply comes after a refused send": {
			state:  state{Acked: 2, Last: []string{"m2"}, Refused: true},
			inputs: replies("m3"),
			want:   resume.Send(ack("ack: m2,m3", "m3")).Save(state{Request: asked, Acked: 3, Last: []string{"m2", "m3"}}).Done(),
		},
		"a reply comes together with the refusal": {
			state:  state{Acked: 1, Last: []string{"m1"}},
			inputs: append(replies("m2"), resume.Input{Kind: resume.InputRejected}),
			want:   resume.Send(ack("ack: m1,m2", "m2")).Save(state{Request: asked, Acked: 2, Last: []string{"m1", "m2"}}),
		},
		"the question was refused and is asked again": {
			state: state{Refused: true},
			want:  resume.Send(asked.question()).Save(state{Request: asked}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.state.Request = asked
			got := c.state.next(c.inputs)
			require.Equal(t, c.want, got)
			require.Equal(t, got, c.state.next(c.inputs), "the step runs again after a crash")
		})
	}
}

func replies(ids ...string) []resume.Input {
	var in []resume.Input
	for _, id := range ids {
		in = append(in, resume.Input{Kind: resume.InputReply, Message: client.Message{ID: id}})
	}
	return in
}
