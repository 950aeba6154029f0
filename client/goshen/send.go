package goshen

import (
	"context"
	"errors"
	"net/http"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

const opSend = "goshen: send a message"

var errKey = errors.New("the idempotency key is not 1 to 200 characters")

// Send makes one request for a sealed message under an Idempotency-Key: a send,
// or a reply if it answers a message. The same key and message again get the
// first answer again, without an end that is documented; so a send whose error
// is of class [client.ClassService] may have acted, and is finished by repeating
// it.
//
// Errors: [client.ErrConflict] the key was used with another message;
// [client.ErrInProgress] a send with this key is under way;
// [client.ErrUncertain] Goshen does not know whether it left, and never sends
// it again: repeating asks, and only an operator there can change the answer,
// so it must not be repeated for ever; [client.ErrUnavailable] no complete
// answer; [client.ErrBadAnswer] an answer that is none.
func (c *Client) Send(ctx context.Context, key string, s client.Sealed) (client.Outcome, error) {
	if key == "" || len(key) > maxKey {
		return client.Outcome{}, refuse(opSend, errKey)
	}
	path := []string{"inboxes", s.Inbox, "messages", "send"}
	if s.ReplyTo != "" {
		path = []string{"inboxes", s.Inbox, "messages", s.ReplyTo, "reply"}
	}
	answer, err := c.transport.Do(ctx, client.Request{
		Op: opSend, Method: http.MethodPost, Path: path, IdempotencyKey: key, Body: s.Body,
	})
	if err != nil {
		return client.Outcome{}, err
	}
	return decodeOutcome(answer)
}

// decodeOutcome takes only an answer with a thread: a send without one could be
// followed by nobody.
func decodeOutcome(answer client.Answer) (client.Outcome, error) {
	fields, err := loose.Decode(answer)
	if err != nil {
		return client.Outcome{}, err
	}
	if fields.Text("threadId") == "" {
		return client.Outcome{}, answer.Bad("a send without a thread")
	}
	return client.Outcome{Message: fields.Text("messageId"), Thread: fields.Text("threadId")}, nil
}
