package goshen

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// The defaults of [Config].
const (
	DefaultBaseURL = "https://api.goshenemail.com/v1" // the public service
	DefaultHandled = "handled"
)

// Config says what is reached, and how.
type Config struct {
	// Key is an account's key (bze_…) with the scopes messages:read,
	// messages:write and messages:send, or the key of one mailbox (gme_…).
	Key string

	// Inboxes are the addresses that [Source] drains, in lower case, as Goshen
	// spells them. Sending and reading are not restricted to them.
	Inboxes []string

	// BaseURL is absolute and ends in "/v1"; empty is [DefaultBaseURL].
	BaseURL string

	// Stream names everything that is stored about the events. Empty is
	// "goshen:" and the inbox; for several inboxes it must be given, so that it
	// stays the same when one is added. Agents that share a database need
	// different names.
	Stream string

	// Handled is the label that a message gets when its event is committed;
	// empty is [DefaultHandled].
	Handled string

	HTTPClient *http.Client  // nil is one of the client's own; a copy without redirects is used
	Timeout    time.Duration // for one try of a request; 0 is [client.DefaultTimeout]
	Tries      int           // of a read; 0 is [client.DefaultTries]
}

// Format writes a placeholder, whatever the verb: the key prints nowhere.
func (c Config) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "goshen.Config") }

// Client reaches one account or mailbox with one key. It is safe for
// concurrent use and prints its stream's name only.
type Client struct {
	stream    events.Stream
	inboxes   []string
	handled   string
	transport *client.Transport
}

// New checks the config and reports every fault of it at once. It makes no
// request.
func New(c Config) (*Client, error) {
	transport, err := client.NewTransport(client.TransportConfig{
		BaseURL:    cmp.Or(c.BaseURL, DefaultBaseURL),
		Key:        c.Key,
		HTTPClient: c.HTTPClient,
		Timeout:    c.Timeout,
		Tries:      c.Tries,
		MaxBody:    maxAnswer,
		Classify:   classify,
	})
	if err := errors.Join(err, c.checkInboxes(), c.checkHandled()); err != nil {
		return nil, fmt.Errorf("goshen: config: %w", err)
	}
	return &Client{
		inboxes:   slices.Clone(c.Inboxes),
		handled:   cmp.Or(c.Handled, DefaultHandled),
		transport: transport,
		stream: events.Stream{
			Name:       cmp.Or(c.Stream, "goshen:"+c.Inboxes[0]),
			Origin:     transport.Base(),
			Credential: client.Fingerprint(c.Key),
		},
	}, nil
}

// maxAnswer: a page of 100 messages with 50 recipients and labels each stays
// far below it, one message with its text and HTML too.
const maxAnswer = 16 << 20

func (c Config) checkInboxes() error {
	if len(c.Inboxes) == 0 {
		return errors.New("no inbox")
	}
	var faults []error
	for i, inbox := range c.Inboxes {
		if normal, err := client.NormalizeAddress(inbox); err != nil || normal != inbox {
			faults = append(faults, fmt.Errorf("inbox %d is %w in lower case", i+1, client.ErrAddress))
		}
		if slices.Contains(c.Inboxes[:i], inbox) {
			faults = append(faults, fmt.Errorf("inbox %d stands there twice", i+1))
		}
	}
	if len(c.Inboxes) > 1 && c.Stream == "" {
		faults = append(faults, errors.New("several inboxes need a Stream name"))
	}
	return errors.Join(faults...)
}

func (c Config) checkHandled() error {
	if c.Handled != "" && !isLabel(c.Handled) {
		return errors.New("the value of Handled is not a label: 1 to 64 characters, none of them a control character")
	}
	if isSystemLabel(c.Handled) {
		return errors.New("the Handled label is one of Goshen's own")
	}
	return nil
}

// Stream names what the key sees. Its origin is the base URL alone: the API
// shows no account's name, and needs none, for an address belongs to one
// account and each event's ID holds it. Goshen has no test environment.
func (c *Client) Stream() events.Stream { return c.stream }

// String is "goshen.Client" and the stream's name.
func (c *Client) String() string { return "goshen.Client(" + c.stream.Name + ")" }

// Format writes String, whatever the verb.
func (c *Client) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }
