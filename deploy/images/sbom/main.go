// Command sbom prints what a Go program was built from, as Go itself has noted
// it in the program, in the form that scanners read: CycloneDX 1.6.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: sbom PROGRAM")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	list, err := describe(info)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}

// document and what is in it are those parts of CycloneDX that we have something
// to say in.
type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component  component  `json:"component"`
	Properties []property `json:"properties,omitempty"`
}

type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// describe lists the program, Go's library and all modules that are linked.
func describe(info *debug.BuildInfo) (document, error) {
	d := document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	d.Metadata.Component = newComponent("application", info.Path, info.Main.Version)
	for _, s := range info.Settings {
		d.Metadata.Properties = append(d.Metadata.Properties, property{"go:build:" + s.Key, s.Value})
	}
	d.Components = []component{newComponent("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		sum := module.Sum
		version := module.Version
		if module.Replace != nil { // one of ours is replaced by a directory, which has no sum
			sum, version = module.Replace.Sum, cmp.Or(module.Replace.Version, version)
		}
		c := newComponent("library", module.Path, version)
		if sum != "" {
			digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
			if err != nil {
				return d, fmt.Errorf("the sum of %s: %w", module.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest)}}
		}
		d.Components = append(d.Components, c)
	}
	return d, nil
}

func newComponent(kind, path, version string) component {
	if version == "(devel)" { // no version at all
		version = ""
	}
	purl := "pkg:golang/" + path
	if version != "" {
		purl += "@" + version
	}
	return component{Ref: purl, Type: kind, Name: path, Version: version, PURL: purl}
}
