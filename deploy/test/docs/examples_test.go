package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// shellTimeout limits the time of one run of examples.
const shellTimeout = time.Minute

// examples returns the shell blocks in a section of a document, in their order.
func examples(t *testing.T, document, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	expect.OK(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("got no section %q in %s, want one", section, document)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(rest, -1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("got no example in %s, %q, want some", document, section)
	}
	return blocks
}

// place is a directory with a registry, which uses free addresses.
type place struct{ dir, addr, admin string }

// newPlace starts a registry in the same way as `make run`, with further arguments. It stops the registry when the
// test ends.
func newPlace(t *testing.T, args ...string) place {
	t.Helper()
	p := place{dir: t.TempDir()}
	for _, addr := range []*string{&p.addr, &p.admin} {
		free, err := porttest.FreeAddr()
		expect.OK(t, err)
		*addr = free
	}
	programs := build(t)
	expect.OK(t, os.Symlink(programs, filepath.Join(p.dir, "bin")))
	output := &processes.Output{}
	args = append([]string{"serve", "--sandbox", "--data", filepath.Join(p.dir, "data"), "--addr", p.addr,
		"--admin-addr", p.admin}, args...)
	process, err := processes.Start(t.Context(), p.addr, output, filepath.Join(programs, "registry"), args...)
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Errorf("stop the registry: %v; it printed: %s", err, output)
		}
	})
	return p
}

// run runs examples in one shell, with the addresses of the place, and returns the output. It fails the test if a
// request gets a status of 400 or more.
func (p place) run(t *testing.T, blocks []string) string {
	t.Helper()
	return p.runIn(t, "bash", blocks)
}

// runIn works like run, in the given shell. The shell zsh is interactive: it then knows no comments, as for readers who
// copy the examples.
func (p place) runIn(t *testing.T, name string, blocks []string) string {
	t.Helper()
	script := "set -eu\nif (set -o pipefail) 2>/dev/null; then set -o pipefail; fi\n" +
		"curl() { command curl --fail-with-body --show-error \"$@\"; }\n" + strings.Join(blocks, "\n") + "\n"
	script = strings.NewReplacer("127.0.0.1:8080", p.addr, "127.0.0.1:8079", p.admin).Replace(script)
	ctx, cancel := context.WithTimeout(t.Context(), shellTimeout)
	defer cancel()
	shell := exec.CommandContext(ctx, name, "-c", script)
	if name == "zsh" {
		shell = exec.CommandContext(ctx, name, "-f", "-i", "-s")
		shell.Stdin = strings.NewReader(script)
	}
	shell.Dir = p.dir
	text, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("got %v, want success; it printed:\n%s", err, text)
	}
	return string(text)
}

// TestFirstRequestsOfTheReadmeWork runs the requests in three shells.
func TestFirstRequestsOfTheReadmeWork(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			needtest.Commands(t, shell)
			firstRequests(t, shell)
		})
	}
}

// firstRequests runs the requests of the README in a shell, and looks for their answers.
func firstRequests(t *testing.T, shell string) {
	t.Helper()
	p := newPlace(t)
	blocks := append(examples(t, "README.md", "First requests"), `echo "ID=$ID"`)
	text := p.runIn(t, shell, blocks)
	id := regexp.MustCompile(`ID=([0-9a-f]{32})`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("got no id, want one in:\n%s", text)
	}
	for _, want := range []string{
		`"description": "Перший поверх, два входи"`,
		`"owner": "broker3"`,
		fmt.Sprintf(`{"id":%q,"dateModified":`, id[1]), // the asset's entry in the feed
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %s, want it in:\n%s", want, text)
		}
	}
}

func TestExamplesOfAdministrationWork(t *testing.T) {
	const guide = "docs/operations.md"
	text := newPlace(t).run(t, append(examples(t, guide, "Brokers and keys"), examples(t, guide, "registryctl")...))
	for _, want := range []string{
		`"name": "acme"`,
		`"accreditations": "13"`,
		`"action": "key.revoke"`,
		"production  broker    13      revoked", // in the table that registryctl prints
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %s, want it in:\n%s", want, text)
		}
	}
}
