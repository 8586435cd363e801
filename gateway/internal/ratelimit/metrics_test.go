package ratelimit

import (
	"maps"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/redistest"
)

func TestMetricsTellOfRefusalsAndOfALostRedis(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	server := redistest.Start(t)
	server.Kill(t)
	s := shareAt(t, server.URL(), nil, func(c *SharedConfig) { c.Meter = meter })
	l, err := New(s, Table{{Name: "few", By: ByAddress, Costs: map[Class]int64{Read: 1}, Windows: map[string]int64{"1m": 3}}}, time.Now, meter)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_ = l.Admit(t.Context(), map[string][]string{}, Read, Client{}) // two are refused
	}
	var read metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &read); err != nil {
		t.Fatal(err)
	}
	got, connections := map[string]int64{}, 0
	for _, m := range read.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			if strings.HasPrefix(m.Name, "db.") { // how many there are is the client's business
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
	if connections == 0 {
		t.Error("no connections are told")
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
