package dedupe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/replywake/replywake/dedupe"

// seconds are the buckets that the messaging conventions give for durations.
var seconds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// telemetry reports under the names of OpenTelemetry's messaging conventions.
// No attribute holds an ID, a stranger's address or a text.
type telemetry struct {
	tracer   trace.Tracer
	consumed metric.Int64Counter
	duration metric.Float64Histogram
	stream   attribute.KeyValue
}

func newTelemetry(cfg Config) (telemetry, error) {
	meter := cfg.MeterProvider.Meter(scope)
	consumed, err := meter.Int64Counter("messaging.client.consumed.messages",
		metric.WithUnit("{message}"), metric.WithDescription("Events delivered by a door, by what became of them."))
	duration, err2 := meter.Float64Histogram("messaging.process.duration",
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(seconds...), metric.WithDescription("Duration of a commit, handler included."))
	return telemetry{
		tracer: cfg.TracerProvider.Tracer(scope), consumed: consumed, duration: duration,
		stream: attribute.String("messaging.destination.name", cfg.Stream.Name),
	}, errors.Join(err, err2)
}

var system = attribute.String("messaging.system", "replywake")

func (t telemetry) attributes(d door) []attribute.KeyValue {
	return []attribute.KeyValue{
		system, t.stream,
		attribute.String("messaging.operation.type", "process"), attribute.String("messaging.operation.name", string(d)),
	}
}

// commit begins a commit's span; the function returned ends it, when the part
// is known.
func (t telemetry) commit(ctx context.Context, p *part) (context.Context, func(error)) {
	began := time.Now()
	attrs := t.attributes(p.door)
	ctx, span := t.tracer.Start(ctx, "process "+t.stream.Value.AsString(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if span.IsRecording() {
			span.SetAttributes(attribute.Int("messaging.batch.message_count", len(p.events)))
			for _, link := range p.links {
				span.AddLink(link)
			}
		}
		if err != nil {
			kind := attribute.String("error.type", errorType(err))
			attrs = append(attrs, kind)
			span.SetAttributes(kind)
			span.SetStatus(codes.Error, "")
		}
		t.duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attrs...))
		span.End()
	}
}

// errorType is describe with few values.
func errorType(err error) string {
	if f, ok := errors.AsType[*failure](err); ok {
		err = f.err
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return "panic"
	}
	return describe(err)
}

// settled counts each delivery once.
func (t telemetry) settled(ctx context.Context, p *part, out outcomes) {
	r := out.count(p.events)
	for outcome, n := range map[string]int{"fresh": r.Fresh, "duplicate": r.Duplicate, "parked": r.Parked, "skipped": r.Skipped} {
		if n > 0 {
			t.consumed.Add(ctx, int64(n), metric.WithAttributes(append(t.attributes(p.door), attribute.String("replywake.outcome", outcome))...))
		}
	}
}
