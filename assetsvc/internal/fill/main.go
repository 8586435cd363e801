// Command fill writes listed assets into the file of an asset service while the service is stopped, many times
// faster than the API does. Each asset is made from an example: it has the same fields, with different ids, words
// and digits. Nobody knows the tokens of these assets, so nobody can change them. Benchmarks use the command
// (deploy/bench/copy).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
)

// waiting is the number of assets that wait for the store at the same time. The store writes up to 1,024 in one
// transaction.
const waiting = 2048

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("fill", flag.ContinueOnError)
	file := flags.String("file", "", "file of the assets")
	like := flags.String("like", "", `file with the example, {"data": asset}, as the API shows it`)
	assets := flags.Int("assets", 100_000, "assets to write")
	seed := flags.Uint64("seed", 1, "of the random assets")
	if err := flags.Parse(args); err != nil {
		return err
	}
	example, err := readExample(*like)
	if err != nil {
		return err
	}
	store, err := boltstore.Open(*file, boltstore.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return fill(ctx, store, example, *assets, *seed)
}

// readExample reads an asset from a file, and returns it in the form in which a store keeps it.
func readExample(file string) (record.Object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := record.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
	}
	answer, _ := parsed.(record.Object)
	example := answer.Object("data")
	if example.Text("id") == "" {
		return nil, errors.New("read the example: it has no asset with an id")
	}
	return example.Without("dateModified"), nil // the store assigns dateModified
}

// fill writes assets that are made from an example.
func fill(ctx context.Context, store *boltstore.Store, example record.Object, assets int, seed uint64) error {
	records := make(chan registry.Record)
	writers, writing := errgroup.WithContext(ctx)
	makers, making := errgroup.WithContext(writing) // the context in the variable `writing` ends if a writer fails
	part := runtime.GOMAXPROCS(0)
	for i := range part {
		makers.Go(func() error {
			v := newVariant(seed, uint64(i))
			for range (assets + i) / part {
				r, err := v.record(example)
				if err != nil {
					return err
				}
				select {
				case records <- r:
				case <-making.Done():
					return making.Err()
				}
			}
			return nil
		})
	}
	for range waiting {
		writers.Go(func() error {
			for {
				select {
				case r, more := <-records:
					if !more {
						return nil
					}
					if _, err := store.Create(writing, r); err != nil {
						return fmt.Errorf("write asset %s: %w", r.ID, err)
					}
				case <-writing.Done():
					return writing.Err()
				}
			}
		})
	}
	err := makers.Wait()
	close(records)
	return errors.Join(err, writers.Wait())
}

// record returns an asset that is made from an example.
func (v *variant) record(example record.Object) (registry.Record, error) {
	shown, _ := v.vary("", example).(record.Object)
	r := registry.Record{
		ID: shown.Text("id"), Listed: true, State: asset.Status(shown.Text("status")), Body: record.Append(nil, shown),
	}
	err := registry.DescribeCreation(&r, registry.Author{Broker: "fill", Role: asset.Owner})
	return r, err
}
