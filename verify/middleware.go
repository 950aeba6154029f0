package verify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
)

// Middleware lets only verified requests through to next, which reads the same
// bytes from r.Body and finds the [Delivery] with [FromContext]. Everything
// else is answered with [Verifier.Status], without a body, and logged.
//
// Put it outside anything that reads, binds or inflates the body.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, body, err := v.Read(w, r)
		if err != nil {
			v.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, restore(r, d, body))
	})
}

func (v *Verifier) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := v.Status(err)
	if c := v.get(); c != nil {
		level := slog.LevelWarn
		if errors.Is(err, ErrBodyConsumed) {
			level = slog.LevelError // a fault of this process, not of the sender
		}
		c.config.Logger.LogAttrs(r.Context(), level, "webhook refused",
			slog.Int("status", status), slog.String("error", err.Error()))
	}
	w.WriteHeader(status)
}

// restore returns the request with its body whole again, of a known length.
func restore(r *http.Request, d Delivery, body []byte) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), deliveryKey{}, d))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	return r
}

type deliveryKey struct{}

// FromContext returns the Delivery that [Verifier.Middleware] verified, and
// false in a request that did not pass through it.
func FromContext(ctx context.Context) (Delivery, bool) {
	d, ok := ctx.Value(deliveryKey{}).(Delivery)
	return d, ok
}
