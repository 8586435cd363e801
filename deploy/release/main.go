// Command release makes the files of a release (docs/operations.md, "Releases"):
//
//	go run ./deploy/release -version 0.1.0 [FLAG...] [PACKAGE...]
//
// The packages are the programs to build. Without packages, the command makes only the clients. Run it at the root
// of a clone. With the same releases of Go, npm and hatchling, the same commit gives the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"asset-registry/docs"
)

// release holds the facts that all parts of a release need.
type release struct {
	source    string    // root of the source tree
	out       string    // directory for the files of the release
	work      string    // directory for temporary files, removed at the end
	version   string    // such as "0.1.0"
	revision  string    // commit; ends in "-dirty" if files were changed after it
	date      time.Time // date of the commit, which is the time of all files within archives
	platforms []string  // such as "linux/amd64"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// form matches versions. A suffix is not allowed, because Python and npm write suffixes differently.
var form = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := release{}
	flags.StringVar(&r.version, "version", "", "version, such as 0.1.0")
	flags.StringVar(&r.out, "out", "dist", "directory of the files; it must be empty or absent")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64",
		"platforms of the programs; darwin gets registryctl only")
	clients := flags.Bool("clients", true, "make the clients, too")
	keyFile := flags.String("key", "", "file with the secret key that signs the checksums; it is made if it is absent")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !form.MatchString(r.version) {
		return fmt.Errorf("-version must be three numbers, such as 0.1.0, not %q", r.version)
	}
	r.platforms = strings.Split(*platforms, ",")
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if *clients {
		if err := r.clients(ctx); err != nil {
			return err
		}
	}
	if flags.NArg() == 0 {
		return nil
	}
	signer, err := signingKey(*keyFile)
	if err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	if err := r.programs(ctx, flags.Args()); err != nil {
		return err
	}
	for name, from := range map[string]fs.FS{
		"systemd": os.DirFS(filepath.Join(r.source, "deploy", "systemd")),
		"rules":   os.DirFS(filepath.Join(r.source, "deploy", "observability", "rules")),
		"docs":    docs.Files,
	} {
		if err := os.CopyFS(filepath.Join(r.out, name), from); err != nil {
			return err
		}
	}
	return r.sign(signer)
}

// prepare reads the state of the source tree, and makes the directories.
func (r *release) prepare(ctx context.Context) (err error) {
	if r.source, err = os.Getwd(); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if left, err := os.ReadDir(r.out); err == nil && len(left) > 0 {
		return fmt.Errorf("%s is not empty: remove it first", r.out)
	}
	if r.revision, err = git(ctx, "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty"); err != nil {
		return err
	}
	seconds, err := git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the last commit: %w", err)
	}
	r.date = time.Unix(epoch, 0).UTC()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	r.work, err = os.MkdirTemp("", "registry-release")
	return err
}

// git runs a Git command, and returns its output.
func git(ctx context.Context, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %v: %w", args, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// command runs a program in dir. The program's output goes to the error stream.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %v: %w", name, args, err)
	}
	return nil
}
