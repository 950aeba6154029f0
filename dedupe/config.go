package dedupe

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/replywake/replywake/events"
)

// Config sets up an [Inbox]. Stream is required; any other field's zero value
// is its default.
type Config struct {
	// Stream names what the inbox receives; the name is the key of everything
	// stored. An origin, environment or credential that is empty is not compared.
	Stream events.Stream

	Schema string // Postgres schema; default "replywake". SQLite has none.

	// Pooler: true behind a connection pooler in transaction mode. No prepared
	// statement of ours then outlives its transaction.
	Pooler bool

	// AfterCommit is called after every commit that had fresh events. It must
	// not block: other commits wait for it.
	AfterCommit func()

	// CommitTimeout bounds one transaction, handler included: 8 s, because one
	// provider gives up at 10. Events whose handler takes longer are tried one
	// by one, and one that takes longer alone is parked.
	CommitTimeout time.Duration
	LockTimeout   time.Duration // how long a statement waits for a row, in whole milliseconds; default 2 s. Postgres only.
	GroupSize     int           // the most pushes that share a commit; default 64
	MaxWaiting    int           // the most pushes without an answer, then [events.ErrBusy]; default 1024

	// A parked event is failed after MaxAttempts (10) and GiveUpAfter (24 h),
	// both. The pause between attempts begins at RetryAfter (30 s) and doubles up
	// to 4 h.
	MaxAttempts int
	GiveUpAfter time.Duration
	RetryAfter  time.Duration

	// Retain is how long IDs are kept that a sweep has met and that lie behind
	// its settled position: 7 days. It must be longer than the provider's push
	// goes on trying.
	Retain time.Duration
	// RetainUnswept is how long other IDs are kept, counted from when they were
	// last seen, and unreadable deliveries, and what a person discarded: 30 days.
	RetainUnswept time.Duration
	// RetainContent is how long a parked event's content is kept, and the error,
	// which may quote it: 30 days, which is also the most.
	RetainContent time.Duration

	PollEvery  time.Duration // how often Run looks for parked events that are due; default 5 s
	PruneEvery time.Duration // how often Run forgets what is old; default 1 min

	Logger         *slog.Logger         // default: discard. It never gets content.
	MeterProvider  metric.MeterProvider // default: OpenTelemetry's global one
	TracerProvider trace.TracerProvider // default: OpenTelemetry's global one
}

const day = 24 * time.Hour

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, "replywake")
	c.CommitTimeout = cmp.Or(c.CommitTimeout, 8*time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, 2*time.Second)
	c.GroupSize = cmp.Or(c.GroupSize, 64)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 1024)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 10)
	c.GiveUpAfter = cmp.Or(c.GiveUpAfter, day)
	c.RetryAfter = cmp.Or(c.RetryAfter, 30*time.Second)
	c.Retain = cmp.Or(c.Retain, 7*day)
	c.RetainUnswept = cmp.Or(c.RetainUnswept, 30*day)
	c.RetainContent = cmp.Or(c.RetainContent, maxContent)
	c.PollEvery = cmp.Or(c.PollEvery, 5*time.Second)
	c.PruneEvery = cmp.Or(c.PruneEvery, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	if c.AfterCommit == nil {
		c.AfterCommit = func() {}
	}
	return c
}

const maxContent = 30 * day

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// faults looks at a Config that has its defaults.
func (c Config) faults() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if name := c.Stream.Name; name == "" || len(name) > 200 || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		bad("Stream.Name must be 1 to 200 bytes of text")
	}
	if !plainName.MatchString(c.Schema) {
		bad("Schema %q is not a plain lower-case name", c.Schema)
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"CommitTimeout", int64(c.CommitTimeout)},
		{"LockTimeout", int64(c.LockTimeout)},
		{"GroupSize", int64(c.GroupSize)},
		{"MaxWaiting", int64(c.MaxWaiting)},
		{"MaxAttempts", int64(c.MaxAttempts)},
		{"GiveUpAfter", int64(c.GiveUpAfter)},
		{"RetryAfter", int64(c.RetryAfter)},
		{"Retain", int64(c.Retain)},
		{"RetainUnswept", int64(c.RetainUnswept)},
		{"RetainContent", int64(c.RetainContent)},
		{"PollEvery", int64(c.PollEvery)},
		{"PruneEvery", int64(c.PruneEvery)},
	} {
		if n.value < 0 {
			bad("%s is negative", n.name)
		}
	}
	if c.RetainContent > maxContent {
		bad("RetainContent is over 30 days")
	}
	if c.GiveUpAfter > c.RetainContent {
		bad("GiveUpAfter is longer than RetainContent: there would be nothing left to try")
	}
	return errors.Join(faults...)
}
