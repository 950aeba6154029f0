package goshen

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/replywake/replywake/client"
)

// The provider's limits.
const (
	maxRecipients = 50
	maxSubject    = 998       // characters
	maxContent    = 512 << 10 // bytes of text and HTML together
	maxMessageID  = 998       // characters
	maxKey        = 200       // characters of an Idempotency-Key
)

const opSeal = "goshen: seal a message"

// mailBody is the body of a send and of a reply. A reply's has no subject.
type mailBody struct {
	To      []string `json:"to"`
	Subject string   `json:"subject,omitempty"`
	Text    string   `json:"text,omitempty"`
	HTML    string   `json:"html,omitempty"`
}

// Seal checks a message and fixes its bytes: a repeated send must be the same
// to the byte. It makes no request. Its error, of class [client.ClassRequest],
// reports every fault and quotes nothing.
//
// With ReplyTo it is a reply, whose subject is not sent: Goshen takes the
// answered message's, behind "Re:". It goes to To, not to the Reply-To that the
// answered message may name.
func (c *Client) Seal(inbox string, out client.Outgoing) (client.Sealed, error) {
	if err := checkOutgoing(inbox, out); err != nil {
		return client.Sealed{}, refuse(opSeal, err)
	}
	fields := mailBody{To: out.To, Subject: out.Subject, Text: out.Text, HTML: out.HTML}
	if out.ReplyTo != "" {
		fields.Subject = ""
	}
	body, err := encode(fields)
	if err != nil {
		return client.Sealed{}, refuse(opSeal, err)
	}
	return client.Sealed{Inbox: inbox, ReplyTo: out.ReplyTo, Body: body}, nil
}

func checkOutgoing(inbox string, out client.Outgoing) error {
	var faults []error
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!isBareAddress(inbox), "inbox is %w", client.ErrAddress)
	fault(out.ReplyTo != "" && !isName(out.ReplyTo, maxMessageID), "the message to reply to is not a Message-ID")
	faults = append(faults, checkRecipients(out.To)...)
	fault(hasControl(out.Subject), "subject has a line break or another control character")
	fault(utf8.RuneCountInString(out.Subject) > maxSubject, "subject is over %d characters", maxSubject)
	fault(out.Text == "" && out.HTML == "", "neither text nor html")
	fault(len(out.Text)+len(out.HTML) > maxContent, "text and html together are over %d bytes", maxContent)
	for _, part := range []struct{ name, text string }{{"subject", out.Subject}, {"text", out.Text}, {"html", out.HTML}} {
		fault(!utf8.ValidString(part.text), "%s is not UTF-8", part.name)
	}
	return errors.Join(faults...)
}

func checkRecipients(to []string) []error {
	if len(to) == 0 || len(to) > maxRecipients {
		return []error{fmt.Errorf("%d recipients, want 1 to %d", len(to), maxRecipients)}
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
