package verify

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Defaults of [Config].
const (
	DefaultTolerance   = 5 * time.Minute
	DefaultMaxBody     = 1 << 20
	DefaultReadTimeout = 10 * time.Second
	DefaultFailStatus  = http.StatusBadRequest
)

// Config is what [New] builds a [Verifier] from. Only Secrets is required; the
// zero value of every other field is its default.
type Config struct {
	// Secrets are tried in order: current first, then previous ones, each of
	// which should have an Until. At least one.
	Secrets []Secret

	// Tolerance is how far a timestamp may be from the clock, before and after,
	// both edges included. Whole seconds. 5 minutes, as in all Standard Webhooks
	// libraries.
	Tolerance time.Duration

	// MaxBody is the longest body that Read takes, in bytes. 1 MiB.
	MaxBody int64

	// ReadTimeout is how long a body may take to arrive. 10 seconds. A shorter
	// ReadTimeout of the http.Server wins.
	ReadTimeout time.Duration

	// FailStatus is the one answer to every delivery that does not verify: 400,
	// 401, 403, 500 or 503. 400.
	//
	// It decides what the sender does next. Email for Agents gives a delivery up
	// at any 4xx except 408, 409, 425 and 429, and tries again after a 5xx; Svix
	// and Goshen Email try again after both. Choose 500 or 503 while secrets are
	// being changed and a wrong one must not cost deliveries. No other status is
	// taken: a 2xx would confirm a forgery, and 410 asks a sender to disable the
	// endpoint.
	FailStatus int

	// Now is the clock for tolerance and Until. time.Now.
	Now func() time.Time

	// Logger gets one record for each request that Middleware refuses. Discarded
	// by default.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Tolerance = cmp.Or(c.Tolerance, DefaultTolerance)
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, DefaultReadTimeout)
	c.FailStatus = cmp.Or(c.FailStatus, DefaultFailStatus)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// check reports every field that is out of range. Secrets are checked apart.
func (c Config) check() error {
	var faults []error
	fault := func(bad bool, text string) {
		if bad {
			faults = append(faults, because(ErrConfig, text))
		}
	}
	fault(c.Tolerance < 0 || c.Tolerance%time.Second != 0, "Tolerance is not a positive number of whole seconds")
	fault(c.MaxBody < 0, "MaxBody is negative")
	fault(c.ReadTimeout < 0, "ReadTimeout is negative")
	if !slices.Contains(failStatuses, c.FailStatus) {
		faults = append(faults, fmt.Errorf("%w: FailStatus %d is not one of %v", ErrConfig, c.FailStatus, failStatuses))
	}
	return errors.Join(faults...)
}

var failStatuses = []int{
	http.StatusBadRequest,
	http.StatusUnauthorized,
	http.StatusForbidden,
	http.StatusInternalServerError,
	http.StatusServiceUnavailable,
}
