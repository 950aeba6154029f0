// Command sweeper is the second of three ways in: an agent's process without a
// public address receives every event once, with one API key and a SQLite file.
//
//	go run ./examples/sweeper
//
// With EFA_API_KEY and EFA_PROJECT_ID set it receives until it is stopped, into
// sweeper.db. Without a key it is a demonstration that needs no account: it
// plays the provider and all that goes wrong, and exits with status 0 if every
// message was handled exactly once.
//
// agent.go is what there is to embed.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if key := os.Getenv("EFA_API_KEY"); key != "" {
		err = run(ctx, efa.Config{BaseURL: os.Getenv("EFA_BASE_URL"), Project: os.Getenv("EFA_PROJECT_ID"), Key: key})
	} else {
		err = demonstrate(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sweeper:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, account efa.Config) error {
	db, err := open(ctx, "sweeper.db")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return receive(ctx, account, db, events.SweeperConfig{Start: events.FromNow, Logger: log}, note)
}
