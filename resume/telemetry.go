package resume

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/replywake/replywake/internal/sqldb"
)

const scope = "github.com/replywake/replywake/resume"

// seconds are the buckets that the messaging conventions give for durations.
var seconds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// telemetry reports under the names of OpenTelemetry's messaging conventions.
// No attribute holds an ID, a stranger's address or a text.
type telemetry struct {
	tracer trace.Tracer
	engine attribute.KeyValue
	sent   metric.Int64Counter
	took   metric.Float64Histogram
	placed metric.Int64Counter
}

func newTelemetry(cfg Config) (telemetry, error) {
	m := cfg.MeterProvider.Meter(scope)
	sent, err1 := m.Int64Counter("messaging.client.sent.messages",
		metric.WithUnit("{message}"), metric.WithDescription("Attempts to send, by what came of them."))
	took, err2 := m.Float64Histogram("messaging.process.duration",
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(seconds...), metric.WithDescription("Duration of a workflow's run, loading and commit included."))
	placed, err3 := m.Int64Counter("replywake.mail.matched",
		metric.WithUnit("{message}"), metric.WithDescription("Looks of the matcher at mail that no key could place."))
	return telemetry{
		tracer: cfg.TracerProvider.Tracer(scope), engine: attribute.String("messaging.destination.name", cfg.Name), sent: sent, took: took, placed: placed,
	}, errors.Join(err1, err2, err3)
}

var system = attribute.String("messaging.system", "replywake")

// span begins a span of an operation; the function returned ends it.
func (t telemetry) span(ctx context.Context, operation, kind string, spanKind trace.SpanKind) (context.Context, func(error) metric.MeasurementOption) {
	attrs := []attribute.KeyValue{
		system, t.engine, attribute.String("messaging.operation.type", kind), attribute.String("messaging.operation.name", operation),
	}
	ctx, span := t.tracer.Start(ctx, operation+" "+t.engine.Value.AsString(), trace.WithSpanKind(spanKind), trace.WithAttributes(attrs...))
	return ctx, func(err error) metric.MeasurementOption {
		if err != nil {
			kind := attribute.String("error.type", errorType(err))
			attrs = append(attrs, kind)
			span.SetAttributes(kind)
			span.SetStatus(codes.Error, "")
		}
		span.End()
		return metric.WithAttributes(attrs...)
	}
}

// run measures a workflow's run.
func (t telemetry) run(ctx context.Context) (context.Context, func(error)) {
	began := time.Now()
	ctx, end := t.span(ctx, "run", "process", trace.SpanKindConsumer)
	return ctx, func(err error) { t.took.Record(ctx, time.Since(began).Seconds(), end(err)) }
}

// send measures an attempt to send.
func (t telemetry) send(ctx context.Context) (context.Context, func(error)) {
	ctx, end := t.span(ctx, "send", "send", trace.SpanKindProducer)
	return ctx, func(err error) { t.sent.Add(ctx, 1, end(err)) }
}

// match measures a look of the matcher.
func (t telemetry) match(ctx context.Context) (context.Context, func(error)) {
	ctx, end := t.span(ctx, "match", "process", trace.SpanKindConsumer)
	return ctx, func(err error) { t.placed.Add(ctx, 1, end(err)) }
}

// errorType has few values.
func errorType(err error) string {
	for name, is := range map[string]error{
		"lease_lost": ErrLeaseLost, "stopped": ErrStopped, "outrun": errOutrun, "waits_for_outcome": errOpen, "unreadable": errUnreadable,
	} {
		if errors.Is(err, is) {
			return name
		}
	}
	if sqldb.IsUnavailable(err) {
		return "unavailable"
	}
	return reasonOf(err)
}

// observe lets the meter read what waits, at each collection, until stop.
func (e *Engine) observe() (stop func()) {
	m := e.cfg.MeterProvider.Meter(scope)
	due, err1 := m.Float64ObservableGauge("replywake.workflows.lag",
		metric.WithUnit("s"), metric.WithDescription("How long the workflow that is due longest has been so."))
	open, err2 := m.Int64ObservableGauge("replywake.queue.items",
		metric.WithUnit("{message}"), metric.WithDescription("Mail that a person must place."))
	age, err3 := m.Float64ObservableGauge("replywake.queue.age",
		metric.WithUnit("s"), metric.WithDescription("Age of the oldest mail that a person must place."))
	review, err4 := m.Int64ObservableGauge("replywake.workflows.review",
		metric.WithUnit("{workflow}"), metric.WithDescription("Workflows that wait for a person."))
	reading, err5 := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		b, err := e.Backlog(ctx)
		if err != nil {
			return err
		}
		with := metric.WithAttributes(e.tel.engine)
		o.ObserveFloat64(due, b.Lag.Seconds(), with)
		o.ObserveInt64(open, b.Queue, with)
		o.ObserveFloat64(age, b.QueueAge.Seconds(), with)
		o.ObserveInt64(review, b.NeedsReview, with)
		return nil
	}, due, open, age, review)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		e.log.Warn("the backlog is not measured", "error", err)
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}

// Backlog is what waits for the engine or for a person.
type Backlog struct {
	Lag         time.Duration // how long the workflow that is due longest has been so
	Queue       int64         // mail that a person must place
	QueueAge    time.Duration // of the oldest
	Unplaced    int64         // mail that the matcher has not placed yet
	UnplacedAge time.Duration // of the oldest
	NeedsReview int64         // workflows that wait for a person
}

// Backlog counts what waits.
func (e *Engine) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	var now, due, queued, unplaced time.Time
	err := sqldb.One(ctx, e.db.Read(), e.st.Backlog, []any{e.cfg.Name}, &now, &due, &b.Queue, &queued, &b.Unplaced, &unplaced, &b.NeedsReview)
	since := func(t time.Time) time.Duration {
		if t.IsZero() || t.After(now) {
			return 0
		}
		return now.Sub(t)
	}
	b.Lag, b.QueueAge, b.UnplacedAge = since(due), since(queued), since(unplaced)
	return b, err
}
