// Command handler is the first of three ways in: a service that exists already
// and takes only verified webhooks from now on.
//
//	go run ./examples/handler
//
// With EFA_WEBHOOK_SECRET set it serves at LISTEN_ADDR (127.0.0.1:8080).
// Without it, it is a demonstration that needs no account: it plays the
// provider and an attacker too, and exits with status 0 if the service told
// them apart.
//
// service.go is the service; the verifier is one line of its routes.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if secret := os.Getenv("EFA_WEBHOOK_SECRET"); secret != "" {
		err = run(ctx, secret)
	} else {
		err = demonstrate(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "handler:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, secret string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	service, err := newService(secret, log)
	if err != nil {
		return err
	}
	addr := os.Getenv("LISTEN_ADDR")
	if addr == "" {
		addr = "127.0.0.1:8080"
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	log.Info("serving", "url", "http://"+l.Addr().String()+"/hooks/efa")
	return serve(ctx, l, service)
}

// serve serves until ctx ends; requests under way may then finish.
func serve(ctx context.Context, l net.Listener, service http.Handler) error {
	srv := &http.Server{Handler: service, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(within)
	})
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
