package clients

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"asset-registry/shared/needtest"
)

// loads is the guide of the documentation page whose programs load rows.
const loads = `<section class="guide" aria-labelledby="recovery">`

// guide writes the program in a language of that guide to a file of dir, and asset.json of the first
// guide beside it.
func (s *stage) guide(dir, language, name string) {
	s.t.Helper()
	page := s.get("/docs")
	part := func(text, from, to string) string {
		_, rest, found := strings.Cut(text, from)
		got, _, ended := strings.Cut(rest, to)
		if !found || !ended {
			s.t.Fatalf("got no %s on the page, want it", from)
		}
		text = html.UnescapeString(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(got, ""))
		return strings.ReplaceAll(text, "http://127.0.0.1:8080", s.api.URL)
	}
	write(s.t, dir, "asset.json", part(page, `<span class="body">`, "</span>"))
	_, guide, _ := strings.Cut(page, loads)
	write(s.t, dir, name, part(guide, `<pre class="`+language+`"><code>`, "</code></pre>"))
}

// checkLoaded runs a program that loads two rows, twice, and checks what it has done.
func (s *stage) checkLoaded(dir string, run func() string) {
	s.t.Helper()
	for range 2 {
		if got, want := run(), "lot-1 pending\nlot-2 pending\n"; got != want {
			s.t.Errorf("the program printed %q, want %q", got, want)
		}
	}
	if got := strings.Count(s.get("/api/2.5/assets"), `"id":`); got != 2 {
		s.t.Errorf("got %d published assets, want 2", got)
	}
	for _, name := range []string{"lot-1", "lot-2"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			s.t.Errorf("%s: got %v, %v, want a file that only its owner reads", name, info, err)
		}
	}
}

func TestPythonProgramOfTheGuideLoadsRowsOnce(t *testing.T) {
	needtest.Commands(t, "python3")
	s, dir := newStage(t, 0), t.TempDir()
	s.guide(dir, "python", "load.py")
	s.checkLoaded(dir, func() string {
		return program(t, dir, append(s.env(), absolutePython(t)), "python3", "-W", "error", "load.py")
	})
}

func TestTypeScriptProgramOfTheGuideLoadsRowsOnce(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	installed, _ := compiled(t)
	s, dir := newStage(t, 0), t.TempDir()
	if err := os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	s.guide(dir, "ts", "load.mts")
	write(t, dir, "node.d.ts", `declare module "node:fs" {
  export function existsSync(name: string): boolean;
  export function readFileSync(name: string, encoding: "utf8"): string;
  export function renameSync(from: string, to: string): void;
  export function writeFileSync(name: string, text: string, options: { mode: number; flush: boolean }): void;
}
`)
	program(t, dir, nil, "node", "node_modules/asset-registry/node_modules/typescript/bin/tsc", "--strict",
		"--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "load.mts", "node.d.ts")
	s.checkLoaded(dir, func() string { return program(t, dir, nil, "node", "load.mjs") })
}

func TestGoProgramOfTheGuideLoadsRowsOnce(t *testing.T) {
	s, dir := newStage(t, 0), t.TempDir()
	s.guide(dir, "go", "main.go")
	client, err := filepath.Abs("../../../clients/go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "go.mod", "module load\n\ngo 1.26\n\nrequire asset-registry.example/client v0.0.0\n\n"+
		"replace asset-registry.example/client => "+client+"\n")
	program(t, dir, []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off"}, "go", "build", "-o", "load", ".")
	s.checkLoaded(dir, func() string { return program(t, dir, nil, filepath.Join(dir, "load")) })
}
