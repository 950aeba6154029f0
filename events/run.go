package events

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/replywake/replywake/client"
)

// Run attaches, sweeps at once, and then after every Config.Every, until ctx
// ends; then it gives the lease back and returns nil.
//
// It outlives whatever can clear. After a failure of the service or the store
// it waits for a random time up to a bound that doubles up to
// Config.MaxBackoff, or as long as the provider asks, at most 5 minutes; after
// a refused credential or request it tries once in 5 minutes. [Sweeper.Health]
// shows it meanwhile.
//
// It returns an error only for what will be the same at every try until a
// person mends it: [ErrForeignStream], or a 400, the provider's answer to a
// cursor it does not take. It returns and does not wait, because that is seen;
// the program decides whether its other doors stay open.
//
// Several processes may run one stream: each looks at the stored position
// first and leaves out a sweep that another has just made.
func (s *Sweeper) Run(ctx context.Context) error {
	for now := true; ; {
		err := s.sweepIfDue(ctx, now)
		if ctx.Err() != nil {
			return nil
		}
		if isFinal(err) {
			s.status.stopped()
			s.log.LogAttrs(ctx, slog.LevelError, "sweeping stopped: a person must mend this", slog.Any("error", err))
			return err
		}
		kicked, ok := s.rest(ctx, err)
		if !ok {
			return nil
		}
		now = kicked || s.Health().Err != nil // only a success of its own clears that
	}
}

// sweepIfDue sweeps, unless another process did so just now.
func (s *Sweeper) sweepIfDue(ctx context.Context, now bool) error {
	select {
	case <-s.kick: // this is the sweep it asks for
		now = true
	default:
	}
	if !now {
		pos, err := s.position(ctx)
		if err != nil {
			s.status.failed(err)
			return err
		}
		// Less than the whole pause, because two clocks and timers are involved.
		if pos.Known && pos.Now.Sub(pos.Through) < s.config.Every*9/10 {
			return nil
		}
	}
	_, err := s.Sweep(ctx)
	return err
}

// rest waits until the next try is due, or, after a success, until a kick. It
// is not ok if ctx ended.
func (s *Sweeper) rest(ctx context.Context, err error) (kicked, ok bool) {
	timer := time.NewTimer(s.pause(err))
	defer timer.Stop()
	kick := s.kick
	if troubleOf(err) != TroubleNone {
		kick = nil
	}
	select {
	case <-timer.C:
		return false, true
	case <-kick:
		return true, true
	case <-ctx.Done():
		return false, false
	}
}

const (
	patience  = 5 * time.Minute // between tries that only a person can make succeed
	firstWait = time.Second
)

func (s *Sweeper) pause(err error) time.Duration {
	switch troubleOf(err) {
	case TroubleCredential, TroubleRequest:
		return patience
	case TroubleNone:
		if err != nil { // another process sweeps: be there if it dies
			return min(s.config.Every, s.config.Lease/3)
		}
		return s.config.Every
	}
	doublings := min(max(s.Health().Failures-1, 0), 20)
	bound := max(min(firstWait<<doublings, s.config.MaxBackoff), 1)
	return max(rand.N(bound), min(client.RetryAfter(err), client.MaxRetryAfter))
}
