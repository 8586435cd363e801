package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"asset-registry/deploy/bench/load"
)

// kind is a kind of load that both versions are measured with. The function `load` returns the load for one
// registry.
type kind struct {
	name    string
	clients []int
	load    func(registry string, clients int) (load.Load, error)
}

// compare compares how fast this version of the registry and another version answer reads, creations and changes.
func (b *bench) compare(ctx context.Context, bin string) error {
	other, stop, err := b.startRegistry(ctx, bin, "other")
	if err != nil {
		return fmt.Errorf("the other version: %w", err)
	}
	defer stop()
	return b.against(ctx, other, kind{"reads", []int{b.clients}, reads}, kind{"pages", []int{b.clients}, pages},
		kind{"creations", writers, creations}, kind{"changes", writers, changes})
}

// writers lists the numbers of concurrent writers to measure with.
var writers = []int{1, 16, 64}

// The method `against` measures loads on two registries, and prints how they compare.
func (b *bench) against(ctx context.Context, other string, kinds ...kind) error {
	fmt.Printf("clients                    this/s  other/s   ratio   this p50, p99       other p50, p99\n")
	for _, k := range kinds {
		for _, clients := range k.clients {
			ours, err := k.load(b.registry, clients)
			if err != nil {
				return err
			}
			theirs, err := k.load(other, clients)
			if err != nil {
				return fmt.Errorf("the other version: %w", err)
			}
			x, y, ratio, err := pair(ctx, b.timed(ours), b.timed(theirs), b.rounds)
			if err != nil {
				return fmt.Errorf("%s with %d clients: %w", k.name, clients, err)
			}
			fmt.Printf("%-22s %10.0f %8.0f %7.2f   %v, %v   %v, %v\n", fmt.Sprintf("%s, %d clients", k.name, clients),
				x.PerSecond, y.PerSecond, ratio, x.P50.Round(time.Microsecond), x.P99.Round(time.Microsecond),
				y.P50.Round(time.Microsecond), y.P99.Round(time.Microsecond))
		}
	}
	return nil
}

// reads returns a load that reads one asset.
func reads(registry string, clients int) (load.Load, error) {
	assets, err := fill(registry, 1)
	if err != nil {
		return load.Load{}, fmt.Errorf("fill the registry: %w", err)
	}
	request := getRequest("/api/2.5/assets/" + assets[0].id)
	return load.Load{Addr: registry, Request: request, Status: http.StatusOK, Clients: clients}, nil
}

// pages returns a load that reads a page of 100 entries.
func pages(registry string, clients int) (load.Load, error) {
	if _, err := fill(registry, 150); err != nil {
		return load.Load{}, fmt.Errorf("fill the registry: %w", err)
	}
	request := getRequest("/api/2.5/assets?limit=100")
	return load.Load{Addr: registry, Request: request, Status: http.StatusOK, Clients: clients}, nil
}

// creations returns a load that creates assets.
func creations(registry string, clients int) (load.Load, error) {
	return load.Load{Addr: registry, Request: createRequest(), Status: http.StatusCreated, Clients: clients}, nil
}

// changes returns a load that changes assets. Each client has its own assets, and each change sets a new title.
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
