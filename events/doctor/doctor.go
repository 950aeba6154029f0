package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/replywake/replywake/events"
)

// ErrConfig is what [New] returns of an argument that cannot be right.
var ErrConfig = errors.New("doctor: configuration")

// Config names the parts of a program. One at least is required; what is nil is
// left out of the report, which says so.
type Config struct {
	Inbox    Inbox           // the store behind both doors
	Handler  *events.Handler // the push door
	Sweeper  *events.Sweeper // the pull door
	Provider Provider        // the provider's client

	// Inboxes are those that the program acts on. Other ones are then left out
	// of what is judged, for an endpoint may be told of more than the key sees.
	// Empty means all, and an inbox that no sweep ever met is then only a Note.
	Inboxes []string

	// MaxAge is how long ago everything may have been received, before the sweep
	// counts as behind. 15 minutes.
	MaxAge time.Duration

	Logger *slog.Logger // is told of a part that does not answer. Discarded by default.
}

// Doctor makes reports. It is safe for concurrent use.
type Doctor struct {
	config Config
	log    *slog.Logger
}

// New returns a Doctor, or every fault of its Config at once. It asks nobody.
func New(c Config) (*Doctor, error) {
	var faults []error
	if c.Inbox == nil && c.Handler == nil && c.Sweeper == nil && c.Provider == nil {
		faults = append(faults, fmt.Errorf("%w: there is nothing to look at", ErrConfig))
	}
	if c.MaxAge < 0 {
		faults = append(faults, fmt.Errorf("%w: MaxAge is negative", ErrConfig))
	}
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	c.MaxAge = cmp.Or(c.MaxAge, 15*time.Minute)
	c.Inboxes = slices.Clone(c.Inboxes)
	log := c.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Doctor{config: c, log: log}, nil
}

// patience is how long an answer of the store may take, or the listing.
const patience = 10 * time.Second

// Report looks at every part now. It waits 10 seconds for an answer of the
// store, and for the provider's listing.
func (d *Doctor) Report(ctx context.Context) Report {
	e := d.examine(ctx)
	for _, part := range []func(){e.sweep, e.doors, e.handling, e.push, e.deliveries, e.clock} {
		part()
	}
	slices.SortStableFunc(e.report.Findings, func(a, b Finding) int {
		return cmp.Compare(b.Level.rank(), a.Level.rank())
	})
	return e.report
}

func (l Level) rank() int { return slices.Index([]Level{OK, Note, Warning}, l) }

// examination is one report in the making: first what is seen, then, without
// asking anybody any more, what it means.
type examination struct {
	*Doctor
	report   Report
	health   events.Health
	storeErr error
	listErr  error
}

func (d *Doctor) examine(ctx context.Context) *examination {
	e := &examination{Doctor: d, report: Report{At: time.Now().UTC(), Findings: []Finding{}}}
	if d.config.Sweeper != nil {
		e.health = d.config.Sweeper.Health()
	}
	var asked sync.WaitGroup
	asked.Go(func() { e.askStore(ctx) })
	asked.Go(func() { e.askProvider(ctx) })
	asked.Wait()
	e.fates(ctx)
	return e
}

func (e *examination) askStore(ctx context.Context) {
	if e.config.Inbox == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.report.Stream = e.config.Inbox.Stream().Name
	doors, err := e.config.Inbox.Doors(ctx)
	if e.storeErr = err; err != nil {
		e.log.LogAttrs(ctx, slog.LevelWarn, "doctor: the store does not answer", slog.Any("error", err))
		return
	}
	e.report.Doors = &doors
}

func (e *examination) askProvider(ctx context.Context) {
	lister, ok := e.config.Provider.(Lister)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	endpoints, err := lister.Endpoints(ctx)
	for _, to := range endpoints {
		to.Deliveries = slices.Clone(to.Deliveries) // they are written to
		e.report.Endpoints = append(e.report.Endpoints, to)
	}
	if e.listErr = err; err != nil {
		e.log.LogAttrs(ctx, slog.LevelWarn, "doctor: the provider does not list its deliveries", slog.Any("error", e.listErr))
	}
}

func (e *examination) find(level Level, code Code, format string, args ...any) {
	e.report.Findings = append(e.report.Findings, Finding{level, code, fmt.Sprintf(format, args...)})
}
