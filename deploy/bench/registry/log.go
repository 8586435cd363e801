package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Settings for measuring the public log.
const (
	sampled    = 16                    // number of assets whose changes are timed
	background = 16                    // number of clients that change other assets
	samplesFor = 20 * time.Second      // duration of the measurement
	look       = 10 * time.Millisecond // time between two requests for a proof
	apart      = 2 * time.Second       // longest time between two changes of a timed asset
)

// log measures the time from the answer to a change until a checkpoint of the public log covers the change. It
// measures twice: first without other load, and then while other clients change assets.
func (b *bench) log(ctx context.Context) error {
	fmt.Printf("\nchange to checkpoint   samples   p50, p99, longest\n")
	for _, clients := range []int{0, background} {
		ages, err := b.ages(ctx, clients)
		if err != nil {
			return fmt.Errorf("follow changes into the public log: %w", err)
		}
		slices.Sort(ages)
		at := func(percent int) time.Duration { return ages[(len(ages)-1)*percent/100].Round(time.Millisecond) }
		fmt.Printf("%-22s %7d   %v, %v, %v\n", fmt.Sprintf("beside %d clients", clients), len(ages), at(50), at(99), at(100))
	}
	return nil
}

// ages returns the time from each change to the first checkpoint that covers it. During the measurement, the given
// number of clients changes other assets.
func (b *bench) ages(ctx context.Context, clients int) (ages []time.Duration, err error) {
	assets, err := fill(b.registry, sampled)
	if err != nil {
		return nil, fmt.Errorf("fill the registry: %w", err)
	}
	running, ctx := errgroup.WithContext(ctx)
	if clients > 0 {
		others, err := changes(b.registry, clients)
		if err != nil {
			return nil, err
		}
		running.Go(func() error {
			_, err := others.Run(ctx, samplesFor)
			return err
		})
	}
	found := make([][]time.Duration, len(assets))
	end := time.Now().Add(samplesFor)
	for i, a := range assets {
		running.Go(func() error {
			for n := 0; time.Now().Before(end); n++ {
				time.Sleep(rand.N(apart)) // without this pause, each change would come right after a checkpoint
				age, err := a.age(ctx, b.registry, n)
				if err != nil {
					return err
				}
				found[i] = append(found[i], age)
			}
			return nil
		})
	}
	err = running.Wait()
	return slices.Concat(found...), err
}

// age changes the asset, and returns the time until the registry has a proof for the change.
func (a owned) age(ctx context.Context, registry string, n int) (time.Duration, error) {
	url := "http://" + registry + "/api/2.5/assets/" + a.id
	change := request(http.MethodPatch, url, fmt.Appendf(nil, `{"data":{"title":"Sample %d"}}`, n)).WithContext(ctx)
	change.Header.Set("X-Access-Token", a.token)
	if status, err := status(change); err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("change: status %d: %w", status, err)
	}
	acknowledged := time.Now()
	for {
		switch status, err := status(request(http.MethodGet, url+"/proof", nil).WithContext(ctx)); {
		case err != nil:
			return 0, err
		case status == http.StatusOK:
			return time.Since(acknowledged), nil
		case status != http.StatusServiceUnavailable:
			return 0, fmt.Errorf("proof: got status %d, want 200 or 503", status)
		}
		time.Sleep(look)
	}
}

// status sends a request, reads the whole answer and returns its status.
func status(r *http.Request) (int, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}
