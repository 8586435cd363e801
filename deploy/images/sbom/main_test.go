package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		t.Errorf("got %s, want a CycloneDX list of an application", out.String())
	}
	if !slices.ContainsFunc(got.Components, func(c component) bool { return c.Name == "std" && c.Version != "" }) {
		t.Errorf("got %v, want Go's standard library in it", got.Components)
	}
}

func TestModulesAreListedAsTheyAreLinked(t *testing.T) {
	got, err := describe(&debug.BuildInfo{
		GoVersion: "go1.26.1",
		Path:      "ours/cmd",
		Main:      debug.Module{Path: "ours", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:AAEC"},
			{Path: "ours/shared", Version: "v0.0.0", Replace: &debug.Module{Path: "../shared", Version: "(devel)"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []component{
		{
			Ref: "pkg:golang/std@1.26.1", Type: "library", Name: "std", Version: "1.26.1",
			PURL: "pkg:golang/std@1.26.1",
		},
		{
			Ref: "pkg:golang/example.org/a@v1.2.3", Type: "library", Name: "example.org/a", Version: "v1.2.3",
			PURL: "pkg:golang/example.org/a@v1.2.3", Hashes: []hash{{"SHA-256", "000102"}},
		},
		{Ref: "pkg:golang/ours/shared", Type: "library", Name: "ours/shared", PURL: "pkg:golang/ours/shared"},
	}
	if diff := cmp.Diff(want, got.Components); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if _, err := describe(&debug.BuildInfo{Deps: []*debug.Module{{Path: "x", Sum: "h1:?"}}}); err == nil {
		t.Error("a broken checksum: got no error")
	}
}
