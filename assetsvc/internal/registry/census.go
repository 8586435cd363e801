package registry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
)

// Census is the number of assets in each state.
type Census map[asset.Status]int64

// MeasureCensus reports the census of a store to the argument `meter`, until the caller calls the function
// `silence`. If the function `census` returns nil, nothing is reported.
func MeasureCensus(meter metric.Meter, census func(context.Context) Census) (silence func() error, err error) {
	stored, err := meter.Int64ObservableGauge("registry.assets.stored", metric.WithUnit("{asset}"),
		metric.WithDescription("Assets in the store, by state; the same at every asset service."))
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counted := census(ctx)
		if counted == nil {
			return nil
		}
		for _, state := range asset.Statuses {
			o.ObserveInt64(stored, counted[state], metric.WithAttributes(attribute.String("state", string(state))))
		}
		return nil
	}, stored)
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	return registration.Unregister, nil
}
