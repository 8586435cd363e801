// Command release makes the files of a release (docs/operations.md, "Releases"):
//
//	go run ./deploy/release -version 0.1.0 [FLAG...] [PACKAGE...]
//
// The packages are the programs to build. Without packages, the command makes only the clients. Run it at the root
// of a clone. With the same releases of Go, npm and hatchling, the same commit gives the same bytes.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/sumdb/note"

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
	platforms := flags.String("platforms",
		"linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"platforms of the programs; darwin and windows get registryctl only")
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

// sbomTool is the program that writes the list of contents of a program (CycloneDX). deploy/images/build.sh
// uses the same release of it.
const sbomTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// programs builds the programs of each platform, their lists of contents and their images.
func (r *release) programs(ctx context.Context, packages []string) error {
	env := []string{"GOBIN=" + filepath.Join(r.work, "tools"), "GOWORK=off", "CGO_ENABLED=0"}
	if err := command(ctx, r.source, env, "go", "install", sbomTool); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.out, "sbom"), 0o755); err != nil {
		return err
	}
	for _, platform := range r.platforms {
		system, architecture, _ := strings.Cut(platform, "/")
		names, err := r.build(ctx, system, architecture, packages)
		if err != nil {
			return err
		}
		for _, name := range names {
			program := filepath.Join(r.out, system+"-"+architecture, name)
			list := filepath.Join(r.out, "sbom", name+"-"+system+"-"+architecture+".cdx.json")
			err := command(ctx, r.source, nil, filepath.Join(r.work, "tools", "cyclonedx-gomod"), "bin", "-json", "-std",
				"-noserial", "-notimestamp", "-version", r.version, "-output", list, program)
			if err == nil && system == "linux" {
				err = r.image(name, architecture, program, list)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds the programs of one platform, and returns their names.
func (r *release) build(ctx context.Context, system, architecture string, packages []string) ([]string, error) {
	var names []string
	folder := filepath.Join(r.out, system+"-"+architecture) + string(filepath.Separator)
	const build = "asset-registry/shared/buildinfo."
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags=nomsgpack", "-o", folder,
		"-ldflags=-s -w -buildid= -X " + build + "version=" + r.version + " -X " + build + "revision=" + r.revision}
	for _, p := range packages {
		if name := path.Base(p); system == "linux" || name == "registryctl" {
			if system == "windows" {
				name += ".exe"
			}
			args, names = append(args, p), append(names, name)
		}
	}
	env := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + architecture}
	return names, command(ctx, r.source, env, "go", args...)
}

const (
	// sums is the file of checksums. It is a signed note; sha256sum can read it too.
	sums = "SHA256SUMS"
	// keyName is the name of the key in signatures.
	keyName = "asset-registry.example/release"
)

// sign adds the changelog and the licence, writes the checksums of all files, and signs them.
func (r *release) sign(signer note.Signer) error {
	for _, name := range []string{"CHANGELOG.md", "LICENSE"} {
		if err := copyFile(filepath.Join(r.source, name), filepath.Join(r.out, name), 0o644); err != nil {
			return err
		}
	}
	var text strings.Builder
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error { // ordered by name
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: text.String()}, signer)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, sums), signed, 0o644)
}

// signingKey reads the secret key from a file. If the file does not exist, it makes a key, and prints how to
// check signatures of this key.
func signingKey(file string) (note.Signer, error) {
	if file == "" {
		return nil, errors.New("-key names no file")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		secret, public, err := note.GenerateKey(rand.Reader, keyName)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file+".pub", []byte(public+"\n"), 0o644); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "made the key %s; publish %s.pub, and keep the key\n", file, file)
		return note.NewSigner(secret)
	}
	if err != nil {
		return nil, err
	}
	return note.NewSigner(strings.TrimSpace(string(text)))
}
