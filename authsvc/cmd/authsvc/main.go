// Command authsvc runs the auth service as a process of its own.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"asset-registry/authsvc"
	"asset-registry/shared/config"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/telemetry"
)

// settings are the command's flags, environment and config file.
type settings struct {
	httpserver.Process

	Addr       string        `default:"127.0.0.1:8082" help:"Address to listen on."`
	Store      string        `required:"" help:"Where token records are kept: file:PATH, or redis://HOST:PORT/DB."`
	SecretFile string        `required:"" help:"File with the secret that the services share, at least 32 bytes."`
	Sandbox    bool          `help:"Let the well-known sandbox keys in."`
	KeysFile   string        `help:"YAML file that lists API keys."`
	Timeout    time.Duration `default:"5s" help:"Longest time for a request."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "authsvc:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	s := settings{Process: httpserver.Process{Name: "authsvc"}}
	if _, err := config.Parse(&s, "authsvc", "The auth service of the asset registry.", "AUTHSVC", args); err != nil {
		return err
	}
	secret, err := config.Secret(s.SecretFile)
	if err != nil {
		return err
	}
	return httpserver.Run(ctx, s.Addr, s.Process, func(log *slog.Logger, t *telemetry.Telemetry) (httpserver.Service, error) {
		return authsvc.New(ctx, authsvc.Config{
			Store:     s.Store,
			Secret:    secret,
			Sandbox:   s.Sandbox,
			KeysFile:  s.KeysFile,
			Timeout:   s.Timeout,
			Log:       log,
			Telemetry: t,
		})
	})
}
