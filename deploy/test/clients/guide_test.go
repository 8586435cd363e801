package clients

import (
	"crypto/sha256"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/shared/needtest"
)

// guide writes the program in a language of a guide of the documentation page to a file of dir, and
// asset.json of the first guide beside it.
func (s *stage) guide(guide, language, dir, name string) {
	s.t.Helper()
	page := s.get("/docs")
	part := func(text, from, to string) string {
		_, rest, found := strings.Cut(text, from)
		got, _, ended := strings.Cut(rest, to)
		if !found || !ended {
			s.t.Fatalf("got no %s on the page, want it", from)
		}
		text = html.UnescapeString(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(got, ""))
		return strings.ReplaceAll(text, "http://"+s.addr, s.api.URL)
	}
	write(s.t, dir, "asset.json", part(page, `<span class="body">`, "</span>"))
	_, text, _ := strings.Cut(page, `<section class="guide" aria-labelledby="`+guide+`">`)
	write(s.t, dir, name, part(text, `<pre class="`+language+`"><code>`, "</code></pre>"))
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

// checkSent runs a program that gives an asset a document with its file, and checks what it has done.
func (s *stage) checkSent(dir string, run func() string) {
	s.t.Helper()
	broker, err := client.New(client.Config{URL: s.api.URL, Key: "broker"})
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := broker.Create(s.t.Context(), number("1"))
	if err != nil {
		s.t.Fatal(err)
	}
	id, token := made.Asset.ID, made.Access.Token
	if _, err := broker.Publish(s.t.Context(), id, client.Write{Token: token}); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, dir, "created.json", fmt.Sprintf(`{"data":{"id":%q},"access":{"token":%q}}`, id, string(token)))
	write(s.t, dir, "plan.pdf", string(plan))
	address, sum, _ := strings.Cut(strings.TrimSpace(run()), " ")
	if want := fmt.Sprintf("%x", sha256.Sum256(plan)); sum != want {
		s.t.Errorf("the program printed the SHA-256 %q, want %s", sum, want)
	}
	if got := s.get("/api/2.5/assets/" + id + "/documents"); !strings.Contains(got, `"url":"`+address+`"`) {
		s.t.Errorf("got no document with the address %q, want one in %s", address, got)
	}
}

func TestPythonProgramsOfTheGuides(t *testing.T) {
	needtest.Commands(t, "python3")
	s, dir := newStage(t, 0), t.TempDir()
	run := func(name string) func() string {
		return func() string {
			return program(t, dir, append(s.env(), absolutePython(t)), "python3", "-W", "error", name)
		}
	}
	s.guide("recovery", "python", dir, "load.py")
	s.checkLoaded(dir, run("load.py"))
	s.guide("documents", "python", dir, "send.py")
	s.checkSent(dir, run("send.py"))
}

func TestTypeScriptProgramsOfTheGuides(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	installed, _ := compiled(t)
	s, dir := newStage(t, 0), t.TempDir()
	if err := os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	s.guide("recovery", "ts", dir, "load.mts")
	s.guide("documents", "ts", dir, "send.mts")
	write(t, dir, "node.d.ts", `declare module "node:fs" {
  export function existsSync(name: string): boolean;
  export function readFileSync(name: string): Uint8Array<ArrayBuffer>;
  export function readFileSync(name: string, encoding: "utf8"): string;
  export function renameSync(from: string, to: string): void;
  export function writeFileSync(name: string, text: string, options: { mode: number; flush: boolean }): void;
}
`)
	program(t, dir, nil, "node", "node_modules/asset-registry/node_modules/typescript/bin/tsc", "--strict",
		"--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "load.mts", "send.mts", "node.d.ts")
	s.checkLoaded(dir, func() string { return program(t, dir, nil, "node", "load.mjs") })
	s.checkSent(dir, func() string { return program(t, dir, nil, "node", "send.mjs") })
}

func TestGoProgramsOfTheGuides(t *testing.T) {
	s, dir := newStage(t, 0), t.TempDir()
	path, err := filepath.Abs("../../../clients/go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "go.mod", "module guide\n\ngo 1.26\n\nrequire asset-registry.example/client v0.0.0\n\n"+
		"replace asset-registry.example/client => "+path+"\n")
	build := func(guide, name string) func() string {
		s.guide(guide, "go", dir, name+".go")
		env := []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off"}
		program(t, dir, env, "go", "build", "-o", name, name+".go")
		return func() string { return program(t, dir, nil, filepath.Join(dir, name)) }
	}
	s.checkLoaded(dir, build("recovery", "load"))
	s.checkSent(dir, build("documents", "send"))
}
