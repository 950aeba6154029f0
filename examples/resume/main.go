// Command resume is a whole service to copy: an agent that asks by e-mail,
// stops, and goes on when the answer comes, exactly once, whatever crashes.
//
//	go run ./examples/resume
//	PROVIDER=goshen go run ./examples/resume
//
// Without an EFA_ or GOSHEN_ variable it is a demonstration that needs no
// account, no server and no Docker. With them it is the service; config.go
// lists them.
//
// This file is the recipe: what is built from what, in which order things
// start, and how they stop. The agent itself is agent.go; replace it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/resume"
)

func main() {
	name := cmp.Or(os.Getenv("PROVIDER"), defaultProvider)
	if !isService(os.Environ()) {
		os.Exit(demo(os.Stdout, name))
	}
	cfg, err := loadConfig(os.LookupEnv, time.Now())
	if err != nil {
		fmt.Fprintf(os.Stderr, "resume: nothing was started (PROVIDER=%s):\n%v\n", name, err)
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
	provider := cfg.Provider // whose mail it is: see provider.go
	verifier, err := newVerifier(provider, log)
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
	if err := serve(running, loops, "LISTEN_ADDR", cfg.Listen, publicRoutes(provider, hooks, ready)); err != nil {
		return err
	}
	if cfg.AdminToken != "" {
		if err := serve(running, loops, "ADMIN_ADDR", cfg.Admin, adminOnly(cfg.AdminToken, admin)); err != nil {
			return err
		}
	}

	// The engine runs workflows. The inbox hands each event to the engine's
	// Route once, in the transaction that records the event as seen.
	starting, started := context.WithTimeout(running, databasePatience)
	defer started()
	if err := waitForDatabase(starting, log, db.ping); err != nil {
		return stopped(ctx, loops, err)
	}
	eng, err := db.engine(provider.Mail, step, resume.Config{
		Name: provider.Engine, Inboxes: provider.Inboxes, Lease: cfg.Lease, Drain: drainWithin,
		SendRetryAfter: cfg.SendRetryAfter, MaxSendsPerHour: cfg.MaxSendsPerHour, Logger: log,
	})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	inbox, err := db.inbox(dedupe.Config{Stream: provider.Mail.Stream(), AfterCommit: eng.Wake, Logger: log})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	if err := waitForDatabase(starting, log, eng.Migrate); err != nil {
		return stopped(ctx, loops, err)
	}

	// Two doors into the inbox: the sweeper is complete, the webhook is fast.
	sweeper, err := events.NewSweeper(provider.Source, inbox, events.SweeperConfig{
		Start: cfg.SweepStart, Every: cfg.SweepEvery, Lease: cfg.Lease, MaxBackoff: 10 * cfg.SendRetryAfter, Logger: log,
	})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	webhook, err := newWebhook(verifier, provider.Profile, inbox, log)
	if err != nil {
		return stopped(ctx, loops, err)
	}
	doc, err := doctor.New(doctor.Config{
		Inbox: inbox, Handler: webhook, Sweeper: sweeper, Provider: provider.Doctor,
		Inboxes: slices.Sorted(maps.Keys(provider.Inboxes)), MaxAge: ready.maxAge, Logger: log,
	})
	if err != nil {
		return stopped(ctx, loops, err)
	}
	ready.watch(eng, sweeper)
	admin.open(adminRoutes(eng, provider.Mail, onceAttached(sweeper, db.start), metrics.handler(webhook, sweeper), doc, log))
	loops.Go(func() error { return sweep(running, sweeper) })

	// Nothing is taken, started or sent before the stream has a position: with
	// SWEEP_START=now a reply to what we sent would count as history.
	select {
	case <-sweeper.Attached():
	case <-running.Done():
		return stopped(ctx, loops, nil)
	}
	loops.Go(func() error { return inbox.Run(running) })
	loops.Go(func() error { return eng.Run(running) })
	hooks.open(webhook)
	ready.open()
	log.Info("open", "stream", provider.Mail.Stream().Name, "listen", cfg.Listen, "admin", cfg.AdminToken != "", "webhook", provider.hasWebhook())
	return stopped(ctx, loops, nil)
}
