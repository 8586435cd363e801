// Command assetsvc runs the asset service in a separate process.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logclient"
	"asset-registry/shared/logkey"
	"asset-registry/shared/private"
	"asset-registry/shared/probe"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/translog"
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

	Addr  string `default:"127.0.0.1:8081" help:"Address to listen on."`
	Store string `required:"" help:"Store of the assets: file:PATH, or mongodb://HOST:PORT,.../DATABASE?replicaSet=NAME."`

	// If a host name has several addresses, each of them counts as an auth service.
	AuthURL []string `name:"auth-url" default:"http://127.0.0.1:8082" help:"Addresses of the auth services."`

	// Documents may name files of these services. The addresses of the files begin with the base URL.
	FilesURL []string `name:"files-url" help:"Addresses of the file services; by default there are none."`
	BaseURL  string   `name:"base-url" help:"Public address of the registry, with which addresses of files begin."`

	SecretFile string `required:"" help:"File of secrets, one a line, at least 32 bytes each; the first signs and seals."`

	// Without the file the service makes no log.
	LogKeyFile string `placeholder:"FILE" help:"Secret keys of the public log, one a line, the newest first."`
	LogPolicy  string `placeholder:"FILE" help:"Policy file (C2SP tlog-policy) with the witnesses of the public log."`

	Zone       string   `default:"+00:00" help:"Constant offset of printed timestamps."`
	AssetTypes []string `default:"bounce" help:"Accepted values of assetType."`
	Sandbox    bool     `help:"Accept sandboxParameters."`

	// Codes of a scheme without a list are checked by their form.
	CodeLists string `placeholder:"DIR" help:"Directory of lists of codes: CPV.txt, identifier-schemes.txt and others."`

	// All services that share a store must hide the same fields. The command snapshot must hide them too.
	Hide []string `help:"Fields that only callers with an API key see: contacts, addresses, locations."`

	MaxBody int64         `default:"1048576" help:"Largest request body, in bytes."`
	Timeout time.Duration `default:"10s" help:"Longest time for a request."`
	Memory  int64         `help:"Bytes that the process may use; 0: the least of GOMEMLIMIT, control group and machine."`

	// All services that share a store also share this directory.
	SnapshotDir      string        `placeholder:"DIR" help:"Directory of snapshots; by default none are kept."`
	SnapshotInterval time.Duration `default:"1h" help:"Time between snapshots; 0: they are made on demand only."`
	SnapshotKeep     int           `default:"2" help:"Snapshots that are kept."`

	// Whole copies take at least four times as much disk space as the snapshots.
	WholeCopies bool `default:"true" negatable:"" help:"Make whole copies of each snapshot, for /data."`

	// The sender of webhooks needs direct connections to the receivers: it uses no proxy.
	WebhookNetworks []netip.Prefix `help:"Networks that webhooks may be sent to, although they are not public."`
	WebhookHTTP     bool           `name:"webhook-http" help:"Webhooks may have addresses that begin with http."`

	StoreTimeout time.Duration `default:"2s" help:"Longest time for one operation of MongoDB."`
	StoreLease   time.Duration `default:"3s" help:"With MongoDB, a batch that stays open longer is fenced."`

	// A majority of MongoDB's members confirms each barrier, so a barrier costs about as much as a write.
	FreshReads bool `help:"Reads never go back in time while MongoDB elects a primary. They wait for a shared barrier."`
}

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
		if err := config.Check(&c, "assetsvc", "ASSETSVC", "serve", args[1:], os.Stdout); err != nil {
			return err
		}
		read, err := c.Serve.config()
		read.Log = slog.New(slog.DiscardHandler)
		open := private.Print(os.Stderr, c.Serve.Store, c.Serve.SnapshotDir)
		return errors.Join(err, read.Validate(), open)
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
		Snapshot: assetsvc.Snapshot{Dir: m.SnapshotDir, Keep: m.SnapshotKeep, Copies: m.WholeCopies},
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

// config returns the configuration of the service. The error lists every file that cannot be read.
func (s settings) config() (assetsvc.Config, error) {
	zone, badZone := config.Zone(s.Zone)
	secrets, badSecret := keyring.Read(s.SecretFile)
	var logKeys []translog.Key
	var badKeys, badPolicy error
	if s.LogKeyFile != "" {
		logKeys, badKeys = logkey.Read(s.LogKeyFile)
	}
	var logPolicy *translog.Policy
	if s.LogPolicy != "" {
		logPolicy, badPolicy = logclient.ReadPolicy(s.LogPolicy)
	}
	return assetsvc.Config{
		Store:        s.Store,
		AuthURLs:     s.AuthURL,
		FilesURLs:    s.FilesURL,
		BaseURL:      s.BaseURL,
		Secrets:      secrets,
		LogKeys:      logKeys,
		LogPolicy:    logPolicy,
		Zone:         zone,
		AssetTypes:   s.AssetTypes,
		CodeLists:    s.CodeLists,
		Sandbox:      s.Sandbox,
		Hide:         s.Hide,
		MaxBody:      s.MaxBody,
		Timeout:      s.Timeout,
		Memory:       s.Memory,
		StoreTimeout: s.StoreTimeout,
		StoreLease:   s.StoreLease,
		FreshReads:   s.FreshReads,
		Snapshot: assetsvc.Snapshot{
			Dir: s.SnapshotDir, Interval: s.SnapshotInterval, Keep: s.SnapshotKeep,
			Copies: s.WholeCopies,
		},
		Webhooks: assetsvc.Webhooks{Networks: s.WebhookNetworks, HTTP: s.WebhookHTTP},
	}, errors.Join(badZone, badSecret, badKeys, badPolicy)
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
	s.Budget, s.Places = s.Memory, []string{s.Store, s.SnapshotDir}
	return daemon.Run(ctx, s.Addr, s.Process, open)
}
