// Command registry is the asset registry in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"asset-registry/authsvc"
	"asset-registry/deploy/registry"
	"asset-registry/shared/config"
	"asset-registry/shared/identity"
)

// commands are what the program can do.
type commands struct {
	Serve  registry.Config `cmd:"" help:"Run the registry."`
	NewKey newKey          `cmd:"" help:"Make an API key: put it into a store, or print its entry for a keys file."`
	Revoke revokeKey       `cmd:"" name:"revoke-key" help:"Take an API key out of a store."`

	AdminKey adminKey `cmd:"" help:"Make a key for the admin API, while the registry runs or not: the first one, or one more."`

	Backup  backup  `cmd:"" help:"Write all data into a file, while the registry runs or not."`
	Restore restore `cmd:"" help:"Make a data directory of a backup."`
	Check   check   `cmd:"" help:"Look for damage in all data of a registry that is stopped. Ends with 1 if there is any."`
	Rotate  rotate  `cmd:"" name:"rotate-secret" help:"Give the registry a new secret, while it does not run. The old one stays good beside it until --finish."`
	Migrate migrate `cmd:"" help:"Copy all data to MongoDB and Redis, while the registry does not run."`
}

type adminKey struct {
	Data string `default:"./data" help:"Directory of the data."`
	Name string `required:"" help:"Whose key it is, as the audit log will tell."`
}

type backup struct {
	Data string `default:"./data" help:"Directory of the data."`
	To   string `required:"" placeholder:"FILE" help:"File to write, a tar archive. It holds the secret: keep it from others."`
}

type restore struct {
	From string `required:"" placeholder:"FILE" help:"Backup to read."`
	Data string `default:"./data" help:"Directory of the data, which must be empty or not there."`
}

type check struct {
	Data string `default:"./data" help:"Directory of the data."`
}

type rotate struct {
	Data   string `default:"./data" help:"Directory of the data."`
	Finish bool   `help:"Remove the old secret, a day or more after the rotation."`
}

type migrate struct {
	From  string `required:"" placeholder:"file:DIR" help:"Directory of the data."`
	To    string `required:"" placeholder:"mongodb://..." help:"MongoDB database for the assets, which must have none yet."`
	Redis string `required:"" placeholder:"redis://..." help:"Redis for the token records."`
}

type newKey struct {
	Broker string `required:"" help:"Whose key it is."`
	Role   string `default:"broker" enum:"broker,concierge,administrator" help:"What the key lets its holder be: broker, concierge or administrator."`
	Levels string `default:"1234" help:"Accreditation levels, of 1, 2, 3, 4, 0 for all, and t for test assets only."`
	ID     string `name:"id" required:"" help:"Name of the key in logs; not secret."`
	Store  string `placeholder:"STORE" help:"Store of the auth service: redis://HOST:PORT/DB, or file:DIR/tokens.db of a registry that is stopped."`
}

type revokeKey struct {
	ID    string `name:"id" required:"" help:"Name of the key."`
	Store string `required:"" placeholder:"STORE" help:"Store of the auth service, as with new-key."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", strings.ReplaceAll(err.Error(), "\n", "; "))
		if errors.Is(err, registry.ErrDamaged) {
			os.Exit(1)
		}
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	var c commands
	command, err := config.Parse(&c, "registry", "The asset registry.", "REGISTRY", args)
	if err != nil {
		return err
	}
	switch command {
	case "new-key":
		return c.NewKey.run(ctx)
	case "revoke-key":
		return authsvc.RevokeKey(ctx, c.Revoke.Store, c.Revoke.ID)
	case "admin-key":
		key, err := registry.AdminKey(ctx, c.AdminKey.Data, c.AdminKey.Name)
		if err != nil {
			return err
		}
		fmt.Println(key)
		return nil
	case "backup":
		return registry.Backup(ctx, c.Backup.Data, c.Backup.To)
	case "restore":
		return registry.Restore(c.Restore.From, c.Restore.Data)
	case "check":
		return registry.Check(c.Check.Data, os.Stdout)
	case "rotate-secret":
		return c.Rotate.run(ctx)
	case "migrate":
		return c.Migrate.run(ctx)
	default:
		return registry.Run(ctx, c.Serve, os.Stderr, func(addr string) { fmt.Print(registry.Greeting(c.Serve, addr)) })
	}
}

func (n newKey) run(ctx context.Context) error {
	key, hash := authsvc.NewKey()
	if n.Store != "" {
		i := identity.Identity{KeyID: n.ID, Broker: n.Broker, Role: identity.Role(n.Role), Levels: n.Levels}
		if err := authsvc.AddKey(ctx, n.Store, hash, i); err != nil {
			return err
		}
		fmt.Println(key)
		return nil
	}
	fmt.Printf("# The key, shown this once:\n# %s\n- id: %q\n  broker: %q\n  role: %s\n  levels: %q\n  sha256: %s\n", key, n.ID, n.Broker, n.Role, n.Levels, hash)
	return nil
}

func (r rotate) run(ctx context.Context) error {
	done, err := registry.RotateSecret(ctx, r.Data, r.Finish)
	if err != nil {
		return err
	}
	fmt.Printf("Sealed anew: %d token records, %d entries of the audit log.\n", done.Records, done.Entries)
	if r.Finish {
		fmt.Println("The old secret is gone. Keep no copy of it but in the backups that need it.")
		return nil
	}
	fmt.Println("The new secret is in force. The old one stays good beside it: after 24 hours, stop the registry and run this again with --finish.")
	return nil
}

func (m migrate) run(ctx context.Context) error {
	dir, named := strings.CutPrefix(m.From, "file:")
	if !named || dir == "" {
		return fmt.Errorf("--from must be %q and a directory", "file:")
	}
	bar := progressbar.NewOptions(0, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("move and read back"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(isatty.IsTerminal(os.Stderr.Fd())))
	assets, tokens, err := registry.Move(ctx, dir, m.To, m.Redis, func(done, total int) {
		bar.ChangeMax(total)
		_ = bar.Set(done) // only fails to draw
	})
	if err != nil {
		return err
	}
	fmt.Printf("Moved, and read back: %d assets, %d token records.\n"+
		"Give the services %s as their --secret-file, without which no owner token is good.\n", assets, tokens, filepath.Join(dir, "secret"))
	return nil
}
