package efa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

const (
	opSeal = "efa: seal a message"
	opSend = "efa: send a message"
)

// outgoing is the body of a send. The names other than reply_to_message_id and
// of what a message listing shows (to, subject, text, html) are not documented.
type outgoing struct {
	To      []string `json:"to"`
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
	HTML    string   `json:"html,omitempty"`
	ReplyTo string   `json:"reply_to_message_id,omitempty"`
}

// Seal checks a message and fixes its bytes: a repeated send must be the same
// to the byte. It makes no request. Its error, of class [client.ClassRequest],
// reports every fault and quotes nothing.
func (c *Client) Seal(inbox string, out client.Outgoing) (client.Sealed, error) {
	if err := checkOutgoing(inbox, out); err != nil {
		return client.Sealed{}, &client.Error{Op: opSeal, Class: client.ClassRequest, Cause: err}
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(outgoing(out)); err != nil {
		return client.Sealed{}, &client.Error{Op: opSeal, Class: client.ClassRequest, Cause: errUnencodable}
	}
	return client.Sealed{
		Inbox:   inbox,
		ReplyTo: out.ReplyTo,
		Body:    bytes.TrimSuffix(body.Bytes(), []byte("\n")),
	}, nil
}

func checkOutgoing(inbox string, out client.Outgoing) error {
	var faults []error
	if !loose.IsID(inbox) {
		faults = append(faults, errors.New("inbox is not an ID"))
	}
	if out.ReplyTo != "" && !loose.IsID(out.ReplyTo) {
		faults = append(faults, errors.New("the message to reply to is not an ID"))
	}
	faults = append(faults, checkRecipients(out.To)...)
	if hasControl(out.Subject) {
		faults = append(faults, errors.New("subject has a line break or another control character"))
	}
	for _, part := range []struct{ name, text string }{{"subject", out.Subject}, {"text", out.Text}, {"html", out.HTML}} {
		if !utf8.ValidString(part.text) {
			faults = append(faults, fmt.Errorf("%s is not UTF-8", part.name))
		}
	}
	return errors.Join(faults...)
}

func checkRecipients(to []string) []error {
	if len(to) == 0 {
		return []error{errors.New("no recipient")}
	}
	var faults []error
	for i, address := range to {
		if !isBareAddress(address) {
			faults = append(faults, fmt.Errorf("recipient %d is %w alone", i+1, client.ErrAddress))
		}
	}
	return faults
}

// isBareAddress: an address without a display name, a comment or a line break.
func isBareAddress(text string) bool {
	parsed, err := mail.ParseAddress(text)
	if err != nil || hasControl(text) || parsed.Name != "" {
		return false
	}
	quoted := strings.Trim((&mail.Address{Address: parsed.Address}).String(), "<>")
	return text == parsed.Address || text == quoted
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
	})
}

// Send makes one request for a sealed message under an Idempotency-Key. The
// same key and message again get the first answer again, for 30 days; so a send
// whose error is of class [client.ClassService] may have acted, and is finished
// by repeating it.
//
// Errors: [client.ErrConflict] the key was used with another message;
// [client.ErrKeyExpired] the key is past its 30 days; [client.ErrUnavailable]
// no complete answer; [client.ErrBadAnswer] an answer that is none. A matching
// send under way is a 503, as is any passing trouble of the provider.
func (c *Client) Send(ctx context.Context, key string, s client.Sealed) (client.Outcome, error) {
	if key == "" {
		return client.Outcome{}, &client.Error{Op: opSend, Class: client.ClassRequest, Cause: errNoKey}
	}
	answer, err := c.transport.Do(ctx, client.Request{
		Op: opSend, Method: http.MethodPost,
		Path:           c.path([]string{"inboxes", s.Inbox, "messages"}),
		IdempotencyKey: key,
		Body:           s.Body,
	})
	if err != nil {
		return client.Outcome{}, err
	}
	return decodeOutcome(answer)
}

var errNoKey = errors.New("no idempotency key")

// decodeOutcome takes only an answer that names what it says: a send without a
// thread, or held without an approval, could be followed by nobody. message_id
// of a queued send is not documented.
func decodeOutcome(answer client.Answer) (client.Outcome, error) {
	fields, err := loose.Decode(answer)
	if err != nil {
		return client.Outcome{}, err
	}
	switch fields.Scalar("result") {
	case "queued":
		if thread := fields.ID("thread_id"); thread != "" {
			return client.Outcome{Message: fields.ID("message_id"), Thread: thread}, nil
		}
		return client.Outcome{}, answer.Bad("queued without a thread")
	case "approval_required":
		if approval := fields.ID("approval_id"); approval != "" {
			return client.Outcome{Held: true, Approval: approval, Draft: fields.ID("draft_id")}, nil
		}
		return client.Outcome{}, answer.Bad("held without an approval")
	}
	return client.Outcome{}, answer.Bad("an unknown result")
}
