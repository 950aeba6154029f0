package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer is what a provider answered to a request that succeeded.
type Answer struct {
	Op        string
	Status    int
	Body      []byte
	Date      time.Time // the provider's clock; zero if it did not say
	RequestID string
}

// Decode reads the body as JSON. What cannot be read is [ErrBadAnswer], of
// class [ClassService]: the request may well have acted.
func (a Answer) Decode(into any) error {
	if err := json.Unmarshal(a.Body, into); err != nil { // its text quotes the body
		return a.Bad("not the JSON it should be")
	}
	return nil
}

// Bad is an [ErrBadAnswer] about this answer. why is printed: it must say
// nothing that the answer holds.
func (a Answer) Bad(why string) error {
	return &Error{
		Op: a.Op, Status: a.Status, RequestID: a.RequestID,
		Class: ClassService, Cause: badAnswer(why),
	}
}

const errTooLong = badAnswer("over the size limit")

type badAnswer string

func (e badAnswer) Error() string        { return ErrBadAnswer.Error() + ": " + string(e) }
func (e badAnswer) Is(target error) bool { return target == ErrBadAnswer }

func (t *Transport) try(ctx context.Context, r Request, target string) (Answer, error) {
	tryCtx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	req, err := t.newRequest(tryCtx, r, target)
	if err != nil {
		return Answer{}, err
	}
	began := time.Now()
	resp, err := t.http.Do(req)
	if err != nil {
		return Answer{}, &Error{Op: r.Op, Class: ClassService, Cause: reduce(ctx, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	t.clock.take(began, resp.Header)
	return t.read(ctx, r.Op, resp)
}

func (t *Transport) read(ctx context.Context, op string, resp *http.Response) (Answer, error) {
	a := Answer{Op: op, Status: resp.StatusCode, RequestID: requestID(resp.Header)}
	a.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	body, err := io.ReadAll(io.LimitReader(resp.Body, t.maxBody+1))
	if err != nil {
		return a, &Error{
			Op: op, Status: a.Status, RequestID: a.RequestID,
			Class: ClassService, Cause: reduce(ctx, err),
		}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return a, t.refusal(a, resp.Header, body)
	}
	if int64(len(body)) > t.maxBody {
		return a, &Error{Op: a.Op, Status: a.Status, RequestID: a.RequestID, Class: ClassService, Cause: errTooLong}
	}
	a.Body = body
	return a, nil
}

// refusal is the error that the provider answered.
func (t *Transport) refusal(a Answer, h http.Header, body []byte) error {
	e := &Error{
		Op: a.Op, Status: a.Status, RequestID: a.RequestID,
		Class:      classOfStatus(a.Status),
		Code:       errorCode(body),
		RetryAfter: retryAfter(h.Get("Retry-After"), a.Date),
	}
	if a.Status < 400 {
		e.Cause = badAnswer("a redirect")
	}
	t.classify(e, body)
	return e
}

func classOfStatus(status int) Class {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ClassCredential
	case status == http.StatusPaymentRequired, status == http.StatusTooManyRequests:
		return ClassQuota
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return ClassService
	case status >= 400 && status <= 499:
		return ClassRequest
	}
	return ClassService // 5xx; a redirect, which is nothing the API answers
}

// errorCode is {"error":{"code":…}}, if it looks like a code: anything else
// could carry a stranger's text into a log.
func errorCode(body []byte) string {
	var envelope struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || !isCode(envelope.Error.Code) {
		return ""
	}
	return envelope.Error.Code
}

func isCode(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return len(s) <= 64 && strings.Trim(s, letters) == ""
}

func requestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		if id := h.Get(name); isVisible(id, 128) {
			return id
		}
	}
	return ""
}

// MaxRetryAfter is the longest pause that a provider's Retry-After can ask for.
const MaxRetryAfter = 5 * time.Minute

// retryAfter reads seconds or an HTTP date, the latter by the answer's own
// clock where it has one.
func retryAfter(value string, date time.Time) time.Duration {
	var d time.Duration
	if at, err := http.ParseTime(value); err == nil {
		if date.IsZero() {
			date = time.Now()
		}
		d = at.Sub(date)
	} else {
		d = wholeSeconds(value)
	}
	return min(max(d, 0), MaxRetryAfter)
}

func wholeSeconds(value string) time.Duration {
	n, err := strconv.ParseUint(value, 10, 32)
	if errors.Is(err, strconv.ErrRange) {
		return MaxRetryAfter
	}
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
