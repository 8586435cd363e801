// Command assetsvc runs the asset service as a process of its own.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/shared/config"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
)

// commands are what the program can do.
type commands struct {
	Serve  settings `cmd:"" default:"withargs" help:"Run the service; what is done when no command is given."`
	Reseal reseal   `cmd:"" help:"Seal the token records of all assets with the first secret of the secret's file, so that the others are needed no more. On a file, only while no service has it open."`
}

// reseal are the settings of the command of that name.
type reseal struct {
	Store      string   `required:"" help:"Where assets are kept, as of the service."`
	AuthURL    []string `name:"auth-url" default:"http://127.0.0.1:8082" help:"Addresses of the auth services."`
	SecretFile string   `required:"" help:"File with the secret that the services share."`
}

// settings are the service's flags, environment and config file.
type settings struct {
	httpserver.Process

	Addr         string        `default:"127.0.0.1:8081" help:"Address to listen on."`
	Store        string        `required:"" help:"Where assets are kept: file:PATH, or mongodb://HOST:PORT,.../DATABASE?replicaSet=NAME."`
	AuthURL      []string      `name:"auth-url" default:"http://127.0.0.1:8082" help:"Addresses of the auth services, with commas between them; a host name with several addresses stands for all of them."`
	SecretFile   string        `required:"" help:"File with the secret that the services share, at least 32 bytes. While it is rotated it has two lines: the secret that signs and seals, then the other one."`
	Zone         string        `default:"+00:00" help:"Constant offset of printed timestamps."`
	AssetTypes   []string      `default:"bounce" help:"Accepted values of assetType."`
	CodeLists    string        `placeholder:"DIR" help:"Directory with lists of codes, CPV.txt, CPVS.txt, dk018.txt and kvtspz.txt, one code a line; codes without a list are checked by their form."`
	Sandbox      bool          `help:"Accept sandboxParameters."`
	MaxBody      int64         `default:"1048576" help:"Largest request body, in bytes."`
	Timeout      time.Duration `default:"10s" help:"Longest time for a request."`
	Memory       int64         `help:"Bytes of memory that the process may use: parts of it bound what requests hold. 0 is GOMEMLIMIT, the control group's limit, or the machine's memory, whichever is least."`
	StoreTimeout time.Duration `default:"2s" help:"Longest time for one operation of the store (MongoDB)."`
	StoreLease   time.Duration `default:"3s" help:"How long a batch of another asset service may stall before it is fenced (MongoDB)."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "assetsvc:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return httpserver.Health(ctx, args[1])
	}
	c := commands{Serve: settings{Process: httpserver.Process{Name: "assetsvc"}}}
	command, err := config.Parse(&c, "assetsvc", "The asset service of the asset registry. With \"health URL\", it tells whether the service whose /readyz that is, is ready.", "ASSETSVC", args)
	if err != nil {
		return err
	}
	if command == "reseal" {
		return c.Reseal.run(ctx)
	}
	return c.Serve.run(ctx)
}

func (r reseal) run(ctx context.Context) error {
	secrets, err := keyring.Read(r.SecretFile)
	if err != nil {
		return err
	}
	found, err := assetsvc.Reseal(ctx, assetsvc.Config{
		Store: r.Store, AuthURLs: r.AuthURL, Secrets: secrets, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	fmt.Printf("Token records: %d, of which %d were sealed with another secret and are now sealed with the first.\n", found.Assets, found.Anew)
	if found.Foreign > 0 {
		return fmt.Errorf("%d token records are sealed with a secret that authsvc does not have: remove none until you have found it", found.Foreign)
	}
	return nil
}

func (s settings) run(ctx context.Context) error {
	zone, err := config.Zone(s.Zone)
	if err != nil {
		return err
	}
	secrets, err := keyring.Read(s.SecretFile)
	if err != nil {
		return err
	}
	return httpserver.Run(ctx, s.Addr, s.Process, func(log *slog.Logger, t *telemetry.Telemetry) (httpserver.Service, error) {
		return assetsvc.New(ctx, assetsvc.Config{
			Store:        s.Store,
			AuthURLs:     s.AuthURL,
			Secrets:      secrets,
			Zone:         zone,
			AssetTypes:   s.AssetTypes,
			CodeLists:    s.CodeLists,
			Sandbox:      s.Sandbox,
			MaxBody:      s.MaxBody,
			Timeout:      s.Timeout,
			Memory:       s.Memory,
			Log:          log,
			Telemetry:    t,
			StoreTimeout: s.StoreTimeout,
			StoreLease:   s.StoreLease,
		})
	})
}
