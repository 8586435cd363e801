package limits

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func TestDecisionsAreCountedByTheErrorThatTellsThem(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	d := newDecisions()
	unregister := d.measure(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	defer unregister()
	d.count(routes.Read, nil)
	d.count(routes.Read, nil)
	d.count(routes.Write, fmt.Errorf("limit: %w", fault.New(fault.TooMany, fault.Header, "x", "wait")))
	d.count(routes.List, fault.New(fault.Unavailable, fault.URL, "x", "away"))
	d.count(routes.List, errors.New("the client has left"))
	var all metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &all))
	var got []string
	for _, p := range all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Sum[int64]).DataPoints {
		class, _ := p.Attributes.Value("class")
		outcome, _ := p.Attributes.Value("outcome")
		got = append(got, fmt.Sprint(class.AsString(), " ", outcome.AsString(), " ", p.Value))
	}
	slices.Sort(got)
	want := []string{ // includes counts of 0
		"list admitted 0", "list refused 0", "list uncounted 2",
		"own admitted 0", "own refused 0", "own uncounted 0",
		"read admitted 2", "read refused 0", "read uncounted 0",
		"write admitted 0", "write refused 1", "write uncounted 0",
	}
	expect.ErrorIf(t, !slices.Equal(got, want), "got  %q\nwant %q", got, want)
}
