package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
)

const (
	maxNamed     = 50      // maximum number of brokers that the metrics of a process name
	otherBrokers = "other" // label for all further brokers
)

// events counts creations and publications by broker. A nil *events counts nothing.
type events struct {
	created, published metric.Int64Counter

	mu    sync.Mutex
	named map[string]bool // brokers that have a label
}

// Measure lets the registry count creations and publications. Call it before the first request.
func (r *Registry) Measure(created, published metric.Int64Counter) {
	r.events = &events{created: created, published: published, named: map[string]bool{}}
}

// creation counts a new asset.
func (e *events) creation(ctx context.Context, broker string) {
	if e != nil {
		e.created.Add(ctx, 1, e.by(broker))
	}
}

// change counts a saved change if it has published the asset.
func (e *events) change(ctx context.Context, before, after Record) {
	if e == nil || before.Listed || !after.Listed {
		return
	}
	if a, err := decode(after); err == nil { // decoding always succeeds, because the body was encoded just now
		e.published.Add(ctx, 1, e.by(a.Owner()))
	}
}

// The method `by` returns the metric attribute for a broker.
func (e *events) by(broker string) metric.MeasurementOption {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.named[broker] {
		if len(e.named) == maxNamed {
			broker = otherBrokers
		} else {
			e.named[broker] = true
		}
	}
	return metric.WithAttributes(attribute.String("broker", broker))
}

// Census is the number of assets in each state.
type Census map[asset.Status]int64

// MeasureCensus reports the census of a store to the argument `meter`, until the caller calls the function
// `silence`. If the function `census` returns nil, nothing is reported.
func MeasureCensus(meter metric.Meter, census func(context.Context) Census) (silence func()) {
	stored, wrong := meter.Int64ObservableGauge("registry.assets.stored", metric.WithUnit("{asset}"),
		metric.WithDescription("Assets in the store, by state; each asset service counts all of them."))
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		if counted := census(ctx); counted != nil {
			for _, state := range asset.Statuses {
				o.ObserveInt64(stored, counted[state], metric.WithAttributes(attribute.String("state", string(state))))
			}
		}
		return nil
	}, stored)
	if err := errors.Join(wrong, err); err != nil {
		panic(fmt.Sprintf("make a metric: %v", err)) // only a wrong name gives an error
	}
	return func() { _ = registration.Unregister() } // it fails only for callbacks that are not registered
}
