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

type files struct {
	Move moveFiles `cmd:"" help:"Copy the files of a stopped registry to a bucket, or back, and use them there."`
	Draw drawFiles `cmd:"" help:"Let the pictures of a stopped registry be drawn again that were given up."`
}

type moveFiles struct {
	Data string `default:"./data" help:"Data directory."`
	To   string `required:"" placeholder:"s3+https://HOST/BUCKET" help:"Bucket, or directory for the data directory."`
}

// directory is the target that means the data directory itself.
const directory = "directory"

func (m moveFiles) run(ctx context.Context) error {
	bucket := m.To
	if bucket == directory {
		bucket = ""
	}
	done, from, to, err := registry.MoveFiles(ctx, m.Data, bucket)
	if err != nil {
		return fmt.Errorf("%w; the registry still uses the files where they were; repeat the command to go on", err)
	}
	fmt.Printf("Copied and verified: %d files with %d bytes, and %d removals. %d files were there.\n"+
		"The registry uses them in %s.\n", done.Files, done.Bytes, done.Removals, done.Present, to)
	if from != to {
		fmt.Printf("Those in %s may be removed.\n", from)
	}
	return nil
}

type drawFiles struct {
	Data string   `default:"./data" help:"Data directory."`
	File []string `placeholder:"ID" help:"Only the pictures of these files, also if none was found in them."`
}

func (d drawFiles) run(ctx context.Context) error {
	files, err := registry.DrawFiles(ctx, d.Data, d.File)
	if err == nil {
		fmt.Printf("The pictures of %d files are drawn when the registry starts.\n", files)
	}
	return err
}
