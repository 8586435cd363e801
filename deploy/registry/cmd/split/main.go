// Command split runs the three services of the registry as processes of their
// own on this machine, on the file stores: what `make run-split` shows.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"asset-registry/deploy/registry"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/config"
)

// settings are the command's flags and environment.
type settings struct {
	Addr   string `default:"127.0.0.1:8080" help:"Address of the gateway."`
	Data   string `default:"./data-split" help:"Directory of the data."`
	Assets string `help:"Where assets are kept: mongodb://HOST:PORT/DATABASE; by default a file in the directory of the data."`
	Tokens string `help:"Where token records are kept: redis://HOST:PORT/DB; by default a file in the directory of the data."`
	Bin    string `default:"./bin" help:"Directory of the programs."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "split:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	var s settings
	if _, err := config.Parse(&s, "split", "The three services of the asset registry on one machine.", "SPLIT", args); err != nil {
		return err
	}
	services, err := processes.StartSplit(ctx, s.Bin, s.Addr, s.Data, processes.Stores{Assets: s.Assets, Tokens: s.Tokens}, &processes.Output{Also: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Print(registry.Greeting(registry.Config{Data: s.Data, Sandbox: true}, s.Addr))
	select {
	case <-ctx.Done():
	case <-services.Exited():
		return errors.Join(errors.New("a service has ended"), services.Stop())
	}
	return services.Stop()
}
