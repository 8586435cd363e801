package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
)

// Census is how many assets are in each state.
type Census map[asset.Status]int64

// StateOf returns the state of an asset by its body; "" if the body has none. It
// is for assets that were stored before records had a State.
func StateOf(body []byte) asset.Status {
	var a struct {
		Status asset.Status `json:"status"`
	}
	if err := json.Unmarshal(body, &a); err != nil || !slices.Contains(asset.Statuses, a.Status) {
		return ""
	}
	return a.Status
}

// MeasureCensus tells a meter of a store's census, when it asks, until silence.
// Of a nil census nothing is told.
func MeasureCensus(meter metric.Meter, census func(context.Context) Census) (silence func() error, err error) {
	stored, err := meter.Int64ObservableGauge("registry.assets.stored", metric.WithUnit("{asset}"),
		metric.WithDescription("Assets in the store, by state; the same at every asset service."))
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
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
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}
