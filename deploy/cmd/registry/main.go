// Command registry is the asset registry in one process.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"asset-registry/authsvc"
	"asset-registry/deploy/standalone"
	"asset-registry/shared/config"
)

// commands are what the program can do.
type commands struct {
	Serve  standalone.Config `cmd:"" help:"Run the registry."`
	NewKey newKey            `cmd:"" help:"Make an API key, and its entry for a keys file."`
}

type newKey struct {
	Broker string `required:"" help:"Whose key it is."`
	Role   string `default:"broker" enum:"broker,concierge,administrator" help:"What the key lets its holder be: broker, concierge or administrator."`
	Levels string `default:"1234" help:"Accreditation levels, of 1, 2, 3, 4, 0 for all, and t for test assets only."`
	ID     string `name:"id" required:"" help:"Name of the key in logs; not secret."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	var c commands
	command, err := config.Parse(&c, "registry", "The asset registry.", "REGISTRY", args)
	if err != nil {
		return err
	}
	if command == "new-key" {
		key, hash := authsvc.NewKey()
		fmt.Printf("# The key, shown this once:\n# %s\n- id: %q\n  broker: %q\n  role: %s\n  levels: %q\n  sha256: %s\n",
			key, c.NewKey.ID, c.NewKey.Broker, c.NewKey.Role, c.NewKey.Levels, hash)
		return nil
	}
	return standalone.Run(ctx, c.Serve, os.Stderr, func(addr string) { fmt.Print(standalone.Greeting(c.Serve, addr)) })
}
