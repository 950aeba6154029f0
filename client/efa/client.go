package efa

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

// DefaultBaseURL is the public service.
const DefaultBaseURL = "https://api.emailforagents.ai/v1"

// Config says which project is reached, and how.
type Config struct {
	Project string // the project's ID
	Key     string // an API key; its prefix, efa_test_ or efa_live_, fixes the environment

	// BaseURL is absolute and ends before "/projects"; empty is [DefaultBaseURL].
	BaseURL string

	// Stream names everything that is stored about the project's events; empty
	// is "efa:" and the project. Agents whose keys see different inboxes and
	// that share a database need different names.
	Stream string

	HTTPClient *http.Client  // nil is one of the client's own; a copy without redirects is used
	Timeout    time.Duration // for one try of a request; 0 is [client.DefaultTimeout]
	Tries      int           // of a read; 0 is [client.DefaultTries]
}

// Format writes a placeholder, whatever the verb: the key prints nowhere.
func (c Config) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "efa.Config") }

// Client reaches one project with one key. It is safe for concurrent use and
// prints its stream's name only.
type Client struct {
	stream    events.Stream
	project   string
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
		Classify:   classify,
	})
	if err := errors.Join(err, checkProject(c.Project)); err != nil {
		return nil, fmt.Errorf("efa: config: %w", err)
	}
	return &Client{
		project:   c.Project,
		transport: transport,
		stream: events.Stream{
			Name:        cmp.Or(c.Stream, "efa:"+c.Project),
			Origin:      transport.Base() + "/projects/" + c.Project,
			Environment: environment(c.Key),
			Credential:  client.Fingerprint(c.Key),
		},
	}, nil
}

// checkProject takes what stands in a path as it is, so that a slip with a
// whole URL or a variable that is not set shows at once.
func checkProject(id string) error {
	switch {
	case id == "":
		return errors.New("project is missing")
	case !loose.IsID(id), strings.ContainsAny(id, "/?#%\\"), id == ".", id == "..":
		return errors.New("project is not an ID")
	}
	return nil
}

// environment is what the key's prefix fixes.
func environment(key string) string {
	switch {
	case strings.HasPrefix(key, "efa_test_"):
		return "test"
	case strings.HasPrefix(key, "efa_live_"):
		return "live"
	}
	return ""
}

// Stream names the project as the key sees it.
func (c *Client) Stream() events.Stream { return c.stream }

// String is "efa.Client" and the stream's name.
func (c *Client) String() string { return "efa.Client(" + c.stream.Name + ")" }

// Format writes String, whatever the verb.
func (c *Client) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }
