package efa

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

const (
	opThread = "efa: list a thread"
	opBody   = "efa: read a body"

	maxThreadPages = 1000 // of 100 messages; a listing that goes on is going round
)

// Messages lists a whole thread in the provider's order, page by page as it is
// read. It ends after an error. A listing that promises more and does not say
// where, or goes round, is [events.ErrNoProgress]. Its key needs the scope
// messages:read.
func (c *Client) Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error] {
	return func(yield func(client.Message, error) bool) {
		w := threadWalk{client: c, inbox: inbox, thread: thread, seen: map[string]bool{"": true}}
		for w.more = true; w.more; {
			page, err := w.next(ctx)
			if err != nil {
				yield(client.Message{}, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

type threadWalk struct {
	client        *Client
	inbox, thread string
	cursor        string
	seen          map[string]bool // cursors asked; "" is the beginning
	more          bool
}

func (w *threadWalk) next(ctx context.Context) ([]client.Message, error) {
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}}
	if w.cursor != "" {
		query.Set("cursor", w.cursor)
	}
	answer, err := w.client.get(ctx, opThread, query, "inboxes", w.inbox, "threads", w.thread, "messages")
	if err != nil {
		return nil, err
	}
	list, err := decodeList(answer)
	if err != nil {
		return nil, err
	}
	if w.more = list.more; w.more {
		if err := w.advance(answer, list.next); err != nil {
			return nil, err
		}
	}
	return w.decode(answer, list.rows)
}

// advance takes the next cursor. A missing one, sent as nothing, would begin
// the thread again; the word is what a null becomes in careless hands.
func (w *threadWalk) advance(answer client.Answer, next string) error {
	w.cursor = next
	if w.cursor == "null" || w.seen[w.cursor] || len(w.seen) >= maxThreadPages {
		return &client.Error{
			Op: opThread, Status: answer.Status, RequestID: answer.RequestID, Class: client.ClassService,
			Cause: fmt.Errorf("%w: more is promised and no new cursor given", events.ErrNoProgress),
		}
	}
	w.seen[w.cursor] = true
	return nil
}

func (w *threadWalk) decode(answer client.Answer, rows []loose.Value) ([]client.Message, error) {
	page := make([]client.Message, 0, len(rows))
	for _, row := range rows {
		fields := row.Object()
		if fields.ID("id") == "" {
			return nil, answer.Bad("a message without an ID")
		}
		page = append(page, w.message(fields))
	}
	return page, nil
}

// message reads one row. Names of its times and of an outbound message's state
// are not documented.
func (w *threadWalk) message(fields loose.Object) client.Message {
	m := client.Message{
		ID: fields.ID("id"), Inbox: w.inbox, Thread: w.thread,
		Outbound: fields.Scalar("direction") == "outbound",
		From:     sender(fields, "from"),
		To:       addresses(fields, "to"),
		Subject:  untrusted(fields, "subject"),
		At:       fields.Time("occurred_at", "received_at", "sent_at", "created_at"),
	}
	if m.Outbound {
		m.Delivery = deliveryOf(fields.Scalar("status"))
	}
	return m
}

func untrusted(fields loose.Object, name string) client.Untrusted {
	return client.NewUntrusted(fields.Scalar(name))
}

func addresses(fields loose.Object, name string) []client.Untrusted {
	return fields.Addresses(name, loose.Value.Scalar)
}

// sender is the one address of a field. Of several none can stand for the
// message, so all of them together do, which equal no address.
func sender(fields loose.Object, name string) client.Untrusted {
	list := addresses(fields, name)
	if len(list) == 1 {
		return list[0]
	}
	texts := make([]string, len(list))
	for i, address := range list {
		texts[i] = address.Text()
	}
	return client.NewUntrusted(strings.Join(texts, ", "))
}

// Body reads a message's content. Its key needs the scope messages:read.
func (c *Client) Body(ctx context.Context, inbox string, m client.Message) (client.Body, error) {
	answer, err := c.get(ctx, opBody, nil, "inboxes", inbox, "messages", m.ID, "body")
	if err != nil {
		return client.Body{}, err
	}
	fields, err := loose.Decode(answer)
	if err != nil {
		return client.Body{}, err
	}
	available, ok := fields.Flag("body_available")
	if !ok {
		return client.Body{}, answer.Bad("no body_available")
	}
	return client.Body{
		Text: untrusted(fields, "text"), HTML: untrusted(fields, "html"), Available: available,
	}, nil
}
