package goshen

import (
	"context"
	"errors"
	"net/http"

	"github.com/replywake/replywake/client"
)

const opLabel = "goshen: change labels"

// Labels is a change of labels. It may be repeated.
type Labels struct {
	Add    []string `json:"addLabels,omitempty"`
	Remove []string `json:"removeLabels,omitempty"`
}

var errLabel = errors.New("a label is not 1 to 64 characters without control characters")

func (l Labels) check() error {
	for _, list := range [][]string{l.Add, l.Remove} {
		for _, label := range list {
			if !isLabel(label) {
				return errLabel
			}
		}
	}
	return nil
}

// LabelMessage changes a message's labels.
func (c *Client) LabelMessage(ctx context.Context, inbox, message string, l Labels) error {
	return c.label(ctx, l, "inboxes", inbox, "messages", message, "labels")
}

// LabelThread changes the labels of every message of a thread.
func (c *Client) LabelThread(ctx context.Context, inbox, thread string, l Labels) error {
	return c.label(ctx, l, "inboxes", inbox, "threads", thread, "labels")
}

// label does not look at the answer, which is null or nothing.
func (c *Client) label(ctx context.Context, l Labels, path ...string) error {
	if err := l.check(); err != nil {
		return refuse(opLabel, err)
	}
	body, err := encode(l)
	if err != nil {
		return refuse(opLabel, err)
	}
	_, err = c.transport.Do(ctx, client.Request{Op: opLabel, Method: http.MethodPatch, Path: path, Body: body})
	return err
}
