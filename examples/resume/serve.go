package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// serve listens at once, at the address that variable gave, and serves until
// ctx ends; requests under way may then finish.
func serve(ctx context.Context, loops *errgroup.Group, variable, addr string, h http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	loops.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", addr, err)
		}
		return nil
	})
	loops.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			_ = srv.Close() // a client that does not come to an end
		}
		return nil
	})
	return nil
}

// publicRoutes is all that strangers can reach. It is no ServeMux, which would
// answer a path that is not clean with a redirect.
func publicRoutes(p provider, hooks, ready http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == p.Path && p.hasWebhook():
			hooks.ServeHTTP(w, r)
		case path == "/healthz":
			_, _ = w.Write([]byte("ok\n"))
		case path == "/readyz":
			ready.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// newVerifier proves webhooks; nil where there is no secret.
func newVerifier(p provider, log *slog.Logger) (*verify.Verifier, error) {
	if !p.hasWebhook() {
		log.Info("no webhook secret: there is no webhook door, sweeping alone")
		return nil, nil
	}
	if !p.Previous.IsZero() {
		log.Info("the previous webhook secret is accepted too", "until", p.Previous.UTC().Format(time.RFC3339))
	}
	p.Verify.Logger = log
	return verify.New(p.Verify)
}

// newWebhook is the push door; nil where nothing can be verified.
func newWebhook(v *verify.Verifier, profile events.Profile, inbox *dedupe.Inbox, log *slog.Logger) (*events.Handler, error) {
	if v == nil {
		return nil, nil
	}
	return events.NewHandler(v, profile, inbox, events.HandlerConfig{Logger: log})
}

// sweep runs the sweeper. What stops it for good stops the program only where
// nothing can be done without it: a webhook door stays open, and /readyz tells.
func sweep(ctx context.Context, s *events.Sweeper) error {
	err := s.Run(ctx)
	if errors.Is(err, events.ErrForeignStream) || err != nil && !s.Health().Attached {
		return err
	}
	return nil
}

// gate is a handler that is not there from the beginning. Until it is opened
// what may clear is answered 503.
type gate struct {
	closed  http.Handler
	handler atomic.Pointer[http.Handler]
}

// newGate is a closed gate. A forgery is refused by it too.
func newGate(v *verify.Verifier) *gate {
	starting := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if v != nil {
		return &gate{closed: v.Middleware(starting)}
	}
	return &gate{closed: starting}
}

func (g *gate) open(h http.Handler) { g.handler.Store(&h) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := g.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	g.closed.ServeHTTP(w, r)
}
