package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/verify"
)

// HandlerConfig sets up a [Handler]. The zero value is the default.
type HandlerConfig struct {
	// Timeout is how long a request may take, from its first header to the
	// commit. Keep it below the provider's own, so that the provider gets an
	// answer and not a broken connection: Goshen Email gives up at 10 seconds,
	// Email for Agents at 25. 9 seconds.
	Timeout time.Duration

	// Logger is told of every delivery that is not taken, and at debug level of
	// every one that is. It never gets content. Discarded by default.
	Logger *slog.Logger
}

// Handler is the push door: an [http.Handler] that verifies a delivery, reads
// its event and answers after the Receiver's commit. Build it with
// [NewHandler]. It is safe for concurrent use.
//
//	204  taken, now or before; also an unreadable body that came over 10 times
//	405  not a POST
//	413  a body over the Verifier's cap
//	500  a body that is not an event, or one that did not arrive whole; an event
//	     that the program's own handler fails on (it is kept and tried again)
//	503  the store cannot take it now
//	     and the Verifier's FailStatus for what does not verify
//
// No answer has a body or is a redirect. What may clear is always a 5xx,
// because Email for Agents gives a delivery up for good at almost any 4xx.
type Handler struct {
	verifier *verify.Verifier
	profile  Profile
	receiver Receiver
	timeout  time.Duration
	log      *slog.Logger
	counters handlerCounters
	secrets  secretUses
}

const (
	defaultHandlerTimeout = 9 * time.Second
	unreadableAnswers     = 10 // then a delivery whose body is not an event is acknowledged
	retryAfter            = 5 * time.Second
)

// NewHandler returns a Handler, or every fault of its arguments at once.
func NewHandler(v *verify.Verifier, profile Profile, r Receiver, config HandlerConfig) (*Handler, error) {
	var faults []error
	fault := func(is bool, text string) {
		if is {
			faults = append(faults, fmt.Errorf("%w: handler: %s", ErrConfig, text))
		}
	}
	fault(v == nil, "a Verifier is required")
	fault(profile == nil, "a Profile is required")
	fault(r == nil, "a Receiver is required")
	fault(config.Timeout < 0, "Timeout is negative")
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	return &Handler{
		verifier: v, profile: profile, receiver: r,
		timeout: cmp.Or(config.Timeout, defaultHandlerTimeout),
		log:     orDiscard(config.Logger),
	}, nil
}

// ServeHTTP takes one delivery.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), h.timeout, errHandlerTimeout)
	defer cancel()
	delivery, body, err := h.verifier.Read(w, r.WithContext(ctx))
	if err != nil {
		w.WriteHeader(h.refuse(ctx, err))
		return
	}
	h.secrets.note(delivery.SecretVersion)
	status := h.take(ctx, delivery, body)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	}
	w.WriteHeader(status)
}

var errHandlerTimeout = fmt.Errorf("%w: handler: no commit in time", Err)

// refuse answers what the Verifier did not let through. The reason is for our
// log; it would help nobody outside but a forger.
func (h *Handler) refuse(ctx context.Context, err error) int {
	if errors.Is(err, verify.ErrUnverified) {
		h.counters.unverified.Add(1)
	}
	status := h.verifier.Status(err)
	h.log.LogAttrs(ctx, slog.LevelWarn, "webhook refused", slog.Int("status", status), slog.Any("error", err))
	return status
}

func (h *Handler) take(ctx context.Context, d verify.Delivery, body []byte) int {
	log := h.log.With(slog.String("delivery", d.ID), slog.String("secret_version", d.SecretVersion))
	ev, err := h.read(d, body)
	if err != nil {
		return h.unreadable(ctx, log, d, err)
	}
	log = log.With(slog.String("event", ev.ID), slog.String("kind", string(ev.Kind)))
	result, err := h.receiver.Push(ctx, ev)
	switch {
	case err == nil:
		h.counters.fresh.Add(int64(result.Fresh))
		h.counters.duplicate.Add(int64(result.Duplicate))
		log.LogAttrs(ctx, slog.LevelDebug, "webhook taken",
			slog.Int("fresh", result.Fresh), slog.Int("duplicate", result.Duplicate))
		return http.StatusNoContent
	case errors.Is(err, ErrParked):
		h.counters.parked.Add(1)
		log.LogAttrs(ctx, slog.LevelError, "webhook parked: the program's handler fails on this event", slog.Any("error", err))
		return http.StatusInternalServerError
	}
	return h.unavailable(ctx, log, err)
}

// unavailable is an answer that brings the delivery back.
func (h *Handler) unavailable(ctx context.Context, log *slog.Logger, err error) int {
	h.counters.unavailable.Add(1)
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	log.LogAttrs(ctx, slog.LevelWarn, "webhook not taken", slog.Any("error", err))
	return http.StatusServiceUnavailable
}

// unreadable answers a genuine body that is not an event: a 500, because a
// newer version of this program may read it, and in the end a 204, because a
// provider without a last attempt would send it for ever.
func (h *Handler) unreadable(ctx context.Context, log *slog.Logger, d verify.Delivery, err error) int {
	h.counters.unreadable.Add(1)
	times, countErr := h.receiver.Unreadable(ctx, d.ID)
	if countErr != nil {
		return h.unavailable(ctx, log, countErr)
	}
	acknowledged := times > unreadableAnswers
	log.LogAttrs(ctx, slog.LevelError, "webhook is genuine but not an event",
		slog.Int("times", times), slog.Bool("acknowledged", acknowledged), slog.Any("error", err))
	if acknowledged {
		return http.StatusNoContent
	}
	return http.StatusInternalServerError
}

// read runs the profile. Whatever it does, a fault becomes an error that may
// be logged.
func (h *Handler) read(d verify.Delivery, body []byte) (ev Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &profilePanic{p}
		}
	}()
	ev, err = h.profile(d, body)
	if err != nil {
		return Event{}, withoutContent(err)
	}
	if ev.ID == "" {
		return Event{}, fmt.Errorf("%w: the profile gave it no ID", ErrNotEvent)
	}
	if ev.Data.Len() == 0 {
		ev.Data = client.NewRaw(body)
	}
	return tidy(ev), nil
}
