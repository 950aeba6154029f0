// Command resume is a whole service to copy: an agent that asks by e-mail,
// stops, and goes on when the answer comes, exactly once, whatever crashes.
//
//	go run ./examples/resume
//
// Without an EFA_ variable it is a demonstration that needs no account, no
// server and no Docker. With them it is the service; config.go lists them.
//
// This file is the recipe: what is built from what, in which order things
// start, and how they stop. The agent itself is agent.go; replace it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

func main() {
	if !isService(os.Environ()) {
		os.Exit(demo(os.Stdout))
	}
	cfg, err := loadConfig(os.LookupEnv, time.Now())
	if err != nil {
		fmt.Fprintf(os.Stderr, "resume: nothing was started:\n%v\n", err)
		os.Exit(2)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(untilSignal(log), cfg, log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

// run is the service from its configuration to its last commit.
func run(ctx context.Context, cfg config, log *slog.Logger) error {
	metrics, err := newMetrics() // before what is measured
	if err != nil {
		return err
	}
	provider, err := efa.New(cfg.Provider)
	if err != nil {
		return err
	}
	verifier, err := newVerifier(cfg, log)
	if err != nil {
		return err
	}
	db, err := openStore(ctx, cfg.Database)
	if err != nil {
		return err
	}
	defer db.close()

	// Both servers listen from the beginning, for /healthz and /readyz. What
	// needs the rest answers 503 until it is there.
	loops, running := errgroup.WithContext(ctx)
	ready := &readiness{maxAge: 3*cfg.SweepEvery + 15*time.Second, log: log}
	hooks, admin := newGate(verifier), newGate(nil)
	if err := serve(running, loops, cfg.Listen, publicRoutes(cfg, hooks, ready)); err != nil {
		return err
	}
	if cfg.AdminToken != "" {
		if err := serve(running, loops, cfg.Admin, adminOnly(cfg.AdminToken, admin)); err != nil {
			return err
		}
	}

	// The engine runs workflows. The inbox hands each event to the engine's
	// Route once, in the transaction that records the event as seen.
	if err := waitForDatabase(running, log, db.ping); err != nil {
		return stopped(ctx, loops, err)
	}
	eng, err := db.engine(provider, step, resume.Config{
		Inboxes: cfg.Inboxes, Lease: cfg.Lease, Drain: drainWithin,
		SendRetryAfter: cfg.SendRetryAfter, MaxSendsPerHour: cfg.MaxSendsPerHour, Logger: log,
	})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	inbox, err := db.inbox(dedupe.Config{Stream: provider.Stream(), AfterCommit: eng.Wake, Logger: log})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	if err := waitForDatabase(running, log, eng.Migrate); err != nil {
		return stopped(ctx, loops, err)
	}

	// Two doors into the inbox: the sweeper is complete, the webhook is fast.
	sweeper, err := events.NewSweeper(provider.Source(), inbox, events.SweeperConfig{
		Start: cfg.SweepStart, Every: cfg.SweepEvery, Lease: cfg.Lease, MaxBackoff: 10 * cfg.SendRetryAfter, Logger: log,
	})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	webhook, err := newWebhook(verifier, inbox, log)
	if err != nil {
		return stopped(ctx, loops, err)
	}
	ready.watch(eng, sweeper)
	loops.Go(func() error { return sweep(running, sweeper) })

	// Nothing is taken or sent before the stream has a position: with
	// SWEEP_START=now a reply to what we sent would count as history.
	select {
	case <-sweeper.Attached():
	case <-running.Done():
		return stopped(ctx, loops, nil)
	}
	loops.Go(func() error { return inbox.Run(running) })
	loops.Go(func() error { return eng.Run(running) })
	hooks.open(webhook)
	admin.open(adminRoutes(eng, db.start, metrics.handler(webhook, sweeper), log))
	ready.open()
	log.Info("open", "listen", cfg.Listen, "admin", cfg.AdminToken != "", "webhook", cfg.hasWebhook())
	return stopped(ctx, loops, nil)
}
