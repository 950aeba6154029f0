package resume

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/replywake/replywake/client"
)

// Config configures an engine. The zero value of every field but Inboxes is
// its documented default.
type Config struct {
	// Inboxes are the inboxes this engine acts on, each with its own
	// addresses. Events of other inboxes are left alone. An inbox belongs to
	// one engine of a schema.
	Inboxes map[string][]string

	Name   string // part of every key, so that several engines share a schema, and of one stream; default "default"
	Schema string // Postgres schema; default "replywake"

	// Policy judges a message before the step sees it; default [AcceptAll].
	Policy Policy

	Workers  int           // steps at once in this process; default 8
	Senders  int           // sends at once; default 8
	Lease    time.Duration // how long a claimed run may stand without a heartbeat; default 30 s
	Poll     time.Duration // how often to look for due work when no hint came; default 1 s
	Hold     time.Duration // between a person's bind and its run; default 10 s
	Drain    time.Duration // how long what is under way, sends too, may go on after Run's context ends; default 8 s
	Attempts int           // failed runs in a row before a person is asked; default 10

	SendRetryAfter  time.Duration // a send without an outcome is tried again after this; default 1 min
	SendTimeout     time.Duration // one attempt; default 30 s
	ReplayWindow    time.Duration // a send is not repeated once its first attempt is older; default 29 days
	MaxSendsPerHour int           // sends a workflow may plan in answer to mail, or to news of its own; default 20
	UnreadableFor   time.Duration // how long an unreadable message holds its workflow back; default 2 min
	UnreadableUntil time.Duration // when an unreadable message goes to a person; default 24 h
	Retain          time.Duration // how long finished workflows, their state, subjects and recipients are kept; IDs stay; default 90 days

	// Pooler: true for a connection pooler in transaction mode (pgbouncer):
	// no LISTEN, no prepared statement that outlives its transaction.
	Pooler bool

	Logger         *slog.Logger         // default: discard. It never gets a stranger's text.
	MeterProvider  metric.MeterProvider // default: OpenTelemetry's global one
	TracerProvider trace.TracerProvider // default: OpenTelemetry's global one
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "default")
	c.Schema = cmp.Or(c.Schema, "replywake")
	c.Workers = cmp.Or(c.Workers, 8)
	c.Senders = cmp.Or(c.Senders, 8)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Hold = cmp.Or(c.Hold, 10*time.Second)
	c.Drain = cmp.Or(c.Drain, 8*time.Second)
	c.Attempts = cmp.Or(c.Attempts, 10)
	c.SendRetryAfter = cmp.Or(c.SendRetryAfter, time.Minute)
	c.SendTimeout = cmp.Or(c.SendTimeout, 30*time.Second)
	c.ReplayWindow = cmp.Or(c.ReplayWindow, 29*24*time.Hour)
	c.MaxSendsPerHour = cmp.Or(c.MaxSendsPerHour, 20)
	c.UnreadableFor = cmp.Or(c.UnreadableFor, 2*time.Minute)
	c.UnreadableUntil = cmp.Or(c.UnreadableUntil, 24*time.Hour)
	c.Retain = cmp.Or(c.Retain, 90*24*time.Hour)
	if c.Policy == nil {
		c.Policy = AcceptAll
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("resume: config: "+format, args...))
	}
	if len(c.Inboxes) == 0 {
		bad("Inboxes is empty: no event would ever be acted on")
	}
	for _, inbox := range slices.Sorted(maps.Keys(c.Inboxes)) {
		if inbox == "" {
			bad("Inboxes has an empty inbox ID")
		}
		if len(c.Inboxes[inbox]) == 0 {
			bad("inbox %s has no address of its own: its echoes could not be told from replies", inbox)
		}
		for i, a := range c.Inboxes[inbox] {
			if _, err := client.NormalizeAddress(a); err != nil {
				bad("inbox %s, address %d: not an e-mail address", inbox, i+1)
			}
		}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Workers", int64(c.Workers)},
		{"Senders", int64(c.Senders)},
		{"Attempts", int64(c.Attempts)},
		{"MaxSendsPerHour", int64(c.MaxSendsPerHour)},
		{"Lease", int64(c.Lease)},
		{"Poll", int64(c.Poll)},
		{"Hold", int64(c.Hold)},
		{"Drain", int64(c.Drain)},
		{"SendRetryAfter", int64(c.SendRetryAfter)},
		{"SendTimeout", int64(c.SendTimeout)},
		{"ReplayWindow", int64(c.ReplayWindow)},
		{"UnreadableFor", int64(c.UnreadableFor)},
		{"UnreadableUntil", int64(c.UnreadableUntil)},
		{"Retain", int64(c.Retain)},
	} {
		if n.value < 0 {
			bad("%s is negative", n.name)
		}
	}
	if c.ReplayWindow > 30*24*time.Hour {
		bad("ReplayWindow is over the provider's 30 days: a repeated send could be a second mail")
	}
	return errors.Join(faults...)
}

// owns says whether the engine acts on the inbox.
func (c Config) owns(inbox string) bool { return c.Inboxes[inbox] != nil }
