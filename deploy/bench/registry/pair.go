package main

import (
	"context"
	"fmt"
	"slices"

	"asset-registry/deploy/bench/load"
)

// pair runs two loads in turn for a number of rounds. It returns the median of each load, and the median of the ratios
// of the rounds. If the machine becomes slower, both loads of a round become slower, so the ratio stays fair.
func pair(ctx context.Context, ours, theirs func(context.Context) (load.Result, error), rounds int) (a, b load.Result,
	ratio float64, err error) {
	var as, bs []load.Result
	var ratios []float64
	for range rounds {
		x, err := ours(ctx)
		if err != nil {
			return a, b, 0, fmt.Errorf("ours: %w", err)
		}
		y, err := theirs(ctx)
		if err != nil {
			return a, b, 0, fmt.Errorf("theirs: %w", err)
		}
		as, bs, ratios = append(as, x), append(bs, y), append(ratios, x.PerSecond/y.PerSecond)
	}
	byRate := func(x, y load.Result) int { return int(x.PerSecond - y.PerSecond) }
	slices.SortFunc(as, byRate)
	slices.SortFunc(bs, byRate)
	slices.Sort(ratios)
	return as[rounds/2], bs[rounds/2], ratios[rounds/2], nil
}
