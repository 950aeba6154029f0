package goshen

import (
	"context"
	"net/url"
	"strconv"
)

const (
	opList   = "goshen: list messages"
	opSearch = "goshen: search messages"
	opGet    = "goshen: read a message"

	pageLimit = 100 // the provider's largest
)

// Query says which page of a list is asked for. The zero value is the newest
// 100 of all.
type Query struct {
	Labels []string // all of them must be there
	Limit  int      // 1 to 100; 0 is 100

	// Token is the Next of the page before, under the same labels. It is an
	// offset: if labels change or mail arrives between two pages, messages are
	// skipped or come twice. To work through a list while changing its labels,
	// ask for its first page again and again, as [Source] does.
	Token string
}

func (q Query) values() url.Values {
	limit := q.Limit
	if limit == 0 {
		limit = pageLimit
	}
	v := url.Values{"limit": {strconv.Itoa(limit)}}
	if len(q.Labels) > 0 {
		v["labels"] = q.Labels
	}
	if q.Token != "" {
		v.Set("pageToken", q.Token)
	}
	return v
}

// MessagePage is a page of messages, newest first.
type MessagePage struct {
	Messages []Message
	Next     string // the token of the next page; empty if there is none
}

// List shows an inbox's messages. Quarantined and trashed ones are left out
// unless their label is asked for.
func (c *Client) List(ctx context.Context, inbox string, q Query) (MessagePage, error) {
	return c.messages(ctx, opList, q.values(), "inboxes", inbox, "messages")
}

// Search shows the messages of an inbox that match text, best first: quoted
// phrases, "-" to exclude a word, "or" between alternatives.
func (c *Client) Search(ctx context.Context, inbox, text string, q Query) (MessagePage, error) {
	query := q.values()
	query.Set("query", text)
	return c.messages(ctx, opSearch, query, "inboxes", inbox, "messages", "search")
}

func (c *Client) messages(ctx context.Context, op string, query url.Values, path ...string) (MessagePage, error) {
	fields, answer, err := c.getObject(ctx, op, query, path...)
	if err != nil {
		return MessagePage{}, err
	}
	list, err := decodeMessages(answer, fields)
	if err != nil {
		return MessagePage{}, err
	}
	return MessagePage{Messages: list, Next: fields.Text("nextPageToken")}, nil
}

// Message reads one message with its text and its HTML.
func (c *Client) Message(ctx context.Context, inbox, id string) (Message, error) {
	return c.message(ctx, inbox, id, url.Values{"includeHtml": {"true"}})
}

func (c *Client) message(ctx context.Context, inbox, id string, query url.Values) (Message, error) {
	fields, answer, err := c.getObject(ctx, opGet, query, "inboxes", inbox, "messages", id)
	if err != nil {
		return Message{}, err
	}
	return decodeMessage(answer, fields)
}
