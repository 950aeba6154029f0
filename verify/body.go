package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Read verifies a request and returns its body, which it consumes. The headers
// are checked before the first byte of the body is read, then the body is read
// once, up to Config.MaxBody, for at most Config.ReadTimeout and not beyond the
// deadline of the request's context, and only a body that arrived whole is
// verified.
//
// Errors are those of [Verifier.Verify] and [ErrBodyTooLarge],
// [ErrBodyIncomplete] and [ErrBodyConsumed]. Answer with [Verifier.Status].
// Delivery and body are returned if and only if the error is nil.
func (v *Verifier) Read(w http.ResponseWriter, r *http.Request) (Delivery, []byte, error) {
	c := v.get()
	if c == nil {
		return Delivery{}, nil, errNotBuilt
	}
	now := c.config.Now()
	claim := newClaim()
	defer claim.release()
	lift := c.limitReading(w, r)
	if err := claim.read(r.Header, now, c.tolerance); err != nil {
		return Delivery{}, nil, err
	}
	body, err := c.readBody(w, r)
	if err != nil {
		return Delivery{}, nil, err
	}
	lift()
	d, err := c.prove(claim, now, body)
	if err != nil && len(body) == 0 && r.ContentLength < 0 {
		// No provider signs nothing. Without a length that would tell, this is how
		// a body looks that somebody else has read.
		return Delivery{}, nil, because(ErrBodyConsumed, "nothing was left of it")
	}
	if err != nil {
		return Delivery{}, nil, err
	}
	return d, body, nil
}

// limitReading sets the read deadline and returns what takes it away again.
//
// The deadline is taken away only after a body that arrived whole, for whatever
// the handler does with the connection next. After a failure it stays, because
// net/http reads on to drain a refused body before it sends the answer, which a
// slow client could otherwise drag out for ever. The server sets a deadline of
// its own for the next request.
//
// A ResponseWriter without deadlines (a recorder, a wrapper without Unwrap) is
// served without one; the caller's server must then have a ReadTimeout.
func (c *core) limitReading(w http.ResponseWriter, r *http.Request) (lift func()) {
	timeout := c.config.ReadTimeout
	if until, ok := r.Context().Deadline(); ok {
		timeout = min(timeout, time.Until(until))
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ReadTimeout > 0 {
		timeout = min(timeout, s.ReadTimeout)
	}
	control := http.NewResponseController(w)
	// The connection lives by the real clock, whatever Config.Now says.
	_ = control.SetReadDeadline(time.Now().Add(timeout))
	return func() { _ = control.SetReadDeadline(time.Time{}) }
}

// firstBuffer is what a declared length may reserve before bytes arrive.
const firstBuffer = 16 << 10

func (c *core) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > c.config.MaxBody {
		return nil, c.tooLarge()
	}
	var buf bytes.Buffer
	if r.Body != nil {
		buf.Grow(int(max(0, min(r.ContentLength, firstBuffer))) + bytes.MinRead)
		if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, c.config.MaxBody)); err != nil {
			return nil, c.bodyError(err)
		}
	}
	// A connection that breaks off is reported as an error above. A clean end
	// before the declared length means that the start went to someone else.
	if int64(buf.Len()) < r.ContentLength {
		return nil, fmt.Errorf("%w: %d of %d bytes were left", ErrBodyConsumed, buf.Len(), r.ContentLength)
	}
	return buf.Bytes(), nil
}

func (c *core) bodyError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return c.tooLarge()
	}
	if errors.Is(err, http.ErrBodyReadAfterClose) {
		return because(ErrBodyConsumed, "it was closed")
	}
	return &incompleteError{err}
}

func (c *core) tooLarge() error {
	return fmt.Errorf("%w of %d bytes", ErrBodyTooLarge, c.config.MaxBody)
}

// incompleteError keeps the connection's error for errors.Is but not for its
// text, which may be of any length and hold the peer's address.
type incompleteError struct{ cause error }

func (e *incompleteError) Error() string {
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.cause); ok && t.Timeout() {
		return ErrBodyIncomplete.Error() + ": read deadline passed"
	}
	if errors.Is(e.cause, io.ErrUnexpectedEOF) {
		return ErrBodyIncomplete.Error() + ": the connection ended early"
	}
	return ErrBodyIncomplete.Error()
}

func (e *incompleteError) Unwrap() []error { return []error{ErrBodyIncomplete, e.cause} }
