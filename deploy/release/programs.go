package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
)

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
			args, names = append(args, p), append(names, name)
		}
	}
	env := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + architecture}
	return names, command(ctx, r.source, env, "go", args...)
}
