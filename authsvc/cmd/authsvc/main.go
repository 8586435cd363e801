// Command authsvc runs the auth service as a process of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"asset-registry/authsvc"
	"asset-registry/shared/config"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
)

// commands are what the program can do.
type commands struct {
	Serve    settings `cmd:"" default:"withargs" help:"Run the service; what is done when no command is given."`
	Reseal   reseal   `cmd:"" help:"Seal the audit log with the first secret of the secret's file, so that the others are needed no more. On a file, only while no service has it open."`
	AdminKey adminKey `cmd:"" help:"Make a key for the admin API: the first one, or one more. On a file, only while no service has it open."`
}

// adminKey are the settings of the command of that name.
type adminKey struct {
	Store      string `required:"" help:"Where keys are kept: file:PATH, redis://HOST:PORT/DB, or redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB."`
	SecretFile string `required:"" help:"File with the secret that the services share."`
	Name       string `required:"" help:"Whose key it is, as the audit log will tell."`
}

// reseal are the settings of the command of that name.
type reseal struct {
	Store      string `required:"" help:"Where the audit log is kept: file:PATH, or redis://HOST:PORT/DB."`
	SecretFile string `required:"" help:"File with the secret that the services share."`
}

// settings are the service's flags, environment and config file.
type settings struct {
	httpserver.Process

	Addr       string        `default:"127.0.0.1:8082" help:"Address to listen on."`
	AdminAddr  string        `help:"Address to answer the admin API on; by default none. With a network in place of the host, as in 10.0.0.0/24:8083, it is the machine's own address there."`
	Store      string        `required:"" help:"Where token records and keys are kept: file:PATH, redis://HOST:PORT/DB, or redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB."`
	SecretFile string        `required:"" help:"File with the secret that the services share, at least 32 bytes. While it is rotated it has two lines: the secret that signs and seals, then the other one."`
	Sandbox    bool          `help:"Let the well-known sandbox keys in."`
	KeysFile   string        `help:"YAML file that lists API keys."`
	Timeout    time.Duration `default:"5s" help:"Longest time for a request."`

	TransferLifetime time.Duration `default:"2160h" help:"How long a transfer that nobody uses is kept. It holds for transfers made from then on."`

	AdminTrustedProxies []netip.Prefix `help:"Networks of the proxies before the admin API whose X-Forwarded-For counts."`
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
	if len(args) == 2 && args[0] == "health" {
		return httpserver.Health(ctx, args[1])
	}
	c := commands{Serve: settings{Process: httpserver.Process{Name: "authsvc"}}}
	command, err := config.Parse(&c, "authsvc", "The auth service of the asset registry. With \"health URL\", it tells whether the service whose /readyz that is, is ready.", "AUTHSVC", args)
	if err != nil {
		return err
	}
	switch command {
	case "admin-key":
		return c.AdminKey.run(ctx)
	case "reseal":
		return c.Reseal.run(ctx)
	default:
		return c.Serve.run(ctx)
	}
}

func (r reseal) run(ctx context.Context) error {
	secrets, err := keyring.Read(r.SecretFile)
	if err != nil {
		return err
	}
	entries, err := authsvc.Reseal(ctx, authsvc.Config{Store: r.Store, Secrets: secrets, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	fmt.Printf("The audit log is in order. %d entries were sealed with another secret and are now sealed with the first.\n", entries)
	return nil
}

func (k adminKey) run(ctx context.Context) error {
	secrets, err := keyring.Read(k.SecretFile)
	if err != nil {
		return err
	}
	key, err := authsvc.AdminKey(ctx, authsvc.Config{Store: k.Store, Secrets: secrets, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}, k.Name)
	if err != nil {
		return err
	}
	fmt.Println(key)
	return nil
}

func (s settings) run(ctx context.Context) error {
	secrets, err := keyring.Read(s.SecretFile)
	if err != nil {
		return err
	}
	return httpserver.Run(ctx, s.Addr, s.Process, func(log *slog.Logger, t *telemetry.Telemetry) (httpserver.Service, error) {
		var admin net.Listener
		if s.AdminAddr != "" {
			if admin, err = listen(ctx, s.AdminAddr); err != nil {
				return nil, err
			}
		}
		service, err := authsvc.New(ctx, authsvc.Config{
			Store:    s.Store,
			Secrets:  secrets,
			Sandbox:  s.Sandbox,
			KeysFile: s.KeysFile,
			Admin:    admin,
			Timeout:  s.Timeout,

			TransferLifetime: s.TransferLifetime,

			Log:       log,
			Telemetry: t,

			AdminProxies:    s.AdminTrustedProxies,
			AdminDrainDelay: s.DrainDelay,
		})
		if err != nil && admin != nil {
			err = errors.Join(err, admin.Close())
		}
		return service, err
	})
}
