// Command sbom prints the modules that a Go program was built from, as CycloneDX 1.6,
// the JSON that scanners read. It reads them from the build information that Go
// stores in the program.
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

// document is a CycloneDX document. It and its parts have only the fields that are
// used here.
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

// describe lists the program, Go's standard library and all linked modules.
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
		if module.Replace != nil { // a module of this project: it is a directory and has no sum
			sum, version = module.Replace.Sum, cmp.Or(module.Replace.Version, version)
		}
		c := newComponent("library", module.Path, version)
		if sum != "" {
			digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
			if err != nil {
				return d, fmt.Errorf("read the checksum of %s: %w", module.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest)}}
		}
		d.Components = append(d.Components, c)
	}
	return d, nil
}

// newComponent returns a component with its package URL. version may be empty.
func newComponent(kind, path, version string) component {
	if version == "(devel)" { // Go has no version for the module
		version = ""
	}
	purl := "pkg:golang/" + path
	if version != "" {
		purl += "@" + version
	}
	return component{Ref: purl, Type: kind, Name: path, Version: version, PURL: purl}
}
