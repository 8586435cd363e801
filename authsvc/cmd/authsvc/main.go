// Command authsvc runs the auth service.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"

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

// place has the flags of a command that works on the store.
type place struct {
	Store      string `required:"" help:"Store of the service: file:PATH or the URL of a Redis server."`
	SecretFile string `required:"" help:"File with the secret that the services share."`
}

// config returns the configuration of the service at the place.
func (p place) config() (authsvc.Config, error) {
	secrets, err := keyring.Read(p.SecretFile)
	return authsvc.Config{Store: p.Store, Secrets: secrets, Log: newLog()}, err
}

// adminKey are the flags of the command admin-key.
type adminKey struct {
	place
	Name string `required:"" help:"Name of the key's holder, for the audit log."`
}

// accept are the flags of the command accept-keys.
type accept struct{ place }

// Help returns the last part of the help of the command accept-keys.
func (accept) Help() string {
	return "Keys wait if revocations may be lost (alert KeysWait). Compare the keys with the log of authsvc first: what " +
		"was revoked, and works again, has to be revoked again."
}

// reseal are the flags of the command reseal.
type reseal struct{ place }

// Help returns the last part of the help of the command reseal.
func (reseal) Help() string {
	return "The audit log then no longer needs the other secrets of the file. Services on Redis need not stop."
}

// settings are the flags of the command serve. The environment and the config file can
// set them, too.
type settings struct {
	daemon.Process

	Addr      string `default:"127.0.0.1:8082" help:"Address to listen on."`
	AdminAddr string `help:"Address of the admin API; default none. A network as host: the own address in it."`
	Service   flags  `embed:""`
}

// Help returns the last part of the help of the command serve.
func (settings) Help() string {
	return "The host of --admin-addr can be a network, as in 10.0.0.0/24:8083: the service then listens on the " +
		"machine's own address in it. While the secret is rotated, the secret file has two lines: first the secret " +
		"that signs and seals, then the other one. A changed --transfer-lifetime holds for new transfers."
}

// flags are the settings of the service, without the method Validate, which kong would call before the secret is read.
type flags authsvc.Config

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
		return config.Check(&c, "authsvc", "AUTHSVC", "serve", args[1:], os.Stdout)
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
	c, err := r.config()
	if err != nil {
		return err
	}
	entries, err := authsvc.Reseal(ctx, c)
	if err != nil {
		return err
	}
	fmt.Printf("The audit log is in order. "+
		"%d entries had the seal of another secret and now have the seal of the first.\n", entries)
	return nil
}

func (a accept) run(ctx context.Context) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if err := authsvc.AcceptKeys(ctx, c); err != nil {
		return err
	}
	fmt.Println("The keys are accepted as they are. The audit log has an entry about it.")
	return nil
}

func (k adminKey) run(ctx context.Context) error {
	c, err := k.config()
	if err != nil {
		return err
	}
	key, err := authsvc.AdminKey(ctx, c, k.Name)
	if err != nil {
		return err
	}
	fmt.Println(key)
	return nil
}

// Check implements config.Checker.
func (s settings) Check(warnings io.Writer) error {
	c, err := s.config()
	c.Log = newLog()
	return errors.Join(err, c.Validate(), private.Print(warnings, c.Store))
}

func (s settings) run(ctx context.Context) error {
	c, err := s.config()
	if err != nil {
		return err
	}
	s.Places = []string{c.Store}
	serve := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		c.Log, c.Telemetry = log, t
		return newService(ctx, c, s.AdminAddr)
	}
	return daemon.Run(ctx, s.Addr, s.Process, serve)
}

// config returns the configuration of the service, without its listener for the admin API.
func (s settings) config() (c authsvc.Config, err error) {
	c = authsvc.Config(s.Service)
	c.AdminServing = s.Serving(nil, nil)
	c.Secrets, err = keyring.ReadSetting(c.SecretFile)
	return c, err
}

// newService starts the service, with the admin API at an address; "": without it.
func newService(ctx context.Context, c authsvc.Config, adminAddr string) (_ daemon.Service, err error) {
	if adminAddr != "" {
		if c.Admin, err = listen(adminAddr); err != nil {
			return nil, err
		}
	}
	service, err := authsvc.New(ctx, c)
	if err != nil && c.Admin != nil {
		err = errors.Join(err, c.Admin.Close())
	}
	return service, err
}

// listen listens on a TCP address. If the host is a network, as in
// "10.230.0.0/24:8083", it listens only on this machine's own address in the network.
// Machines outside the network therefore cannot connect. It fails if the machine has no
// address in the network.
func listen(addr string) (net.Listener, error) {
	const flag = "--admin-addr"
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if network, err := netip.ParsePrefix(host); err == nil {
		own, err := addressIn(network)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		addr = net.JoinHostPort(own.String(), port)
	}
	return command.Listen(flag, addr)
}

// addressIn returns the first address of this machine in a network.
func addressIn(network netip.Prefix) (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("read this machine's addresses: %w", err)
	}
	for _, a := range all {
		if own, err := netip.ParsePrefix(a.String()); err == nil && network.Contains(own.Addr()) {
			return own.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("this machine has no address in %s", network)
}
