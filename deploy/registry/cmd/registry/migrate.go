package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/deploy/registry"
)

type migrate struct {
	From  string `required:"" placeholder:"file:DIR" help:"Data directory."`
	To    string `required:"" placeholder:"mongodb://..." help:"MongoDB database for the assets. It must hold none."`
	Redis string `required:"" placeholder:"redis://..." help:"Redis for the token records."`
}

func (m migrate) run(ctx context.Context) error {
	dir, isFile := strings.CutPrefix(m.From, "file:")
	if !isFile || dir == "" {
		return fmt.Errorf("--from must be %q and a directory", "file:")
	}
	show, clearLine := progress()
	done, err := registry.Migrate(ctx, dir, m.To, m.Redis, show)
	clearLine()
	if err != nil {
		return err
	}
	fmt.Printf("Copied and verified: %d assets, %d token records, %d files.\n"+
		"Start the services with --secret-file %s: without it no owner token is valid.\n",
		done.Assets, done.Tokens, done.Files, filepath.Join(dir, "secret"))
	if done.Files > 0 {
		fmt.Printf("Start filesvc with --data %s, or a copy of it: it has the bytes of the files.\n", done.Place)
	}
	return nil
}

const progressInterval = 100 * time.Millisecond

// progress returns functions that show and remove a line with the progress on the standard error output. If
// that is not a terminal, both functions do nothing.
func progress() (show func(done, total int), clearLine func()) {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int, int) {}, func() {}
	}
	var shown time.Time
	show = func(done, total int) {
		if time.Since(shown) >= progressInterval {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "\r\x1b[Kcopy and verify: %d of %d", done, total)
		}
	}
	return show, func() { fmt.Fprint(os.Stderr, "\r\x1b[K") }
}
