package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The defaults of [TransportConfig].
const (
	DefaultTimeout = 30 * time.Second
	DefaultTries   = 3
	DefaultMaxWait = 2 * time.Second
	DefaultMaxBody = 4 << 20
)

// TransportConfig is how a provider is reached.
type TransportConfig struct {
	// BaseURL is absolute, http or https, without user, query and fragment.
	BaseURL string

	// Key is sent as a bearer token.
	Key string

	// HTTPClient makes the requests; nil is a client of the transport's own.
	// A copy of it is used, which follows no redirect: a redirect could carry
	// the key to another host.
	HTTPClient *http.Client

	// Timeout is for one try, its answer's body included; 0 is [DefaultTimeout].
	Timeout time.Duration

	// Tries is how often a GET is made at most; 0 is [DefaultTries], 1 is once.
	Tries int

	// MaxWait is the longest pause between two tries; 0 is [DefaultMaxWait].
	// An error that asks for a longer one is returned at once: a long wait
	// belongs to the caller, see [RetryAfter].
	MaxWait time.Duration

	// MaxBody is the longest answer in bytes, after decompression; 0 is
	// [DefaultMaxBody].
	MaxBody int64

	// Classify refines an error that the provider answered: it may set Class
	// and Cause by Status, Code and the answer's body, which may quote a
	// stranger and must not be kept. nil leaves what the status says.
	Classify func(e *Error, body []byte)
}

// Transport makes a provider's requests: one base URL, one bearer key, answers
// in JSON and of bounded size, tries of bounded time.
//
// Only a GET is repeated, on trouble of class [ClassService], with full-jitter
// exponential pauses. The transport never repeats a POST. net/http itself
// sends a request with an Idempotency-Key again when a kept-alive connection
// turns out to be dead; that is safe, because such a key makes the provider
// answer a repeated request with the first one's result.
//
// A Transport prints as a placeholder, and is safe for concurrent use.
type Transport struct {
	base      string
	authorize func(http.Header) // a func: no verb of fmt prints what it holds
	http      *http.Client
	timeout   time.Duration
	tries     int
	maxWait   time.Duration
	maxBody   int64
	classify  func(*Error, []byte)
	clock     *reading
}

// NewTransport checks the config and reports every fault of it at once.
func NewTransport(c TransportConfig) (*Transport, error) {
	base, baseErr := cleanBase(c.BaseURL)
	if err := errors.Join(baseErr, checkKey(c.Key), checkLimits(c)); err != nil {
		return nil, err
	}
	classify := c.Classify
	if classify == nil {
		classify = func(*Error, []byte) {}
	}
	return &Transport{
		base:      base,
		authorize: func(h http.Header) { h.Set("Authorization", "Bearer "+c.Key) },
		http:      withoutRedirects(c.HTTPClient),
		timeout:   cmp.Or(c.Timeout, DefaultTimeout),
		tries:     cmp.Or(c.Tries, DefaultTries),
		maxWait:   cmp.Or(c.MaxWait, DefaultMaxWait),
		maxBody:   cmp.Or(c.MaxBody, DefaultMaxBody),
		classify:  classify,
		clock:     new(reading),
	}, nil
}

// Base is the base URL, scheme and host in lower case, without a final slash.
func (t *Transport) Base() string { return t.base }

// String is a placeholder.
func (t *Transport) String() string { return "client.Transport" }

// Format writes the placeholder, whatever the verb.
func (t *Transport) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, t.String()) }

// cleanBase never quotes the text: somebody may have put a password into it.
func cleanBase(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("client: base URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", errors.New("client: base URL must be absolute, http or https")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, strings.Contains(text, "#"):
		return "", errors.New("client: base URL must have no user, query or fragment")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/"), nil
}

func checkKey(key string) error {
	if key == "" {
		return errors.New("client: key is missing")
	}
	if !isVisible(key, 4096) {
		return errors.New("client: key has white space or a character outside ASCII")
	}
	return nil
}

func checkLimits(c TransportConfig) error {
	if c.Timeout < 0 || c.Tries < 0 || c.MaxWait < 0 || c.MaxBody < 0 {
		return errors.New("client: timeout, tries, longest wait and longest body must not be negative")
	}
	return nil
}

// isVisible says whether s is 1..limit visible ASCII bytes.
func isVisible(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func withoutRedirects(given *http.Client) *http.Client {
	c := &http.Client{}
	if given != nil {
		*c = *given
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Do makes the request. The error is an [Error], or for a request that cannot
// be made one of class [ClassRequest] without a status.
func (t *Transport) Do(ctx context.Context, r Request) (Answer, error) {
	target, err := r.url(t.base)
	if err != nil {
		return Answer{}, err
	}
	pauses := t.pauses()
	for try := 1; ; try++ {
		answer, err := t.try(ctx, r, target)
		if errors.Is(err, errTooLong) {
			if smaller, ok := r.smaller(); ok {
				return t.Do(ctx, smaller)
			}
		}
		if err == nil || try >= t.tries || !r.repeatable() || !worthAnother(err) {
			return answer, err
		}
		asked := RetryAfter(err)
		if asked > t.maxWait {
			return answer, err
		}
		if !sleep(ctx, max(pauses.NextBackOff(), asked)) {
			return answer, &Error{Op: r.Op, Class: ClassService, Cause: reduce(ctx, err)}
		}
	}
}

// pauses are uniform between nothing and a limit that doubles: full jitter is
// a factor of 1 around half the limit.
func (t *Transport) pauses() backoff.BackOff {
	b := &backoff.ExponentialBackOff{
		InitialInterval:     min(100*time.Millisecond, t.maxWait/2),
		RandomizationFactor: 1,
		Multiplier:          2,
		MaxInterval:         t.maxWait / 2,
	}
	b.Reset()
	return b
}

// worthAnother: an answer that cannot be read does not become readable, and a
// request whose caller is gone has nobody to answer.
func worthAnother(err error) bool {
	return ClassOf(err) == ClassService && !errors.Is(err, ErrBadAnswer) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
