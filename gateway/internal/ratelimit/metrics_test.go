package ratelimit

import (
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/redistest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func TestMetricsTellOfRefusalsAndOfALostRedis(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	server := redistest.Start(t)
	server.Kill(t)
	s := borrowerAt(t, server.URL(), nil, func(c *BorrowerConfig) { c.Meter = meter })
	table := Table{{
		Name: "few", By: ByAddress, Costs: map[Class]int64{routes.Read: 1}, Windows: map[string]int64{"1m": 3},
	}}
	l := New(s, table, time.Now, meter)
	for range 5 {
		_ = l.Admit(t.Context(), map[string][]string{}, Request{Class: routes.Read}) // the last two are refused
	}
	var read metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &read))
	got, connections := map[string]int64{}, 0
	for _, m := range read.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			if strings.HasPrefix(m.Name, "db.") { // a metric of the Redis client, whose values vary
				connections++
				continue
			}
			got[m.Name] = data.DataPoints[0].Value
		case metricdata.Gauge[int64]:
			got[m.Name] = data.DataPoints[0].Value
		}
	}
	want := map[string]int64{
		"registry.limits.refused": 2, "registry.limits.store.away": 1, "registry.limits.store.losses": 1,
		"registry.limits.store.alone": 5, "registry.limits.store.trips": 1,
	}
	expect.ErrorIf(t, connections == 0, "got no metrics of connections, want some")
	expect.ErrorIf(t, !maps.Equal(got, want), "got %v, want %v", got, want)
}

func TestMetricsTellOfKeysThatAreNotLookedAt(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	table := Table{{
		Name: "address-failed", By: ByAddress, Costs: map[Class]int64{Failed: 1}, Windows: map[string]int64{"1m": 3},
	}}
	l := New(NewMemory(time.Now, 0), table, time.Now, meter)
	guesser, refused := netip.MustParseAddr("192.0.2.1"), 0
	for range 5 {
		if l.CheckLockout(t.Context(), guesser) != nil {
			refused++
			continue
		}
		expect.Err(t, l.CountWrongKey(t.Context(), http.Header{}, guesser), nil, "within the limit")
	}
	var read metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &read))
	for _, m := range read.ScopeMetrics[0].Metrics {
		if m.Name != "registry.limits.refused" {
			continue
		}
		if got := m.Data.(metricdata.Sum[int64]).DataPoints[0].Value; got != 2 || refused != 2 {
			t.Errorf("got %d refusals in the metric, and %d refused requests; want 2 and 2", got, refused)
		}
		return
	}
	t.Error("got no metric registry.limits.refused, want one")
}
