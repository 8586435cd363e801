// Command registryctl administers the asset registry, and reads and writes
// assets, from the command line.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"asset-registry/deploy/registry/registryctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := registryctl.New(os.Stdin, os.Stdout, os.Getenv).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "registryctl:", err)
		os.Exit(1)
	}
}
