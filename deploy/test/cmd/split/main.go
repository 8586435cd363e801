// Command split runs the services of the registry, except for the search, as separate processes on this machine, with
// file stores by default. `make run-split` starts it.
package main

import (
	"context"
	"fmt"
	"os"

	"asset-registry/deploy/registry"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
)

// settings are the flags and environment variables of the command.
type settings struct {
	Addr   string `default:"127.0.0.1:8080" help:"Address of the gateway."`
	Data   string `default:"./data-split" help:"Data directory."`
	Assets string `help:"Store of assets: mongodb://HOST:PORT/DATABASE; by default a file in the data directory."`
	Tokens string `help:"Store of token records: redis://HOST:PORT/DB; by default a file in the data directory."`
	Bin    string `default:"./bin" help:"Directory of the programs."`
}

func main() { command.Main("split", run, nil) }

func run(ctx context.Context, args []string) error {
	var s settings
	const about = "The services of the asset registry on one machine, without the search."
	_, err := config.Parse(&s, "split", about, "SPLIT", args)
	if err != nil {
		return err
	}
	stores, output := processes.Stores{Assets: s.Assets, Tokens: s.Tokens}, &processes.Output{Also: os.Stderr}
	services, err := processes.StartSplit(ctx, s.Bin, s.Addr, s.Data, stores, output)
	if err != nil {
		return err
	}
	fmt.Print(registry.Greeting(registry.Config{Data: s.Data, Sandbox: true}, s.Addr))
	services.Keep(ctx, func(name string, cause error) {
		fmt.Fprintf(os.Stderr, "split: %s has ended (%v) and starts again\n", name, cause)
	})
	return services.Stop()
}
