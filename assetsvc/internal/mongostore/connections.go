package mongostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/telemetry"
)

// connections keeps counts from the driver's events: about its connections to each server, and about the primary,
// which is the server that takes writes.
type connections struct {
	mu        sync.Mutex
	pools     map[string]*telemetry.Pool // by server; Idle is 0 here, poolStates computes it
	open      map[string]int64           // open connections, by server
	primary   string                     // address of the primary; "": no primary is known
	last      string                     // the last known primary
	failovers int64                      // how often another server became primary
	members   map[string]member          // by server
}

func newConnections() *connections {
	return &connections{pools: map[string]*telemetry.Pool{}, open: map[string]int64{}, members: map[string]member{}}
}

// poolEvent records an event of a connection pool.
func (c *connections) poolEvent(e *event.PoolEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[e.Address]
	if p == nil {
		p = &telemetry.Pool{Name: e.Address}
		c.pools[e.Address] = p
	}
	switch e.Type {
	case event.ConnectionPoolCreated:
		if e.PoolOptions != nil {
			p.Max = int64(e.PoolOptions.MaxPoolSize)
		}
	case event.ConnectionPoolClosed:
		delete(c.pools, e.Address)
		delete(c.open, e.Address)
	case event.ConnectionCreated:
		c.open[e.Address]++
	case event.ConnectionClosed:
		c.open[e.Address]--
	case event.ConnectionCheckOutStarted:
		p.Waiting++
	case event.ConnectionCheckOutFailed:
		p.Waiting--
		if e.Reason == event.ReasonTimedOut {
			p.Timeouts++
		}
	case event.ConnectionCheckedOut:
		p.Waiting--
		p.Used++
	case event.ConnectionCheckedIn:
		p.Used--
	}
}

// topologyChanged records the current servers and the primary.
func (c *connections) topologyChanged(e *event.TopologyDescriptionChangedEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary = ""
	c.keepMembers(e.NewDescription.Servers)
	for _, s := range e.NewDescription.Servers {
		switch s.Kind {
		case "RSPrimary", "Standalone", "Mongos", "LoadBalancer":
			c.primary = s.Addr.String()
		}
	}
	if c.primary == "" {
		return
	}
	if c.last != "" && c.last != c.primary {
		c.failovers++
	}
	c.last = c.primary
}

// poolStates returns the states of the pools, ordered by server.
func (c *connections) poolStates() []telemetry.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pools []telemetry.Pool
	for _, server := range slices.Sorted(maps.Keys(c.pools)) {
		p := *c.pools[server]
		p.Idle = max(0, c.open[server]-p.Used)
		pools = append(pools, p)
	}
	return pools
}

// measure reports the connections and the primary to meter until the caller calls the function `silence`.
func (c *connections) measure(meter metric.Meter) (silence func() error, err error) {
	observed := telemetry.Observe(meter)
	away := observed.Gauge("registry.store.away", "", "1 while no server of the store is known that takes writes.")
	failovers := observed.Counter("registry.store.failovers", "{failover}",
		"Times that another server of the store took over.")
	lag := observed.Seconds("registry.store.replication.lag",
		"How far a server of the store is behind the one that takes writes, which has 0.")
	own, err := observed.Read(func(_ context.Context, o metric.Observer) {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.ObserveInt64(away, telemetry.Flag(c.primary == ""))
		o.ObserveInt64(failovers, c.failovers)
		for server, behind := range c.lags(time.Now()) {
			o.ObserveFloat64(lag, behind.Seconds(), metric.WithAttributes(attribute.String("server", server)))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	pools, err := telemetry.MeasurePools(meter, semconv.DBSystemNameMongoDB, c.poolStates)
	if err != nil {
		return nil, errors.Join(err, own())
	}
	return func() error { return errors.Join(own(), pools()) }, nil
}
