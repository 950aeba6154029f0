package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
)

// noAnswer is why a request got no complete answer. The errors of net and
// net/http hold the URL, and with it IDs that can be addresses, so only what a
// caller decides by is kept: [ErrUnavailable], the caller's context error and
// its cause, the system's error number, and whether it was a timeout.
type noAnswer struct {
	why     string
	timeout bool
	causes  []error
}

var _ net.Error = (*noAnswer)(nil)

func (e *noAnswer) Error() string {
	if e.why == "" {
		return ErrUnavailable.Error()
	}
	return ErrUnavailable.Error() + ": " + e.why
}

func (e *noAnswer) Is(target error) bool { return target == ErrUnavailable }
func (e *noAnswer) Unwrap() []error      { return e.causes }
func (e *noAnswer) Timeout() bool        { return e.timeout }
func (e *noAnswer) Temporary() bool      { return true }

// reduce is err without its text. ctx is the caller's: only its end is the
// caller's doing, the end of one try is a timeout like any other.
func reduce(ctx context.Context, err error) error {
	if end := ctx.Err(); end != nil {
		return &noAnswer{
			why:     end.Error(),
			timeout: errors.Is(end, context.DeadlineExceeded),
			causes:  []error{end, context.Cause(ctx)},
		}
	}
	if isTimeout(err) {
		return &noAnswer{why: "timed out", timeout: true}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return &noAnswer{why: errno.Error(), causes: []error{errno}}
	}
	return &noAnswer{why: kindOfFailure(err)}
}

func isTimeout(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return ok && network.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func kindOfFailure(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host's name could not be resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the host's certificate is not trusted"
	}
	return "the connection failed"
}
