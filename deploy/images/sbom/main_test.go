package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

func TestAProgramTellsWhatItIsMadeOf(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{os.Args[0]}, &out); err != nil { // this test is a program, too
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Format != "CycloneDX" || got.Metadata.Component.Type != "application" {
		t.Errorf("it is no list of a program: %s", out.String())
	}
	if !slices.ContainsFunc(got.Components, func(c component) bool { return c.Name == "std" && c.Version != "" }) {
		t.Error("Go's own library is missing")
	}
}

func TestModulesAreListedAsTheyAreLinked(t *testing.T) {
	got, err := describe(&debug.BuildInfo{GoVersion: "go1.26.1", Path: "ours/cmd", Main: debug.Module{Path: "ours", Version: "(devel)"}, Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:AAEC"},
		{Path: "ours/shared", Version: "v0.0.0", Replace: &debug.Module{Path: "../shared", Version: "(devel)"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []component{
		{Ref: "pkg:golang/std@1.26.1", Type: "library", Name: "std", Version: "1.26.1", PURL: "pkg:golang/std@1.26.1"},
		{Ref: "pkg:golang/example.org/a@v1.2.3", Type: "library", Name: "example.org/a", Version: "v1.2.3", PURL: "pkg:golang/example.org/a@v1.2.3", Hashes: []hash{{"SHA-256", "000102"}}},
		{Ref: "pkg:golang/ours/shared", Type: "library", Name: "ours/shared", PURL: "pkg:golang/ours/shared"},
	}
	if !slices.EqualFunc(got.Components, want, func(a, b component) bool {
		return a.PURL == b.PURL && a.Ref == b.Ref && a.Name == b.Name && a.Version == b.Version && slices.Equal(a.Hashes, b.Hashes)
	}) {
		t.Errorf("got %v\nwant %v", got.Components, want)
	}
	if _, err := describe(&debug.BuildInfo{Deps: []*debug.Module{{Path: "x", Sum: "h1:?"}}}); err == nil {
		t.Error("a broken sum is taken")
	}
}
