package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/replywake/replywake/client"
)

// sweep is one sweep.
type sweep struct {
	*Sweeper
	report  Report
	renewed time.Time // the lease

	began   time.Time // the store's clock
	local   time.Time // ours, at the same moment
	cursor  Cursor    // the highest committed, by this sweep or before
	settled Cursor

	history bool // hand over what lies at or below the attached position; move no position

	expired *Cursor // an expired position, until its loss is recorded
}

// reachedEvery is how many commits of a long sweep lie between two records of
// how far it came.
const reachedEvery = 10

// run is a sweep as a timer starts it.
func (w *sweep) run(ctx context.Context) error {
	if err := w.Attach(ctx); err != nil {
		return err
	}
	if err := w.lease(ctx); err != nil {
		return err
	}
	defer w.release(ctx)
	w.local = time.Now() // before the store's, so that it is not too late
	pos, err := w.position(ctx)
	if err != nil {
		return err
	}
	w.began, w.cursor, w.settled = pos.Now, pos.Cursor, pos.Settled
	if !w.source.Sequenced() {
		return w.drain(ctx)
	}
	return w.fromSettled(ctx)
}

// runHistory is a sweep that a person asked for. It may leave events out or
// begin where no expiry shows, so it moves nothing that stands for having read
// everything, and needs no lease.
func (w *sweep) runHistory(ctx context.Context, from Cursor) error {
	if !w.source.Sequenced() {
		return fmt.Errorf("%w: the source has no sequences to sweep from", ErrCursorInvalid)
	}
	if err := w.Attach(ctx); err != nil {
		return err
	}
	w.report.From = from
	return w.follow(ctx, from)
}

func (w *sweep) fromSettled(ctx context.Context) error {
	w.report.From = w.settled
	if w.settled == 0 && w.cursor > 0 {
		// A sweep from the beginning asks with no cursor, so none would be
		// found to have expired.
		if err := w.checkCursor(ctx, 0); err != nil {
			return err
		}
	}
	err := w.follow(ctx, w.settled)
	at, ok := expiredAt(err)
	if !ok {
		return err
	}
	if err := w.checkCursor(ctx, at); err != nil {
		return err
	}
	return w.follow(ctx, 0) // once: a second expiry is an error
}

// follow reads from a position to the head.
func (w *sweep) follow(ctx context.Context, from Cursor) error {
	reading, cancel := context.WithCancel(ctx)
	pages := w.readAhead(reading, newWalk(w.source, from))
	defer func() {
		cancel()
		for range pages { // until it has ended
		}
	}()
	for {
		got, err := w.gather(ctx, pages)
		if err != nil {
			return err
		}
		if err := w.recordLoss(ctx, got); err != nil {
			return err
		}
		if err := w.commit(ctx, got.events); err != nil {
			return err
		}
		if got.err != nil {
			return got.err
		}
		if got.head {
			return w.reached(ctx, true)
		}
	}
}

// commit hands events over, and the position with them. Rows alone move it,
// and only upward.
func (w *sweep) commit(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	batch := Batch{Events: make([]Event, len(events)), History: w.history}
	for i, ev := range events {
		if ev.ID == "" {
			return sourceError("read", fmt.Errorf("%w: no ID at sequence %s", ErrNotEvent, ev.Sequence))
		}
		batch.Events[i] = tidy(ev)
	}
	last := events[len(events)-1].Sequence
	if !w.history && last > w.cursor {
		batch.Cursor = last
	}
	result, err := w.take(ctx, batch)
	w.report.add(result) // also a part of the batch
	if err != nil {
		return storeError("take", err)
	}
	w.cursor = max(w.cursor, batch.Cursor)
	w.report.Commits++
	w.report.Through = last
	return w.committed(ctx, events)
}

// take hands a batch over, and keeps the lease meanwhile: a slow handler may
// take longer.
func (w *sweep) take(ctx context.Context, batch Batch) (Result, error) {
	renewing, stop := context.WithCancel(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		tick := time.NewTicker(max(w.config.Lease/3, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = w.keepLease(renewing) // what is wrong is met after the commit
			case <-renewing.Done():
				return
			}
		}
	})
	defer renewal.Wait()
	defer stop()
	return w.receiver.Take(ctx, batch)
}

func (w *sweep) committed(ctx context.Context, events []Event) error {
	if err := w.settle(ctx, events); err != nil && !w.leaveOut(ctx, events, err) {
		return err
	}
	if w.report.Commits%reachedEvery == 0 && w.report.Through > w.settled {
		return w.reached(ctx, false)
	}
	return nil
}

// leaveOut goes on without settling events whose settling is refused: they are
// committed. History is not, and must not be shown later as if it were new.
func (w *sweep) leaveOut(ctx context.Context, events []Event, err error) bool {
	leaver, ok := w.source.(Leaver)
	if !ok || client.ClassOf(err) != client.ClassRequest {
		return false
	}
	w.log.LogAttrs(ctx, slog.LevelWarn, "events are taken and cannot be settled: they are left out from now on", slog.Any("error", err))
	leaver.LeaveOut(events)
	return true
}

// reached records how far the sweep came. At the head that is everything that
// is known, for nothing else is left to read.
func (w *sweep) reached(ctx context.Context, head bool) error {
	w.report.Head = head
	through, lookBack := w.report.Through, w.config.LookBack
	switch {
	case !w.source.Sequenced():
		through, lookBack = 0, 0
	case w.history:
		return nil
	case head:
		through = max(through, w.cursor)
	}
	if err := w.receiver.Reached(ctx, w.began, through, lookBack, head); err != nil {
		return storeError("reached", err)
	}
	return nil
}

// drain reads a source without sequences until it shows nothing. A parked
// event is settled like any other: the Receiver has it.
func (w *sweep) drain(ctx context.Context) error {
	for reading := newWalk(w.source, 0); ; {
		page, err := reading.next(ctx)
		if err != nil {
			return sourceError("page", err)
		}
		w.report.Pages++
		w.status.clock(page.Date)
		if reading.done {
			return w.reached(ctx, true)
		}
		if err := w.keepLease(ctx); err != nil {
			return err
		}
		if err := w.commit(ctx, page.Events); err != nil {
			return err
		}
	}
}

func (w *sweep) logEnd(ctx context.Context, err error) {
	level, text, r := slog.LevelDebug, "swept", w.report
	attrs := []slog.Attr{
		slog.Int("pages", r.Pages), slog.Int("commits", r.Commits), slog.Int("fresh", r.Fresh),
		slog.Int("duplicate", r.Duplicate), slog.Int("parked", r.Parked), slog.Int("skipped", r.Skipped),
	}
	if err != nil {
		attrs = append(attrs, slog.String("trouble", string(troubleOf(err))), slog.Any("error", err))
	}
	switch trouble := troubleOf(err); {
	case trouble == TroubleNone, ctx.Err() != nil:
	case trouble == TroubleCredential:
		level, text = slog.LevelWarn, "the provider refuses the key: check it and what it may read; Run tries again in 5 minutes"
	default:
		level, text = slog.LevelWarn, "a sweep failed"
	}
	w.log.LogAttrs(ctx, level, text, attrs...)
}
