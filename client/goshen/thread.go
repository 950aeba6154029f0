package goshen

import (
	"context"
	"iter"
	"net/url"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

const (
	opThreads = "goshen: list threads"
	opThread  = "goshen: read a thread"
)

// Thread is a conversation.
type Thread struct {
	ID, Inbox   string
	Subject     client.Untrusted // of the latest message
	Preview     client.Untrusted
	At          time.Time // of the latest message
	Count       int64     // of messages
	Labels      []string  // of any of its messages
	LastMessage string    // empty from [Client.Thread]
	Messages    []Message // oldest first; of [Client.Thread] only
}

// ThreadPage is a page of threads, the latest activity first.
type ThreadPage struct {
	Threads []Thread
	Next    string // the token of the next page; empty if there is none
}

// Threads shows an inbox's conversations, but for those in the trash.
func (c *Client) Threads(ctx context.Context, inbox string, q Query) (ThreadPage, error) {
	fields, answer, err := c.getObject(ctx, opThreads, q.values(), "inboxes", inbox, "threads")
	if err != nil {
		return ThreadPage{}, err
	}
	rows, ok := fields.List("threads")
	if !ok {
		return ThreadPage{}, answer.Bad("no list of threads")
	}
	page := ThreadPage{Threads: make([]Thread, len(rows)), Next: fields.Text("nextPageToken")}
	for i, row := range rows {
		if page.Threads[i] = decodeThread(row.Object()); page.Threads[i].ID == "" {
			return ThreadPage{}, answer.Bad("a thread without an ID")
		}
	}
	return page, nil
}

func decodeThread(fields loose.Object) Thread {
	return Thread{
		ID: fields.Text("threadId"), Inbox: fields.Text("inboxId"),
		Subject: fields.Untrusted("subject"), Preview: fields.Untrusted("preview"),
		At: fields.Time("timestamp"), Count: number(fields, "messageCount"),
		Labels: texts(fields, "labels"), LastMessage: fields.Text("lastMessageId"),
	}
}

// Thread reads a conversation, without its texts, and with what is quarantined.
// One of over 500 messages is
// an error with the code thread_too_large; [Client.Messages] reads it.
func (c *Client) Thread(ctx context.Context, inbox, id string) (Thread, error) {
	fields, answer, err := c.getObject(ctx, opThread, url.Values{"includeBodies": {"false"}}, "inboxes", inbox, "threads", id)
	if err != nil {
		return Thread{}, err
	}
	t := decodeThread(fields)
	t.Messages, err = decodeMessages(answer, fields)
	return t, err
}

// Messages lists a thread, oldest first, without what is quarantined. It ends
// after an error.
//
// A thread of over 500 messages is collected from the list of the whole inbox,
// which takes a request for each hundred of its messages. What lies in the
// trash is missing then.
func (c *Client) Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error] {
	return func(yield func(client.Message, error) bool) {
		list, err := c.thread(ctx, inbox, thread)
		if err != nil {
			yield(client.Message{}, err)
			return
		}
		for _, m := range list {
			if !m.Quarantined() && !yield(m.Message, nil) {
				return
			}
		}
	}
}

func (c *Client) thread(ctx context.Context, inbox, id string) ([]Message, error) {
	t, err := c.Thread(ctx, inbox, id)
	if isTooLarge(err) {
		return c.longThread(ctx, inbox, id)
	}
	return t.Messages, err
}
