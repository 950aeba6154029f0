package dedupe_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/replywake/replywake/dedupe"
)

func TestEveryDeliveryIsCountedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		reader := metric.NewManualReader()
		in := s.inbox(dedupe.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}, failsOn(3))
		take(t, in, page(1, 4))
		mustPush(t, in, pushed(1))
		mustPush(t, in, pushed(5))

		var got metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &got))
		counts := map[string]int64{}
		for _, m := range got.ScopeMetrics[0].Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					name, _ := p.Attributes.Value("messaging.operation.name")
					outcome, _ := p.Attributes.Value("replywake.outcome")
					stream, _ := p.Attributes.Value("messaging.destination.name")
					counts[stream.AsString()+" "+name.AsString()+" "+outcome.AsString()] += p.Value
				}
			}
		}
		require.Equal(t, map[string]int64{
			"mail pull fresh": 3, "mail pull parked": 1, "mail push duplicate": 1, "mail push fresh": 1,
		}, counts)
	})
}

// The commit of pushed events is a trace of its own, linked to the request of
// each: no single one is its parent.
func TestACommitIsLinkedToItsRequests(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		in := s.inbox(dedupe.Config{TracerProvider: provider}, nil)
		requests := map[trace.SpanID]bool{}
		for n := 1; n <= 2; n++ {
			ctx, request := provider.Tracer("http").Start(t.Context(), "POST /hooks")
			_, err := in.Push(ctx, pushed(n))
			require.NoError(t, err)
			requests[request.SpanContext().SpanID()] = true
		}
		for _, span := range recorder.Ended() {
			require.Equal(t, "process mail", span.Name())
			require.False(t, span.Parent().IsValid())
			for _, link := range span.Links() {
				require.True(t, requests[link.SpanContext.SpanID()])
				delete(requests, link.SpanContext.SpanID())
			}
		}
		require.Empty(t, requests, "each request has its link")
	})
}
