package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Start says where a stream that has no position yet begins. It must be
// chosen: one answers old mail, the other does not.
type Start int

const (
	_ Start = iota

	// FromNow begins at the head: what happened before the first [Sweeper.Attach]
	// is history. A source without sequences has what it shows settled, unseen.
	FromNow

	// FromBeginning takes everything the provider still has.
	FromBeginning
)

// SweeperConfig sets up a [Sweeper]. Start is required; any other field's zero
// value is its default.
type SweeperConfig struct {
	Start Start

	// LookBack is how late a sequence may become visible after a higher one.
	// Every sweep reads that much again. 2 minutes.
	LookBack time.Duration

	// Every is the pause between sweeps. 1 minute.
	Every time.Duration

	// Lease is how long a process that died keeps others from sweeping. 30 seconds.
	Lease time.Duration

	// PagesPerCommit is the most pages one commit takes, and how far is read
	// ahead, when a sweep is behind. 10.
	PagesPerCommit int

	// MaxBackoff is the longest pause that [Sweeper.Run] chooses after a failure
	// of the service or the store. 1 minute.
	MaxBackoff time.Duration

	// Logger gets a record for every sweep: debug if all is well. It never gets
	// content. Discarded by default.
	Logger *slog.Logger
}

// Sweeper is the pull door: it reads a [Source] from the stored position to
// the head and hands every event to the [Receiver], together with the position.
// Build it with [NewSweeper], then [Sweeper.Run] it, or call [Sweeper.Sweep]
// from a timer of your own. It is safe for concurrent use; a second Sweep waits
// for the first. Several processes may sweep one stream: a lease keeps them
// from doing the same work, and nothing depends on it.
type Sweeper struct {
	source   Source
	receiver Receiver
	config   SweeperConfig
	log      *slog.Logger
	owner    string // of the lease: this Sweeper and no other
	turn     chan struct{}
	kick     chan struct{}
	status   status
}

// NewSweeper returns a Sweeper, or every fault of its arguments at once. It
// asks nothing of the source or the receiver.
func NewSweeper(source Source, r Receiver, config SweeperConfig) (*Sweeper, error) {
	if err := errors.Join(config.check(), checkSource(source, r)); err != nil {
		return nil, err
	}
	config.LookBack = cmp.Or(config.LookBack, 2*time.Minute)
	config.Every = cmp.Or(config.Every, time.Minute)
	config.Lease = cmp.Or(config.Lease, 30*time.Second)
	config.PagesPerCommit = cmp.Or(config.PagesPerCommit, 10)
	config.MaxBackoff = cmp.Or(config.MaxBackoff, time.Minute)
	return &Sweeper{
		source: source, receiver: r, config: config,
		log:    orDiscard(config.Logger).With(slog.String("stream", r.Stream().Name)),
		owner:  rand.Text(),
		turn:   make(chan struct{}, 1),
		kick:   make(chan struct{}, 1),
		status: status{attached: make(chan struct{})},
	}, nil
}

func (c SweeperConfig) check() error {
	var faults []error
	if c.Start != FromNow && c.Start != FromBeginning {
		faults = append(faults, fmt.Errorf("%w: sweeper: Start must be FromNow or FromBeginning", ErrConfig))
	}
	for name, d := range map[string]int64{
		"LookBack": int64(c.LookBack), "Every": int64(c.Every), "Lease": int64(c.Lease),
		"PagesPerCommit": int64(c.PagesPerCommit), "MaxBackoff": int64(c.MaxBackoff),
	} {
		if d < 0 {
			faults = append(faults, fmt.Errorf("%w: sweeper: %s is negative", ErrConfig, name))
		}
	}
	return errors.Join(faults...)
}

func checkSource(source Source, r Receiver) error {
	var faults []error
	if source == nil {
		faults = append(faults, fmt.Errorf("%w: sweeper: a Source is required", ErrConfig))
	}
	if r == nil {
		faults = append(faults, fmt.Errorf("%w: sweeper: a Receiver is required", ErrConfig))
	}
	if faults != nil {
		return errors.Join(faults...)
	}
	if _, settles := source.(Settler); !settles && !source.Sequenced() {
		faults = append(faults, fmt.Errorf("%w: sweeper: a Source without sequences must be a Settler", ErrConfig))
	}
	from, to := source.Stream(), r.Stream()
	if from.Origin != to.Origin || from.Environment != to.Environment {
		faults = append(faults, fmt.Errorf("%w: sweeper: the Source reads %q %q: %w %q %q, the Receiver's",
			ErrConfig, from.Origin, from.Environment, ErrForeignStream, to.Origin, to.Environment))
	}
	return errors.Join(faults...)
}

// Sweep reads from the settled position to the head once, after attaching if
// nothing is stored yet. It returns [ErrLeaseHeld] if another process is at
// it. The Report says what was committed, also beside an error; what was not
// is read again by the next sweep.
func (s *Sweeper) Sweep(ctx context.Context) (Report, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
	w := &sweep{Sweeper: s}
	err := w.run(ctx)
	s.status.ended(ctx, w, err)
	w.logEnd(ctx, err)
	return w.report, err
}

// SweepFrom reads from a cursor to the head once and hands over what lies at or
// below the attached position too: 0 is all that the provider still has. Use it
// after a credential came to see more inboxes, or to take in history on
// purpose, whenever; only for an inbox that earlier sweeps saw, and then did not,
// it must come before IDs are forgotten (dedupe.Config.Retain). Nothing is handed
// over twice, so it may be run again, also from further back. No stored position
// moves, and other sweeps go on beside it. An expired cursor is an error here.
func (s *Sweeper) SweepFrom(ctx context.Context, from Cursor) (Report, error) {
	w := &sweep{Sweeper: s, history: true}
	err := w.runHistory(ctx, from)
	s.status.ended(ctx, w, err)
	w.logEnd(ctx, err)
	return w.report, err
}

// Kick has [Sweeper.Run] sweep now and not at the end of its pause. It does not
// shorten the pause after a failure.
func (s *Sweeper) Kick() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Sequenced is the Source's: without sequences a sweep leaves no trace on an
// event that a webhook brought.
func (s *Sweeper) Sequenced() bool { return s.source.Sequenced() }
