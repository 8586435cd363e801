// Package metrictest gives a test a meter whose values it can read.
package metrictest

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Meter is a meter whose values a test can read.
type Meter struct {
	metric.Meter
	reader *sdkmetric.ManualReader
}

// New returns a meter without metrics.
func New() Meter {
	reader := sdkmetric.NewManualReader()
	return Meter{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"), reader}
}

// Read returns the current values of all metrics. The key is the metric's name,
// followed by {VALUE,VALUE} if it has labels.
func (m Meter) Read(tb testing.TB) map[string]float64 {
	tb.Helper()
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(tb.Context(), &all); err != nil {
		tb.Fatal(err)
	}
	told := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				add(told, m.Name, data.DataPoints)
			case metricdata.Gauge[int64]:
				add(told, m.Name, data.DataPoints)
			case metricdata.Gauge[float64]:
				add(told, m.Name, data.DataPoints)
			}
		}
	}
	return told
}

func add[N int64 | float64](told map[string]float64, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		told[name+labels(p.Attributes)] = float64(p.Value)
	}
}

func labels(of attribute.Set) string {
	text, separator := "", "{"
	for _, a := range of.ToSlice() {
		text += separator + a.Value.String()
		separator = ","
	}
	if text != "" {
		text += "}"
	}
	return text
}
