// Command registryctl is the command-line client of the registry: it calls the
// admin API, and reads and writes assets.
package main

import (
	"context"
	"os"

	"asset-registry/deploy/registry/registryctl"
	"asset-registry/shared/command"
)

func main() {
	command.Main("registryctl", func(ctx context.Context, args []string) error {
		return registryctl.Run(ctx, args, os.Stdin, os.Stdout, os.Stderr)
	}, registryctl.ExitCode)
}
