// Command copy fills a registry that runs with sandbox keys and without rate limits with
// listed assets of 3 KB, so that synchronisers can be measured (deploy/bench/README.md).
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry/deploy/registry/client"
)

//go:embed asset.json
var example []byte // {"data": asset}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "copy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("copy", flag.ContinueOnError)
	url := flags.String("url", "http://127.0.0.1:8080", "address of the registry")
	assets := flags.Int("assets", 100_000, "assets to create and publish")
	writers := flags.Int("writers", 64, "requests at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	registry, err := client.New(client.Config{URL: *url, Key: "broker"})
	if err != nil {
		return err
	}
	var body struct {
		Data client.Fields `json:"data"`
	}
	if err := json.Unmarshal(example, &body); err != nil {
		return fmt.Errorf("read the example: %w", err)
	}
	begun := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(*writers)
	for range *assets {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return publish(ctx, registry, body.Data) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d assets in %v\n", *assets, time.Since(begun).Round(time.Second))
	return nil
}

// publish creates an asset and publishes it.
func publish(ctx context.Context, registry *client.Client, fields client.Fields) error {
	created, err := registry.CreateFields(ctx, fields, "")
	if err != nil {
		return err
	}
	_, err = registry.Patch(ctx, created.Asset.ID, client.Fields{"status": client.Pending},
		client.Write{Token: created.Access.Token})
	return err
}
