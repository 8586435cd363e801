// Command registry is the asset registry in one process. Its other commands manage
// API keys and the data directory.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"asset-registry/deploy/registry"
	"asset-registry/deploy/registry/mirror"
	"asset-registry/filesvc"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/memory"
	"asset-registry/shared/probe"
)

// commands declares the commands and their flags.
type commands struct {
	Serve  registry.Config `cmd:"" help:"Run the registry."`
	Mirror mirror.Config   `cmd:"" help:"Serve a copy of a registry for reading, and keep it up to date."`
	NewKey newKey          `cmd:"" help:"Create an API key and its entry for a keys file."`

	AdminKey adminKey `cmd:"" help:"Create a key for the admin API. The registry may run or not."`

	Snapshot dataDir `cmd:"" help:"Make the running registry copy all listed assets for synchronisers, at once."`

	Status  status  `cmd:"" help:"Tell how the running registry is. The exit code is 1 if it has problems."`
	Backup  backup  `cmd:"" help:"Write all data into a file. The registry may run or not."`
	Restore restore `cmd:"" help:"Create a data directory from a backup."`
	Check   check   `cmd:"" help:"Look for damage in the data of a stopped registry. The exit code is 1 if there is any."`
	Compact dataDir `cmd:"" help:"Rewrite the data of a stopped registry without free pages: they keep erased values."`
	Accept  dataDir `cmd:"" name:"accept-keys" help:"Let all keys of a stopped registry go on as they are."`
	Rotate  rotate  `cmd:"" name:"rotate-secret" help:"Give a stopped registry a new secret beside the old one."`
	Files   files   `cmd:"" help:"Move the bytes of the files of documents, or let pictures be drawn again."`
	Migrate migrate `cmd:"" help:"Copy the data of a stopped registry to MongoDB and Redis."`
}

type adminKey struct {
	Data string `default:"./data" help:"Data directory."`
	Name string `required:"" help:"Owner of the key, for the audit log."`
}

// dataDir names the data directory, for commands that need no other setting.
type dataDir struct {
	Data string `default:"./data" help:"Data directory."`
}

type status struct {
	Data   string `default:"./data" help:"Data directory."`
	Output string `short:"o" enum:"table,json" default:"table" help:"Output format: table or json."`
}

func (s status) run(ctx context.Context) error {
	found, err := registry.ReadStatus(ctx, s.Data)
	if err != nil {
		return err
	}
	if s.Output == "json" {
		to := json.NewEncoder(os.Stdout)
		to.SetIndent("", "  ")
		err = to.Encode(found)
	} else {
		err = found.WriteText(os.Stdout)
	}
	if err == nil && len(found.Problems) > 0 {
		err = registry.ErrProblems
	}
	return err
}

type backup struct {
	Data string `default:"./data" help:"Data directory."`
	To   string `xor:"where" required:"" placeholder:"FILE" help:"Tar archive to write. It has the secret: guard it."`
	Into string `xor:"where" required:"" placeholder:"DIR" help:"Directory for a backup that is checked; old ones go."`

	registry.Keep
	Certificate bool `help:"Keep the account and the certificate of --acme too, with their keys."`
}

func (b backup) run(ctx context.Context) error {
	o := registry.BackupOptions{Certificate: b.Certificate}
	if b.Into != "" {
		return registry.BackupInto(ctx, b.Data, b.Into, b.Keep, o, os.Stdout)
	}
	return registry.Backup(ctx, b.Data, b.To, o)
}

type restore struct {
	From string `required:"" placeholder:"FILE" help:"Backup to read."`
	Data string `default:"./data" help:"Data directory to create. It must be empty or not exist."`

	Bucket string `placeholder:"ADDRESS" help:"Bucket of the files. No other registry may use it from now on."`
	Former string `placeholder:"DIR" help:"Data directory before the restore. Its removals and revocations hold."`
}

type check struct {
	Data  string `default:"./data" help:"Data directory."`
	Files bool   `help:"Read all bytes of the files of documents too, and compare their SHA-256."`

	RepairLog bool `help:"First make damaged parts of the public log again from the record of changes."`
}

func main() {
	if filesvc.IsDrawing(os.Args[1:]) {
		os.Exit(filesvc.Draw())
	}
	memory.RelaxCollector()
	command.Main("registry", run, func(err error) int {
		if errors.Is(err, registry.ErrDamaged) || errors.Is(err, registry.ErrProblems) {
			return 1
		}
		return command.Usage
	})
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return probe.Ready(ctx, args[1])
	}
	var c commands
	if len(args) > 0 && args[0] == "check-config" {
		return config.Check(&c, "registry", "REGISTRY", "serve", args[1:], os.Stdout)
	}
	const help = "The asset registry. \"registry check-config [FILE] [flags]\" checks the settings of serve, " +
		"and prints what is in force and where it came from."
	chosen, err := config.Parse(&c, "registry", help, "REGISTRY", args)
	if err != nil {
		return err
	}
	switch chosen {
	case "mirror":
		return mirror.Run(ctx, c.Mirror, os.Stderr, func(addr string) {
			fmt.Printf("The mirror of %s answers at %s once /readyz does, with its copy in %s.\n",
				c.Mirror.Of, cmp.Or(c.Mirror.BaseURL, c.Mirror.TLS.Scheme()+"://"+addr), c.Mirror.Data)
		})
	case "new-key":
		return c.NewKey.run()
	case "admin-key":
		key, err := registry.AdminKey(ctx, c.AdminKey.Data, c.AdminKey.Name)
		if err != nil {
			return err
		}
		fmt.Println(key)
		return nil
	case "snapshot":
		made, err := registry.MakeSnapshot(ctx, c.Snapshot.Data)
		if err != nil {
			return err
		}
		fmt.Println(made)
		return nil
	case "status":
		return c.Status.run(ctx)
	case "backup":
		return c.Backup.run(ctx)
	case "restore":
		return registry.Restore(ctx, c.Restore.From, c.Restore.Data, c.Restore.Former, c.Restore.Bucket)
	case "check":
		if c.Check.RepairLog {
			if err := registry.RepairLog(c.Check.Data, os.Stdout); err != nil {
				return err
			}
		}
		return registry.Check(c.Check.Data, c.Check.Files, os.Stdout)
	case "compact":
		return registry.Compact(c.Compact.Data, os.Stdout)
	case "rotate-secret":
		return c.Rotate.run(ctx)
	case "accept-keys":
		return registry.AcceptKeys(ctx, c.Accept.Data)
	case "files move":
		return c.Files.Move.run(ctx)
	case "files draw":
		return c.Files.Draw.run(ctx)
	case "migrate":
		return c.Migrate.run(ctx)
	default:
		greet := func(addr string) { fmt.Print(registry.Greeting(c.Serve, addr)) }
		c.Serve.Draw = filesvc.DrawCommand()
		return registry.Run(ctx, c.Serve, os.Stderr, greet)
	}
}
