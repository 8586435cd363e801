// Command assetsvc runs the asset service in a separate process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"asset-registry/assetsvc"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logkey"
	"asset-registry/shared/private"
	"asset-registry/shared/probe"
	"asset-registry/shared/telemetry"
)

// commands are the commands of the program.
type commands struct {
	Serve  settings `cmd:"" default:"withargs" help:"Run the service. This is the default command."`
	LogKey logKey   `cmd:"" help:"Make a key of the public log unless the file exists, and print the public key."`
	Make   makeNow  `cmd:"" name:"snapshot" help:"Make a snapshot at once, beside the services on the same MongoDB."`
	Reseal reseal   `cmd:"" help:"Seal all token records with the first secret. Stop the services of a file store first."`
}

// reseal has the settings of the command reseal.
type reseal struct {
	Store      string   `required:"" help:"Store of the assets, as for serve."`
	AuthURL    []string `name:"auth-url" default:"http://127.0.0.1:8082" help:"Addresses of the auth services."`
	SecretFile string   `required:"" help:"File of secrets, one a line; the first seals."`
}

// makeNow has the settings of the command snapshot.
type makeNow struct {
	Store        string   `required:"" help:"Store of the assets, as for serve."`
	SnapshotDir  string   `required:"" placeholder:"DIR" help:"Directory of the snapshots, as for serve."`
	SnapshotKeep int      `default:"2" help:"Snapshots that are kept."`
	WholeCopies  bool     `default:"true" negatable:"" help:"Make whole copies, too, as for serve."`
	Hide         []string `help:"Fields that the snapshot leaves out, as for serve."`
	Zone         string   `default:"+00:00" help:"Constant offset of printed timestamps, as for serve."`
}

// logKey has the settings of the command log-key.
type logKey struct {
	File    string `arg:"" help:"File of the secret key."`
	BaseURL string `name:"base-url" default:"http://localhost" help:"Public address of the registry; the origin has it."`
	Shared  bool   `help:"Let all users read the file; its directory must keep others out."`
}

// settings has the settings of the command serve: flags, environment and config file.
type settings struct {
	daemon.Process

	Addr string `default:"127.0.0.1:8081" help:"Address to listen on."`

	// Without the file of keys the service makes no log.
	assetsvc.LogFiles

	Zone string `default:"+00:00" help:"Constant offset of printed timestamps."`

	// The sender of webhooks needs direct connections to the receivers: it uses no proxy.
	Service flags `embed:""`
}

// flags are the settings of the service, without the method Validate, which kong would call before the secret is read.
type flags assetsvc.Config

func main() { command.Main("assetsvc", run, nil) }

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return probe.Ready(ctx, args[1])
	}
	c := commands{Serve: settings{Process: daemon.Process{Name: "assetsvc"}}}
	const help = "The asset service of the asset registry. " +
		"\"assetsvc health URL\" asks the /readyz at URL whether a service is ready. " +
		"\"assetsvc check [FILE] [flags]\" checks settings, and prints what is in force and where it came from."
	if len(args) > 0 && args[0] == "check" {
		return config.Check(&c, "assetsvc", "ASSETSVC", "serve", args[1:], os.Stdout)
	}
	chosen, err := config.Parse(&c, "assetsvc", help, "ASSETSVC", args)
	if err != nil {
		return err
	}
	switch chosen {
	case "reseal":
		return c.Reseal.run(ctx)
	case "snapshot":
		return c.Make.run(ctx)
	case "log-key <file>":
		return c.LogKey.run()
	default:
		return c.Serve.run(ctx)
	}
}

func (k logKey) run() error {
	keys, err := logkey.ReadOrCreate(k.File, k.BaseURL)
	if err != nil {
		return err
	}
	for _, key := range keys {
		fmt.Println(key.Public())
	}
	if k.Shared {
		return os.Chmod(k.File, 0o444)
	}
	return nil
}

func (m makeNow) run(ctx context.Context) error {
	zone, err := config.Zone(m.Zone)
	if err != nil {
		return err
	}
	made, err := assetsvc.MakeSnapshot(ctx, assetsvc.Config{
		Store: m.Store, Zone: zone, Hide: m.Hide, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		SnapshotDir: m.SnapshotDir,
		Snapshot:    assetsvc.Snapshot{SnapshotKeep: m.SnapshotKeep, WholeCopies: m.WholeCopies},
	})
	if err == nil {
		fmt.Println(made)
	}
	return err
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
	fmt.Printf("Token records: %d. Sealed anew with the first secret: %d.\n", found.Assets, found.Anew)
	fmt.Printf("Webhooks: %d. Sealed anew with the first secret: %d.\n", found.Webhooks.All, found.Webhooks.Anew)
	if foreign := found.Foreign + found.Webhooks.Foreign; foreign > 0 {
		const text = "%d token records or webhooks are sealed with a secret that authsvc or this command does not have: " +
			"remove no secret until you have found it"
		return fmt.Errorf(text, foreign)
	}
	return nil
}

// Check implements config.Checker.
func (s settings) Check(warnings io.Writer) error {
	c, err := s.config()
	c.Log = slog.New(slog.DiscardHandler)
	return errors.Join(err, c.Validate(), private.Print(warnings, c.Store, c.SnapshotDir))
}

// config returns the configuration of the service. The error lists every file that cannot be read.
func (s settings) config() (c assetsvc.Config, err error) {
	var badZone, badSecret, badLog error
	c = assetsvc.Config(s.Service)
	c.Zone, badZone = config.Zone(s.Zone)
	c.Secrets, badSecret = keyring.ReadSetting(c.SecretFile)
	c.LogKeys, c.LogPolicy, badLog = s.LogFiles.Read()
	return c, errors.Join(badZone, badSecret, badLog)
}

func (s settings) run(ctx context.Context) error {
	read, err := s.config()
	if err != nil {
		return err
	}
	open := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		c := read
		c.Log, c.Telemetry = log, t
		return assetsvc.New(ctx, c)
	}
	s.Budget, s.Places = read.Memory, []string{read.Store, read.SnapshotDir}
	return daemon.Run(ctx, s.Addr, s.Process, open)
}
