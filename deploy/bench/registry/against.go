package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"asset-registry/deploy/bench/load"
)

// writes compares creations and changes with those of another version of the registry.
func (b *bench) writes(ctx context.Context, bin string) error {
	other, stop, err := b.startRegistry(ctx, bin, "other")
	if err != nil {
		return fmt.Errorf("the other version: %w", err)
	}
	defer stop()
	fmt.Printf("durable writes             this/s  other/s   ratio   this p50, p99       other p50, p99\n")
	for _, kind := range []struct {
		name string
		load func(registry string, clients int) (load.Load, error)
	}{{"creations", creations}, {"changes", changes}} {
		for _, clients := range []int{1, 16, 64} {
			ours, err := kind.load(b.registry, clients)
			if err != nil {
				return err
			}
			theirs, err := kind.load(other, clients)
			if err != nil {
				return fmt.Errorf("the other version: %w", err)
			}
			x, y, ratio, err := pair(ctx, b.timed(ours), b.timed(theirs), b.rounds)
			if err != nil {
				return fmt.Errorf("%s with %d clients: %w", kind.name, clients, err)
			}
			fmt.Printf("%-22s %10.0f %8.0f %7.2f   %v, %v   %v, %v\n", fmt.Sprintf("%s, %d clients", kind.name, clients),
				x.PerSecond, y.PerSecond, ratio, x.P50.Round(time.Microsecond), x.P99.Round(time.Microsecond),
				y.P50.Round(time.Microsecond), y.P99.Round(time.Microsecond))
		}
	}
	return nil
}

// creations returns a load of creations.
func creations(registry string, clients int) (load.Load, error) {
	return load.Load{Addr: registry, Request: createRequest(), Status: http.StatusCreated, Clients: clients}, nil
}

// changes returns a load of changes. Each client has some assets, and each change gives
// another title.
func changes(registry string, clients int) (load.Load, error) {
	const each = 8
	assets, err := fill(registry, each*clients)
	if err != nil {
		return load.Load{}, fmt.Errorf("fill the registry: %w", err)
	}
	var titles atomic.Int64
	return load.Load{Addr: registry, Status: http.StatusOK, Clients: clients, Next: func(client, n int) []byte {
		return assets[each*client+n%each].changeRequest(titles.Add(1))
	}}, nil
}
