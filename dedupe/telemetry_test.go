package dedupe_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

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
