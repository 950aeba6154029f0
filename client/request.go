package client

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Request is one request to a provider.
type Request struct {
	Op     string     // names the operation in errors, such as "list events"
	Method string     // GET or POST
	Path   []string   // segments below the base URL, not escaped
	Query  url.Values // may be nil

	IdempotencyKey string // sent as a header where it is not empty
	Body           []byte // JSON, sent as it is; nil for none
}

func (r Request) repeatable() bool { return r.Method == http.MethodGet }

// smaller asks a list for a tenth of its limit: its rows may hold what strangers
// wrote, and all of them together be over the size limit.
func (r Request) smaller() (Request, bool) {
	limit, _ := strconv.Atoi(r.Query.Get("limit"))
	if limit <= 1 {
		return r, false
	}
	r.Query = maps.Clone(r.Query)
	r.Query.Set("limit", strconv.Itoa(max(limit/10, 1)))
	return r, true
}

// url is the target. IDs stand in paths and come from outside: each segment is
// escaped whole, and one that a proxy could resolve as a path is refused.
func (r Request) url(base string) (string, error) {
	var b strings.Builder
	b.WriteString(base)
	for _, segment := range r.Path {
		if segment == "" || segment == "." || segment == ".." {
			return "", r.refuse(errors.New("an ID is empty or not one"))
		}
		b.WriteByte('/')
		b.WriteString(escapeSegment(segment))
	}
	if len(r.Query) > 0 {
		b.WriteByte('?')
		b.WriteString(r.Query.Encode())
	}
	if r.IdempotencyKey != "" && !isVisible(r.IdempotencyKey, 255) {
		return "", r.refuse(errors.New("the idempotency key is not 1 to 255 visible ASCII characters"))
	}
	return b.String(), nil
}

func (r Request) refuse(cause error) error {
	return &Error{Op: r.Op, Class: ClassRequest, Cause: cause}
}

// escapeSegment leaves only unreserved characters (RFC 3986, section 2.3):
// url.PathEscape would leave "@" and ":", which some servers want escaped.
func escapeSegment(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

func (t *Transport) newRequest(ctx context.Context, r Request, target string) (*http.Request, error) {
	var body *bytes.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := newHTTPRequest(ctx, r.Method, target, body)
	if err != nil { // its text holds the URL
		return nil, r.refuse(errors.New("not a request"))
	}
	t.authorize(req.Header)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "replywake")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", r.IdempotencyKey)
	}
	return req, nil
}

// newHTTPRequest keeps a nil *bytes.Reader from becoming a body that is not nil.
func newHTTPRequest(ctx context.Context, method, target string, body *bytes.Reader) (*http.Request, error) {
	if body == nil {
		return http.NewRequestWithContext(ctx, method, target, http.NoBody)
	}
	return http.NewRequestWithContext(ctx, method, target, body)
}
