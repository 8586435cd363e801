// Command registryctl is the command-line client of the registry: it calls the
// admin API, and reads and writes assets.
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
	if err := registryctl.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "registryctl:", registryctl.Describe(err))
		os.Exit(registryctl.ExitCode(err))
	}
}
