package resume_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// collect reads every instrument: a number's value, or how often a duration
// was measured, summed over attributes.
func collect(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	values := map[string]float64{}
	for _, m := range got.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				values[m.Name] += float64(p.Value)
			}
		case metricdata.Gauge[int64]:
			values[m.Name] = float64(data.DataPoints[0].Value)
		case metricdata.Gauge[float64]:
			values[m.Name] = data.DataPoints[0].Value
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				values[m.Name] += float64(p.Count)
			}
		default:
			t.Fatalf("%s is %T", m.Name, data)
		}
	}
	return values
}

// One workflow waits with a mail out, one is before a person, and so is a mail
// that fits neither.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		reader, recorder := metric.NewManualReader(), tracetest.NewSpanRecorder()
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			if run.ID == "w2" {
				return resume.Next{}, errors.New("the model is confused")
			}
			return resume.Wait(0), nil
		}, resume.Config{
			Attempts:       1,
			MeterProvider:  metric.NewMeterProvider(metric.WithReader(reader)),
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
		})
		r.ask("w1", supplier)
		r.start(resume.Start{ID: "w2", Counterparty: "two@example.com"})
		r.rest()
		require.Equal(t, resume.StatusNeedsReview, r.status("w2"))
		r.srv.Inbound(efatest.Mail{From: "who@example.com", Text: "hello"})
		r.rest()

		stop := r.run() // what waits is measured by an engine that runs
		defer stop()
		var got map[string]float64
		r.until("the engine measures", func() bool {
			got = collect(t, reader)
			_, measured := got["replywake.workflows.review"]
			return measured
		})
		require.InDelta(t, 1, got["messaging.client.sent.messages"], 0)
		require.InDelta(t, len(r.runs()), got["messaging.process.duration"], 0)
		require.InDelta(t, 1, got["replywake.workflows.review"], 0)
		require.InDelta(t, 1, got["replywake.queue.items"], 0)
		require.Positive(t, got["replywake.queue.age"])
		require.Zero(t, got["replywake.workflows.lag"], "nothing is due")

		spans := map[string]int{}
		for _, span := range recorder.Ended() {
			spans[span.Name()]++
		}
		require.Equal(t, 1, spans["send default"])
		require.Equal(t, len(r.runs()), spans["run default"])
	})
}
