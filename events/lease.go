package events

import (
	"context"
	"log/slog"
	"time"
)

// The lease saves two processes from doing the same work. Nothing is wrong if
// both do it: IDs are claimed once and positions only move upward.

func (w *sweep) lease(ctx context.Context) error {
	ok, err := w.receiver.Lease(ctx, w.owner, w.config.Lease)
	if err != nil {
		return storeError("lease", err)
	}
	if !ok {
		return ErrLeaseHeld
	}
	w.renewed = time.Now()
	return nil
}

// keepLease renews it when a third of its time is over.
func (w *sweep) keepLease(ctx context.Context) error {
	if w.history || time.Since(w.renewed) < w.config.Lease/3 {
		return nil
	}
	return w.lease(ctx)
}

const releaseTimeout = 5 * time.Second

// release gives it back also when the sweep was told to stop.
func (w *sweep) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := w.receiver.Release(ctx, w.owner); err != nil {
		w.log.LogAttrs(ctx, slog.LevelDebug, "lease not given back, it will end by itself", slog.Any("error", err))
	}
}
