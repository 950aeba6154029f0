package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// What a stop may take, of the 10 s that most supervisors give.
const (
	stopWithin  = 9 * time.Second
	drainWithin = 6 * time.Second
)

// untilSignal ends with the first SIGTERM or SIGINT. A second one ends the
// process at once, and so does the end of the time: leases that are still held
// then run out by themselves, as after kill -9.
func untilSignal(log *slog.Logger) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop()
		log.Info("stopping", "within", stopWithin)
		time.AfterFunc(stopWithin, func() { os.Exit(0) })
	})
	return ctx
}

// stopped waits until everything that was started has ended; err, if any, is
// why it should. An end that was asked for is no error.
func stopped(ctx context.Context, loops *errgroup.Group, err error) error {
	loops.Go(func() error { return err })
	err = loops.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
