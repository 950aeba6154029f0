package client

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

// Class says who can mend an error.
type Class int

const (
	// ClassService is the provider's or the network's trouble: try again later.
	ClassService Class = iota
	// ClassRequest is a fault of the request itself: the same again fails again.
	ClassRequest
	// ClassCredential is a key that is missing, wrong or not allowed to do this.
	ClassCredential
	// ClassQuota is a limit that has been reached: later, or after a person raises it.
	ClassQuota
)

func (c Class) String() string {
	names := [...]string{"service", "request", "credential", "quota"}
	if c < 0 || int(c) >= len(names) {
		return "class(" + strconv.Itoa(int(c)) + ")"
	}
	return names[c]
}

// Causes that a caller decides by. They are found with [errors.Is] in an
// [Error] whatever the provider's own code for them is.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("idempotency key used with another body")
	ErrInProgress  = errors.New("a send with this key is in progress")
	ErrKeyExpired  = errors.New("idempotency key older than the replay window")
	ErrUncertain   = errors.New("outcome unknown to the provider")
	ErrRevision    = errors.New("expected revision is not the current one")
	ErrUnavailable = errors.New("no answer")     // the request got no complete answer: it may have acted
	ErrBadAnswer   = errors.New("not an answer") // an answer that cannot be read
)

// Error is a request that did not succeed. It prints operation, status, code
// and, where there is no code, the cause: never the provider's message, which
// may quote a stranger. A Cause must have a text that may be logged.
type Error struct {
	Op         string        // the operation, such as "list events"
	Status     int           // HTTP status; 0 if no answer came
	Code       string        // the provider's code; empty if there was none
	Class      Class         // who can mend it
	RetryAfter time.Duration // what the provider asked for; 0 if nothing
	RequestID  string        // the provider's, to quote to its support
	Cause      error         // one of the package's Err values, or a network error; nil for none
}

func (e *Error) Error() string {
	s := e.Op + ":"
	if e.Status != 0 {
		s += " " + strconv.Itoa(e.Status)
	}
	switch {
	case e.Code != "":
		s += " " + e.Code
	case e.Cause != nil:
		s += " " + e.Cause.Error()
	}
	return strings.TrimSuffix(s, ":")
}

func (e *Error) Unwrap() error { return e.Cause }

// ClassOf is the class of the [Error] in err; any other error is the
// service's.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassService
}

// RetryAfter is how long the provider asked to wait, 0 if it did not.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// IsRetryable says whether the same request may succeed later without anybody
// changing anything.
func IsRetryable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class == ClassService || e.Class == ClassQuota
	}
	_, network := errors.AsType[net.Error](err)
	return network
}
