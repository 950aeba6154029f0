package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/replywake/replywake/events"
)

// metrics is OpenTelemetry's SDK with a Prometheus page. The libraries measure
// through the global meter provider, so it is set before they are built.
type metrics struct {
	registry *prometheus.Registry
	meter    metric.Meter
}

func newMetrics() (*metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	otel.SetMeterProvider(provider)
	return &metrics{registry: registry, meter: provider.Meter("example/resume")}, nil
}

// handler is the page. It adds what the doors count themselves.
func (m *metrics) handler(webhook *events.Handler, sweeper *events.Sweeper) http.Handler {
	deliveries, err1 := m.meter.Int64ObservableCounter("webhook.deliveries", metric.WithDescription("Deliveries at the push door, by what became of them"))
	age, err2 := m.meter.Float64ObservableGauge("sweep.age", metric.WithUnit("s"), metric.WithDescription("Time since everything had been received"))
	_, err3 := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if through := sweeper.Health().Through; !through.IsZero() {
			o.ObserveFloat64(age, time.Since(through).Seconds())
		}
		if webhook == nil {
			return nil
		}
		c := webhook.Counts()
		for result, n := range map[string]int64{
			"fresh": c.Fresh, "duplicate": c.Duplicate, "parked": c.Parked,
			"unverified": c.Unverified, "unreadable": c.Unreadable, "unavailable": c.Unavailable,
		} {
			o.ObserveInt64(deliveries, n, metric.WithAttributes(attribute.String("result", result)))
		}
		return nil
	}, deliveries, age)
	if err := errors.Join(err1, err2, err3); err != nil {
		otel.Handle(err)
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
