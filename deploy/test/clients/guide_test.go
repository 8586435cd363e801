package clients

import (
	"crypto/sha256"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// The variable `continued` names guides and examples. Each example continues where the one before it ended. The
// variable `load` names the second example of the guide "recovery", which is a whole program.
var (
	continued = []string{"first-asset", "tokens", "lots", "deletion", "recovery/0", "feed", "webhooks", "errors"}
	load      = "recovery/1"
)

// program returns all examples in a language from the given guides of the documentation page, as one program. A name
// such as "recovery/0" stands for one example of a guide. It writes the file asset.json of the first guide to dir.
func (s *stage) program(language, dir string, guides ...string) string {
	s.t.Helper()
	page := s.get("/docs")
	write(s.t, dir, "asset.json", s.plain(s.between(page, `<span class="body">`, "</span>")[0]))
	var program strings.Builder
	for _, guide := range guides {
		guide, number, isOne := strings.Cut(guide, "/")
		section := s.between(page, `<section class="guide" aria-labelledby="`+guide+`">`, "</section>")[0]
		for i, example := range s.between(section, `<pre class="`+language+`"><code>`, "</code></pre>") {
			if isOne && number != strconv.Itoa(i) {
				continue
			}
			program.WriteString(s.plain(example) + "\n")
		}
	}
	return program.String()
}

// The method `between` returns parts of a page. Each part begins behind an occurrence of the text `from`, and ends
// before the next occurrence of the text `to`.
func (s *stage) between(page, from, to string) (texts []string) {
	s.t.Helper()
	for _, rest := range strings.Split(page, from)[1:] {
		text, _, _ := strings.Cut(rest, to)
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		s.t.Fatalf("got no %s on the page, want it", from)
	}
	return texts
}

// plain returns the text of an example as a reader would copy it, with the address of the proxy.
func (s *stage) plain(example string) string {
	text := html.UnescapeString(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(example, ""))
	return strings.ReplaceAll(text, "http://"+s.addr, s.api.URL)
}

// checkContinued checks the output of the examples in the continued guides.
func (s *stage) checkContinued(printed string) {
	s.t.Helper()
	printed = regexp.MustCompile(`\b[0-9a-f]{32}\b`).ReplaceAllString(printed, "ID")
	const want = "pending\nbroker3\nbroker\nverification\nactive\ncomplete\ndeleted\ndraft\n" +
		"ID pending\nID complete\nID deleted\nlive pending\ndisabled\n"
	if faults, found := strings.CutPrefix(printed, want); !found || !strings.Contains("\n"+faults, "\ntitle ") {
		s.t.Errorf("the examples printed %q, want %q and the fault of the title", printed, want)
	}
}

// checkLoaded runs a program that loads two rows. It runs the program twice, and then checks the registry.
func (s *stage) checkLoaded(dir string, run func() string) {
	s.t.Helper()
	for range 2 {
		if got, want := run(), "lot-1 pending\nlot-2 pending\n"; got != want {
			s.t.Errorf("the program printed %q, want %q", got, want)
		}
	}
	expect.Equal(s.t, strings.Count(s.get("/api/2.5/assets"), `"id":`), 2, "published assets")
	for _, name := range []string{"lot-1", "lot-2"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			s.t.Errorf("%s: got %v, %v, want a file that only its owner reads", name, info, err)
		}
	}
}

// checkSent runs a program that gives an asset a document with its file, and checks the registry afterwards.
func (s *stage) checkSent(dir string, run func() string) {
	s.t.Helper()
	broker, err := client.New(client.Config{URL: s.api.URL, Key: "broker"})
	expect.OK(s.t, err)
	made, err := broker.Create(s.t.Context(), number("1"))
	expect.OK(s.t, err)
	id, token := made.Asset.ID, made.Access.Token
	expect.Get(broker.Publish(s.t.Context(), id, client.Write{Token: token}))(s.t)
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
	write(t, dir, "load.py", s.program("python", dir, load))
	s.checkLoaded(dir, run("load.py"))
	write(t, dir, "send.py", s.program("python", dir, "documents"))
	s.checkSent(dir, run("send.py"))

	s = newStage(t, 0)
	write(t, dir, "guides.py", s.program("python", dir, continued...))
	s.checkContinued(run("guides.py")())
}

func TestTypeScriptProgramsOfTheGuides(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	installed, _ := compiled(t)
	s, dir := newStage(t, 0), t.TempDir()
	expect.OK(t, os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")))
	other := newStage(t, 0)
	write(t, dir, "load.mts", s.program("ts", dir, load))
	write(t, dir, "send.mts", s.program("ts", dir, "documents"))
	write(t, dir, "guides.mts", other.program("ts", dir, continued...))
	write(t, dir, "node.d.ts", `declare module "node:fs" {
  export function existsSync(name: string): boolean;
  export function readFileSync(name: string): Uint8Array<ArrayBuffer>;
  export function readFileSync(name: string, encoding: "utf8"): string;
  export function renameSync(from: string, to: string): void;
  export function writeFileSync(name: string, text: string, options: { mode: number; flush: boolean }): void;
}
`)
	program(t, dir, nil, "node", "node_modules/asset-registry/node_modules/typescript/bin/tsc", "--strict",
		"--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "load.mts", "send.mts", "guides.mts",
		"node.d.ts")
	s.checkLoaded(dir, func() string { return program(t, dir, nil, "node", "load.mjs") })
	s.checkSent(dir, func() string { return program(t, dir, nil, "node", "send.mjs") })
	other.checkContinued(program(t, dir, nil, "node", "guides.mjs"))
}

func TestGoProgramsOfTheGuides(t *testing.T) {
	s, dir := newStage(t, 0), t.TempDir()
	path, err := filepath.Abs("../../../clients/go")
	expect.OK(t, err)
	write(t, dir, "go.mod", "module guide\n\ngo 1.26\n\nrequire asset-registry.example/client v0.0.0\n\n"+
		"replace asset-registry.example/client => "+path+"\n")
	build := func(name, text string) func() string {
		write(t, dir, name+".go", text)
		env := []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off"}
		program(t, dir, env, "go", "build", "-o", name, name+".go")
		return func() string { return program(t, dir, nil, filepath.Join(dir, name)) }
	}
	s.checkLoaded(dir, build("load", s.program("go", dir, load)))
	s.checkSent(dir, build("send", s.program("go", dir, "documents")))

	s = newStage(t, 0)
	s.checkContinued(build("guides", fmt.Sprintf(goProgram, s.program("go", dir, continued...)))())
}

// goProgram is a Go program that consists of the Go examples in the continued guides.
const goProgram = `package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"asset-registry.example/client"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
%s
	return nil
}
`
