package verify

import (
	"errors"
	"fmt"
)

// ErrUnverified is the umbrella of every reason for which a delivery is not
// proven genuine: errors.Is(err, ErrUnverified) is true for each of the
// sentinels listed after it. A caller answers all of them alike; the reason is
// for its own log.
var ErrUnverified = errors.New("verify: not verified")

// The reasons under [ErrUnverified], in the order in which they are looked for.
// Their texts, and the texts of the errors that wrap them, are bounded and hold
// no part of the request, of a key or of a MAC.
var (
	// ErrNoSecret: there is nothing to verify with. The Verifier was not built
	// by New, or every secret is past its Until.
	ErrNoSecret error = &reason{"verify: no secret to verify with"}

	// ErrMissingHeader: neither header family is complete. The text names the
	// headers that were looked for.
	ErrMissingHeader error = &reason{"verify: header missing or empty"}

	// ErrAmbiguousHeader: two IDs, two timestamps, or two complete header
	// families that are not the same.
	ErrAmbiguousHeader error = &reason{"verify: header given twice with different values"}

	// ErrMalformedID: the ID is not 1 to 256 visible ASCII bytes without a full stop.
	ErrMalformedID error = &reason{"verify: malformed id header"}

	// ErrMalformedTimestamp: the timestamp is not Unix seconds written as
	// [1-9][0-9]{0,11}.
	ErrMalformedTimestamp error = &reason{"verify: malformed timestamp header"}

	// ErrTimestamp: the timestamp is too far from the clock, in either
	// direction. The error is a [TimestampError], which knows how far.
	ErrTimestamp error = &reason{"verify: timestamp outside the tolerance"}

	// ErrMalformedSignature: the signature header is not a list of versions and
	// values, is too long, or holds no v1 signature that could be one.
	ErrMalformedSignature error = &reason{"verify: malformed signature header"}

	// ErrNoMatch: no v1 signature was made with one of the secrets over exactly
	// these headers and bytes. Usual causes: another endpoint's secret, or a body
	// that something changed on the way (parsed and written again, inflated,
	// decoded).
	ErrNoMatch error = &reason{"verify: no signature matches"}
)

// Errors about the body, returned by [Verifier.Read] only. None of them is
// under [ErrUnverified], for nothing is known about the sender.
var (
	// ErrBodyTooLarge: the body is longer than Config.MaxBody. Answer 413.
	ErrBodyTooLarge = errors.New("verify: body larger than the cap")

	// ErrBodyIncomplete: the body did not arrive whole, or not in time. It wraps
	// what the connection reported. Answer 500, so that the sender tries again.
	ErrBodyIncomplete = errors.New("verify: body did not arrive whole")

	// ErrBodyConsumed: something in this process read or closed the body before
	// the verifier could, a binder or a logging middleware for instance. A
	// signature covers bytes, so put the verifier before it. Answer 500.
	ErrBodyConsumed = errors.New("verify: body was consumed before it could be verified")
)

// Errors of [New], [Verifier.SetSecrets] and [Sign].
var (
	// ErrConfig: a field of Config is out of its range.
	ErrConfig = errors.New("verify: configuration")

	// ErrSecret: a secret cannot be right. The text names it by its position and
	// never shows it.
	ErrSecret = errors.New("verify: secret")
)

// reason is a sentinel that belongs to ErrUnverified.
type reason struct{ text string }

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return ErrUnverified }

// TimestampError tells how far a timestamp is from the clock. It matches
// [ErrTimestamp] and [ErrUnverified]:
//
//	if te, ok := errors.AsType[*verify.TimestampError](err); ok {
//		log.Printf("clock off by %d s?", te.Skew)
//	}
type TimestampError struct {
	// Skew is the clock minus the timestamp, in seconds: positive for a delivery
	// from the past, negative for one from the future.
	Skew int64

	// Tolerance is what was allowed in either direction, in seconds.
	Tolerance int64
}

func (e *TimestampError) Error() string {
	if e.Skew < 0 {
		return fmt.Sprintf("%v: %d s in the future, %d s allowed", ErrTimestamp, -e.Skew, e.Tolerance)
	}
	return fmt.Sprintf("%v: %d s old, %d s allowed", ErrTimestamp, e.Skew, e.Tolerance)
}

func (e *TimestampError) Unwrap() error { return ErrTimestamp }

// because adds a constant hint to a sentinel. The hint is never taken from a
// request.
func because(sentinel error, hint string) error {
	return fmt.Errorf("%w: %s", sentinel, hint)
}
