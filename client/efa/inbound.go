package efa

import (
	"context"
	"errors"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// Inbound is a message to be made up in a test inbox. Its names are not
// documented.
type Inbound struct {
	Inbox   string `json:"inbox_id"`
	From    string `json:"from"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

const opInbound = "efa: simulate an inbound message"

// SimulateInbound puts a message into a test inbox, as if it had arrived. It
// takes no In-Reply-To, so it always opens a new thread. The answer's
// message_id and thread_id are not documented; they are empty where it lacks
// them.
func (c *Client) SimulateInbound(ctx context.Context, in Inbound) (client.Message, error) {
	if in.Inbox == "" || in.From == "" {
		return client.Message{}, &client.Error{Op: opInbound, Class: client.ClassRequest, Cause: errInbound}
	}
	answer, err := c.post(ctx, opInbound, in, "test", "inbound")
	if err != nil {
		return client.Message{}, err
	}
	fields, err := loose.Decode(answer)
	if err != nil {
		return client.Message{}, err
	}
	return client.Message{
		ID: fields.ID("message_id"), Inbox: in.Inbox, Thread: fields.ID("thread_id"),
		From: client.NewUntrusted(in.From), Subject: client.NewUntrusted(in.Subject),
	}, nil
}

var errInbound = errors.New("inbox and sender are required")
