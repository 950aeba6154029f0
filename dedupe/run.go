package dedupe

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/replywake/replywake/events"
)

// Run tries parked events again when they are due and forgets what is old,
// until ctx ends; then it returns nil. It is needed once a stream, whatever the
// doors; running it in several processes is safe. It returns an error only for
// what does not mend itself: [events.ErrForeignStream].
func (in *Inbox) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var loops sync.WaitGroup
	loops.Go(func() { in.every(ctx, stop, in.cfg.PollEvery, in.retryDue) })
	loops.Go(func() { in.every(ctx, stop, in.cfg.PruneEvery, in.prune) })
	loops.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, events.ErrForeignStream) {
		return cause
	}
	return nil
}

// every does work now and then at intervals.
func (in *Inbox) every(ctx context.Context, stop context.CancelCauseFunc, d time.Duration, work func(context.Context) error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := in.open(ctx)
		if errors.Is(err, events.ErrForeignStream) {
			stop(wrap("run", err))
			return
		}
		if err == nil {
			err = work(ctx)
		}
		if err != nil && ctx.Err() == nil {
			in.log.LogAttrs(ctx, slog.LevelWarn, "maintenance failed, will be tried again", slog.Any("error", err))
		}
		timer.Reset(d)
	}
}

// Maintain does once what [Inbox.Run] does again and again: it tries the parked
// events that are due and forgets what is old. It is for programs that have
// timers of their own.
//
// What is forgotten, and when it no longer matters:
//
//   - The ID of an event that a sweep has met in its turn, at or below the
//     settled position, Config.Retain after it was last seen. The floor of its
//     inbox is stretched over it in the same commit, and a sweep takes what lies
//     there as handled. A floor does not pass a parked event. A push that the
//     provider repeats after so long is fresh. The IDs of what only
//     [events.Sweeper.SweepFrom] met are kept.
//   - The ID of an event that no sweep has met, Config.RetainUnswept after it was
//     last seen; on a stream with a sweeper only once a sweep has passed it by a
//     day. The time in which such events happened is remembered for their inbox,
//     and a later sweep takes all of it as handled, if the provider says when an
//     event happened. Here too a repeated push is fresh.
//   - A parked event's content and error, Config.RetainContent after it was
//     parked. What is left, its ID and when it failed, stays until a person
//     discards it: it was never handled, and nothing else would say so.
//   - Unreadable deliveries and discarded events, after Config.RetainUnswept.
func (in *Inbox) Maintain(ctx context.Context) error {
	if err := in.open(ctx); err != nil {
		return wrap("maintain", err)
	}
	return errors.Join(in.retryDue(ctx), in.prune(ctx))
}
