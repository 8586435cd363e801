// Command authsvc runs the auth service.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"asset-registry/authsvc"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/keyring"
	"asset-registry/shared/private"
	"asset-registry/shared/probe"
	"asset-registry/shared/telemetry"
)

// commands are the commands of the program.
type commands struct {
	Serve    settings `cmd:"" default:"withargs" help:"Run the service (the default command)."`
	Reseal   reseal   `cmd:"" help:"Seal the audit log with the first secret of the file. First stop a service on a file."`
	Accept   accept   `cmd:"" name:"accept-keys" help:"Let all keys go on as they are. First stop a service on a file."`
	AdminKey adminKey `cmd:"" help:"Create a key of the admin API and print it. First stop a service on a file."`
}

// adminKey are the flags of the command admin-key.
type adminKey struct {
	Store      string `required:"" help:"Store of the service: file:PATH or the URL of a Redis server."`
	SecretFile string `required:"" help:"File with the secret that the services share."`
	Name       string `required:"" help:"Name of the key's holder, for the audit log."`
}

// accept are the flags of the command accept-keys.
type accept struct {
	Store      string `required:"" help:"Store of the service: file:PATH or the URL of a Redis server."`
	SecretFile string `required:"" help:"File with the secret that the services share."`
}

// Help returns the last part of the help of the command accept-keys.
func (accept) Help() string {
	return "Keys wait if revocations may be lost (alert KeysWait). Compare the keys with the log of authsvc first: what " +
		"was revoked, and works again, has to be revoked again."
}

// reseal are the flags of the command reseal.
type reseal struct {
	Store      string `required:"" help:"Store of the service: file:PATH or the URL of a Redis server."`
	SecretFile string `required:"" help:"File with the secret that the services share."`
}

// Help returns the last part of the help of the command reseal.
func (reseal) Help() string {
	return "The audit log then no longer needs the other secrets of the file. Services on Redis need not stop."
}

// settings are the flags of the command serve. The environment and the config file can
// set them, too.
type settings struct {
	daemon.Process

	Addr       string        `default:"127.0.0.1:8082" help:"Address to listen on."`
	AdminAddr  string        `help:"Address of the admin API; default none. A network as host: the own address in it."`
	Store      string        `required:"" help:"file:PATH, redis://HOST:PORT/DB, redis+sentinel://HOST:PORT,.../NAME/DB."`
	SecretFile string        `required:"" help:"File with the services' secret, at least 32 bytes. Rotation: two lines."`
	Sandbox    bool          `help:"Accept the well-known sandbox keys."`
	KeysFile   string        `help:"YAML file with API keys."`
	Timeout    time.Duration `default:"5s" help:"Longest time for a request."`

	TransferLifetime time.Duration `default:"2160h" help:"How long the service keeps a new transfer that nobody claims."`

	// From these services the console gets the public log and the history of assets.
	AssetsURL []string `name:"assets-url" help:"Addresses of the asset services. Without any, the console has no log."`

	// The console shows a command with which an operator can try a new key at this address.
	BaseURL string `name:"base-url" help:"Public address of the registry, for the console's examples."`

	AdminTrustedProxies []netip.Prefix `help:"Networks of proxies before the admin API whose X-Forwarded-For counts."`
}

// Help returns the last part of the help of the command serve.
func (settings) Help() string {
	return "The host of --admin-addr can be a network, as in 10.0.0.0/24:8083: the service then listens on the " +
		"machine's own address in it. While the secret is rotated, the secret file has two lines: first the secret " +
		"that signs and seals, then the other one. A changed --transfer-lifetime holds for new transfers."
}

func main() { command.Main("authsvc", run, nil) }

const description = `The auth service of the asset registry.

"authsvc health URL" asks the /readyz at URL and exits with 0 if the service is ready.
"authsvc check [FILE] [flags]" checks settings, and prints what is in force and where it came from.`

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return probe.Ready(ctx, args[1])
	}
	c := commands{Serve: settings{Process: daemon.Process{Name: "authsvc"}}}
	if len(args) > 0 && args[0] == "check" {
		if err := config.Check(&c, "authsvc", "AUTHSVC", "serve", args[1:], os.Stdout); err != nil {
			return err
		}
		secrets, err := keyring.Read(c.Serve.SecretFile)
		invalid := c.Serve.config(secrets, newLog(), nil).Validate()
		return errors.Join(err, invalid, private.Print(os.Stderr, c.Serve.Store))
	}
	chosen, err := config.Parse(&c, "authsvc", description, "AUTHSVC", args)
	if err != nil {
		return err
	}
	switch chosen {
	case "admin-key":
		return c.AdminKey.run(ctx)
	case "accept-keys":
		return c.Accept.run(ctx)
	case "reseal":
		return c.Reseal.run(ctx)
	default:
		return c.Serve.run(ctx)
	}
}

// newLog returns the log of a command.
func newLog() *slog.Logger { return slog.New(slog.NewJSONHandler(os.Stderr, nil)) }

func (r reseal) run(ctx context.Context) error {
	secrets, err := keyring.Read(r.SecretFile)
	if err != nil {
		return err
	}
	entries, err := authsvc.Reseal(ctx, authsvc.Config{Store: r.Store, Secrets: secrets, Log: newLog()})
	if err != nil {
		return err
	}
	fmt.Printf("The audit log is in order. "+
		"%d entries had the seal of another secret and now have the seal of the first.\n", entries)
	return nil
}

func (a accept) run(ctx context.Context) error {
	secrets, err := keyring.Read(a.SecretFile)
	if err != nil {
		return err
	}
	if err := authsvc.AcceptKeys(ctx, authsvc.Config{Store: a.Store, Secrets: secrets, Log: newLog()}); err != nil {
		return err
	}
	fmt.Println("The keys are accepted as they are. The audit log has an entry about it.")
	return nil
}

func (k adminKey) run(ctx context.Context) error {
	secrets, err := keyring.Read(k.SecretFile)
	if err != nil {
		return err
	}
	key, err := authsvc.AdminKey(ctx, authsvc.Config{Store: k.Store, Secrets: secrets, Log: newLog()}, k.Name)
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
	s.Places = []string{s.Store}
	serve := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		return s.newService(ctx, secrets, log, t)
	}
	return daemon.Run(ctx, s.Addr, s.Process, serve)
}

// config returns the configuration of the service, without its listener for the admin API.
func (s settings) config(secrets keyring.Ring, log *slog.Logger, t *telemetry.Telemetry) authsvc.Config {
	return authsvc.Config{
		Store:            s.Store,
		Secrets:          secrets,
		Sandbox:          s.Sandbox,
		KeysFile:         s.KeysFile,
		Timeout:          s.Timeout,
		TransferLifetime: s.TransferLifetime,
		Log:              log,
		Telemetry:        t,
		AdminProxies:     s.AdminTrustedProxies,
		AssetsURLs:       s.AssetsURL,
		BaseURL:          s.BaseURL,
		AdminServing:     s.Serving(nil, nil),
	}
}

func (s settings) newService(
	ctx context.Context, secrets keyring.Ring, log *slog.Logger, t *telemetry.Telemetry,
) (daemon.Service, error) {
	var admin net.Listener
	if s.AdminAddr != "" {
		var err error
		if admin, err = listen(s.AdminAddr); err != nil {
			return nil, err
		}
	}
	c := s.config(secrets, log, t)
	c.Admin = admin
	service, err := authsvc.New(ctx, c)
	if err != nil && admin != nil {
		err = errors.Join(err, admin.Close())
	}
	return service, err
}
