package mongostore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/testing/expect"
)

func TestMetricsFollowConnectionsAndThePrimary(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	must := func(want string) {
		t.Helper()
		if got := collect(t, reader); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	servers := func(kinds ...string) {
		e := &event.TopologyDescriptionChangedEvent{}
		for i, kind := range kinds {
			server := event.ServerDescription{Addr: address.Address(fmt.Sprint("s", i)), Kind: kind}
			e.NewDescription.Servers = append(e.NewDescription.Servers, server)
		}
		m.connections.topologyChanged(e)
	}
	pool := func(types ...string) {
		for _, kind := range types {
			m.connections.poolEvent(&event.PoolEvent{
				Type: kind, Address: "s0", Reason: event.ReasonTimedOut,
				PoolOptions: &event.MonitorPoolOptions{MaxPoolSize: 7},
			})
		}
	}
	const stable = " store.away=0 store.failovers=1"
	must("store.away=1 store.failovers=0")
	servers("RSPrimary", "RSSecondary")
	must("store.away=0 store.failovers=0")
	servers("Unknown", "RSSecondary")
	must("store.away=1 store.failovers=0")
	servers("RSPrimary", "RSSecondary") // the same primary again
	must("store.away=0 store.failovers=0")
	servers("Unknown", "RSPrimary")
	must("store.away=0 store.failovers=1")

	pool(event.ConnectionPoolCreated)
	pool(event.ConnectionCheckOutStarted, event.ConnectionCheckOutStarted, event.ConnectionCheckOutStarted)
	pool(event.ConnectionCreated, event.ConnectionCreated, event.ConnectionCheckedOut)
	must("connection.count/idle=1 connection.count/used=1 connection.max=7 " +
		"connection.pending_requests=2 connection.timeouts=0" + stable)
	pool(event.ConnectionCheckOutFailed, event.ConnectionCheckedOut, event.ConnectionCheckedIn)
	must("connection.count/idle=1 connection.count/used=1 connection.max=7 " +
		"connection.pending_requests=0 connection.timeouts=1" + stable)
	pool(event.ConnectionCheckedIn, event.ConnectionClosed, event.ConnectionClosed)
	must("connection.count/idle=0 connection.count/used=0 connection.max=7 " +
		"connection.pending_requests=0 connection.timeouts=1" + stable)
	pool(event.ConnectionPoolClosed)
	must("store.away=0 store.failovers=1")
	m.silence()
	must("")
}

// collect returns the reported values as sorted "name=value" pairs.
func collect(t *testing.T, reader sdkmetric.Reader) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &all))
	var values []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				name := strings.TrimPrefix(strings.TrimPrefix(m.Name, "registry."), "db.client.")
				if state, ok := p.Attributes.Value("db.client.connection.state"); ok {
					name += "/" + state.AsString()
				}
				values = append(values, fmt.Sprint(name, "=", p.Value))
			}
		}
	}
	slices.Sort(values)
	return strings.Join(values, " ")
}
