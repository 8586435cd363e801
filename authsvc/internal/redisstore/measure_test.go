package redisstore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

func TestMemoryAndTheLastBackupAreTold(t *testing.T) {
	server := redistest.Start(t)
	meter := metrictest.New()
	s, err := Open(server.URL(), meter)
	expect.OK(t, err)
	expect.OK(t, s.client.ConfigSet(t.Context(), "maxmemory", "100mb").Err())
	told := meter.Read(t)
	expect.Equal(t, told["registry.store.memory.max{tokens}"], float64(100<<20), "maximum memory")
	if got := told["registry.store.memory.used{tokens}"]; got <= 0 || got >= 100<<20 {
		t.Errorf("used memory: got %v, want more than 0 and less than 100 MiB", got)
	}
	if got, known := told["registry.backup.finished.timestamp"]; !known || got != 0 {
		t.Errorf("no backup yet: got %v, %v; want 0, true", got, known)
	}
	if err := s.client.Set(t.Context(), "registry:backup", "1790000000", 0).Err(); err != nil { // as backup.sh does
		t.Fatal(err)
	}
	expect.Equal(t, meter.Read(t)["registry.backup.finished.timestamp"], 1790000000, "the last backup")
	expect.OK(t, s.Close())
	if told := meter.Read(t); len(told) != 0 {
		t.Errorf("a closed store: got metrics %v, want none", told)
	}
}

// TestOperationsAreMeasured makes commands and pipelines that work, that find no value, and that fail. Each must count
// once under its name. Only those that fail may count as failures.
func TestOperationsAreMeasured(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	s, err := Open(redistest.Start(t).URL(), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	expect.OK(t, err)
	defer s.Close()
	ctx, key := t.Context(), "other"
	join(t, &failing{}, s.client) // opens the connections
	before := operations(t, reader)
	missing, works, fails := s.client.Get(ctx, key).Err(), s.client.Set(ctx, key, 1, 0).Err(), s.client.LLen(ctx, key).Err()
	if missing != redis.Nil || works != nil || fails == nil {
		t.Errorf("got %v, %v, %v; want no value, no error and a failure", missing, works, fails)
	}
	for command, want := range map[string]bool{"exists": false, "llen": true} {
		if _, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			return p.Do(ctx, command, key).Err()
		}); (err != nil) != want {
			t.Errorf("a pipeline with %s: got %v, want an error: %t", command, err, want)
		}
	}
	after := operations(t, reader) // also has the commands that a read of the metrics sends
	want := map[string]uint64{"get": 1, "set": 1, "llen failed": 1, "PIPELINE": 1, "PIPELINE failed": 1}
	got := map[string]uint64{}
	for name := range want {
		got[name] = after[name] - before[name]
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the numbers of operations")
}

// operations returns how many operations were measured, by their names. The names of failures end with " failed".
func operations(t *testing.T, reader sdkmetric.Reader) map[string]uint64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &all))
	counts := map[string]uint64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			data, _ := m.Data.(metricdata.Histogram[float64])
			for _, p := range data.DataPoints {
				of, _ := p.Attributes.Value(semconv.DBOperationNameKey)
				name := of.AsString()
				if p.Attributes.HasValue(semconv.ErrorTypeKey) {
					name += " failed"
				}
				counts[name] += p.Count
			}
		}
	}
	return counts
}
