package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// clients makes the packages of the clients in the directory out/clients.
func (r *release) clients(ctx context.Context) error {
	if err := r.goClient(); err != nil {
		return fmt.Errorf("the Go client: %w", err)
	}
	if err := r.pythonClient(ctx); err != nil {
		return fmt.Errorf("the Python client: %w", err)
	}
	if err := r.typescriptClient(ctx); err != nil {
		return fmt.Errorf("the TypeScript client: %w", err)
	}
	return nil
}

// goModule is the path of the Go client. Nobody can register a domain below "example", so nobody else can use
// this path.
const goModule = "asset-registry.example/client"

// goClient makes a folder that the Go command can use as a module proxy.
func (r *release) goClient() (err error) {
	source, err := r.copy("go", ".")
	if err != nil {
		return err
	}
	folder := filepath.Join(r.out, "clients", "go", goModule, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	v := module.Version{Path: goModule, Version: "v" + r.version}
	info, err := json.Marshal(map[string]any{"Version": v.Version, "Time": r.date.Format(time.RFC3339)})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list": []byte(v.Version + "\n"), v.Version + ".info": append(info, '\n'), v.Version + ".mod": mod,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(folder, v.Version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return zip.CreateFromDir(file, v, source)
}

// pythonClient makes a wheel, and the single file that programs may copy.
func (r *release) pythonClient(ctx context.Context) error {
	work, err := r.copy("python", "asset_registry.py", "py.typed", "pyproject.toml", "README.md")
	if err != nil {
		return err
	}
	const file = "asset_registry.py"
	if err := r.stamp(filepath.Join(work, file), "\n__version__ = \"", "\"\n"); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(work, file))
	if err != nil {
		return err
	}
	out := filepath.Join(r.out, "clients")
	if err := os.WriteFile(filepath.Join(out, file), text, 0o644); err != nil {
		return err
	}
	python := "python3"
	if path, err := exec.LookPath("/usr/bin/python3"); err == nil { // Debian installs hatchling for this Python
		python = path
	}
	epoch := "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.date.Unix(), 10)
	err = command(ctx, work, []string{epoch}, python, "-m", "hatchling", "build", "--target", "wheel", "--directory", out)
	if err != nil {
		return err
	}
	// hatchling writes a file that only its owner can read.
	return os.Chmod(filepath.Join(out, "asset_registry-"+r.version+"-py3-none-any.whl"), 0o644)
}

// typescriptClient makes the package for npm.
func (r *release) typescriptClient(ctx context.Context) error {
	work, err := r.copy("typescript", "src", "package.json", "package-lock.json", "tsconfig.json", "README.md")
	if err != nil {
		return err
	}
	if err := r.stamp(filepath.Join(work, "package.json"), "\"version\": \"", "\",\n"); err != nil {
		return err
	}
	if err := command(ctx, work, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	out := filepath.Join(r.out, "clients")
	return command(ctx, work, nil, "npm", "pack", "--loglevel=error", "--pack-destination", out)
}

// copy copies files of a client, and the licence, to a new directory, and returns the directory.
func (r *release) copy(client string, names ...string) (string, error) {
	work := filepath.Join(r.work, client)
	for _, name := range names {
		from, to := filepath.Join(r.source, "clients", client, name), filepath.Join(work, name)
		info, err := os.Stat(from)
		if err == nil && info.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
		} else if err == nil {
			err = copyFile(from, to, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	return work, copyFile(filepath.Join(r.source, "LICENSE"), filepath.Join(work, "LICENSE"), 0o644)
}

// copyFile copies a file, and makes the directory for the copy.
func copyFile(from, to string, mode os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, mode)
}

// stamp writes the version into a file: behind the first occurrence of the text in the parameter `before`, and in
// front of the text in the parameter `after`. It replaces everything between the two texts.
func (r *release) stamp(file, before, after string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, found := bytes.Cut(text, []byte(before))
	_, tail, ended := bytes.Cut(rest, []byte(after))
	if !found || !ended {
		return fmt.Errorf("%s has no version after %q", file, before)
	}
	stamped := bytes.Join([][]byte{head, []byte(before + r.version + after), tail}, nil)
	return os.WriteFile(file, stamped, 0o644)
}
