package verify

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Verifier proves that a request was sent by who holds the secret. Build it
// with [New]; the zero and the nil Verifier refuse everything. It is safe for
// concurrent use, may be copied (copies share their secrets), and prints as a
// placeholder.
type Verifier struct{ core *core }

type core struct {
	config    Config     // without its Secrets
	tolerance int64      // seconds
	setting   sync.Mutex // held while the ring is replaced
	ring      atomic.Pointer[keyring]
}

// Delivery is what a verified request proves about itself.
type Delivery struct {
	// ID is the signed message ID, the same in every attempt to deliver one
	// event: the key to recognise duplicates by.
	ID string

	// Timestamp is the signed time of this attempt, in UTC and whole seconds. It
	// is not the time of the event; each retry has a new one.
	Timestamp time.Time

	// SecretVersion names the secret that verified. Once a previous secret is no
	// longer seen here, it can go.
	SecretVersion string
}

var errNotBuilt = because(ErrNoSecret, "the Verifier was not built by New")

// New returns a Verifier, or every fault of the Config at once, each of which
// matches [ErrConfig] or [ErrSecret].
func New(config Config) (*Verifier, error) {
	config = config.withDefaults()
	ring, err := compile(config.Secrets, config.Now(), &keyring{})
	if err := errors.Join(config.check(), err); err != nil {
		return nil, err
	}
	config.Secrets = nil // the caller's slice; the keys are copies
	c := &core{config: config, tolerance: int64(config.Tolerance / time.Second)}
	c.ring.Store(ring)
	return &Verifier{core: c}, nil
}

// SetSecrets replaces all secrets at once, while requests are being served. A
// request is verified wholly with the old or wholly with the new ones. If any
// secret has a fault, the old ones stay and all faults are returned. A secret
// without a name that was there before keeps its number.
func (v *Verifier) SetSecrets(secrets ...Secret) error {
	c := v.get()
	if c == nil {
		return errNotBuilt
	}
	c.setting.Lock()
	defer c.setting.Unlock()
	ring, err := compile(secrets, c.config.Now(), c.ring.Load())
	if err != nil {
		return err
	}
	c.ring.Store(ring)
	return nil
}

// Verify checks headers and body. The body must be the bytes as they arrived,
// before anything parsed, decoded or inflated them; no other form is tried.
// Header names match whatever their case in the map.
//
// It returns the Delivery if and only if the error is nil. The error matches
// [ErrUnverified] and one reason. Verify does not allocate when it succeeds.
func (v *Verifier) Verify(h http.Header, body []byte) (Delivery, error) {
	c := v.get()
	if c == nil {
		return Delivery{}, errNotBuilt
	}
	claim := newClaim()
	defer claim.release()
	now := c.config.Now()
	if err := claim.read(h, now, c.tolerance); err != nil {
		return Delivery{}, err
	}
	return c.prove(claim, now, body)
}

// prove computes one MAC for each live secret until one matches a candidate.
func (c *core) prove(claim *claim, now time.Time, body []byte) (Delivery, error) {
	live := false
	for _, k := range c.ring.Load().keys {
		if !k.live(now) {
			continue
		}
		live = true
		sum := k.sign(claim.id, claim.timestamp, body)
		if claim.candidates.match(&sum) {
			return Delivery{claim.id, time.Unix(claim.seconds, 0).UTC(), k.version}, nil
		}
	}
	return Delivery{}, unproven(live, len(body))
}

func unproven(live bool, size int) error {
	if !live {
		return because(ErrNoSecret, "every one is past its Until")
	}
	if size == 0 {
		return because(ErrNoMatch, "the body is empty; did something read it before?")
	}
	return because(ErrNoMatch, "wrong secret, or a body that is not the bytes as sent")
}

// Status is the status to answer after Verify or Read: Config.FailStatus for
// every failure under [ErrUnverified], 413 for a body over the cap, 500 for
// anything else, including every failure of a Verifier that was not built by
// [New], and 200 for nil. Send it without a body: what went wrong is nothing
// that a forger should learn.
func (v *Verifier) Status(err error) int {
	c := v.get()
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrBodyTooLarge):
		return http.StatusRequestEntityTooLarge
	case c != nil && errors.Is(err, ErrUnverified):
		return c.config.FailStatus
	}
	return http.StatusInternalServerError
}

func (v *Verifier) get() *core {
	if v == nil {
		return nil
	}
	return v.core
}

// Format prints a placeholder, whatever the verb and flags.
func (v Verifier) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(verifierPlaceholder))
}

// MarshalText gives a placeholder to JSON, XML, slog and the like.
func (v Verifier) MarshalText() ([]byte, error) {
	return []byte(verifierPlaceholder), nil
}
