package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// badDirs are data directories that the registry must not start on.
type badDirs struct {
	foreign string // a directory with a file that is not the registry's
	file    string // the path of a file instead of a directory
	newer   string // a data directory of a newer format
}

func makeBadDirs(t *testing.T, dir string) badDirs {
	t.Helper()
	d := badDirs{filepath.Join(dir, "foreign"), filepath.Join(dir, "file"), filepath.Join(dir, "newer")}
	for _, f := range []struct{ path, text string }{
		{filepath.Join(d.foreign, "letter.txt"), "dear"},
		{d.file, "text"},
		{filepath.Join(d.newer, "FORMAT"), "asset-registry data 99"},
	} {
		expect.OK(t, os.MkdirAll(filepath.Dir(f.path), 0o700))
		expect.OK(t, os.WriteFile(f.path, []byte(f.text), 0o600))
	}
	return d
}

func TestServeRefusesBadArgumentsAndDirectories(t *testing.T) {
	build(t)
	busy, used := freeAddr(t), filepath.Join(t.TempDir(), "used")
	standalone(t, busy, used, &processes.Output{})
	dir := t.TempDir()
	bad, fresh, missing := makeBadDirs(t, dir), filepath.Join(dir, "fresh"), filepath.Join(dir, "none.yaml")
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"an unknown flag", []string{"--data", fresh, "--colour=blue"}, "--colour"},
		{"a value that is no number", []string{"--data", fresh, "--max-body=many"}, "max-body"},
		{"a body limit of zero", []string{"--data", fresh, "--max-body=0"}, "--max-body"},
		{"a zone with summer time", []string{"--data", fresh, "--zone=Europe/Kyiv"}, "zone"},
		{"a base URL without a scheme", []string{"--data", fresh, "--base-url=registry"}, "--base-url"},
		{"a missing config file", []string{"--data", fresh, "--config", missing}, "none.yaml"},
		{"a missing keys file", []string{"--data", fresh, "--keys-file", missing}, "none.yaml"},
		{"a busy port", []string{"--data", fresh, "--addr", busy}, "another program listens there"},
		{"a port that is no number", []string{"--data", fresh, "--addr", "127.0.0.1:many"}, "many"},
		{"a port of metrics that is no number", []string{"--data", fresh, "--metrics-addr", "x"}, "--metrics-addr"},
		{"a busy port of metrics", []string{"--data", fresh, "--metrics-addr", busy}, "another program listens there"},
		{"a missing policy of the log", []string{"--data", fresh, "--log-policy", missing}, "none.yaml"},
		{"a missing file of keys of the log", []string{"--data", fresh, "--log-key-file", missing}, "none.yaml"},
		{"an address of Redis without slashes", []string{"--data", fresh, "--limits-redis", "redis:x"}, "the address of the Redis server is malformed"},
		{"a missing certificate", []string{"--data", fresh, "--tls-cert", missing, "--tls-key", missing}, "none.yaml"},
		{"a directory with other files", []string{"--data", bad.foreign}, "letter.txt"},
		{"a file instead of a directory", []string{"--data", bad.file}, "it is not a folder"},
		{"a directory below a file", []string{"--data", filepath.Join(bad.file, "x")}, "it is not a folder"},
		{"a directory without write permission", []string{"--data", "/proc/registry"}, "/proc"},
		{"a directory in use", []string{"--data", used}, "in use"},
		{"a newer format", []string{"--data", bad.newer}, "99"},
		{"an empty directory name", []string{"--data", ""}, "data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := 78
			if slices.Contains(notSettings, c.name) {
				code = 2
			}
			mustExit(t, code, c.says, append([]string{"serve", "--addr", freeAddr(t)}, c.args...)...)
			expect.FailsOf(t, "")(os.Stat(fresh))
			if entries, err := os.ReadDir(bad.foreign); err != nil || len(entries) != 1 {
				t.Errorf("got %v, %v in the foreign directory, want its one file", entries, err)
			}
		})
	}
	t.Run("an unknown command", func(t *testing.T) { mustExit(t, 2, "dance", "dance") })
}

// notSettings are refusals that a later start perhaps does not meet.
var notSettings = []string{"a busy port", "a busy port of metrics", "a directory without write permission",
	"a directory in use"}

// mustExit runs the registry. It must exit with a code, and print one line on stderr that contains the given text.
func mustExit(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "registry"), args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("got exit code %d, %v, want %d", got, err, code)
	}
	if lines := strings.Count(stderr.String(), "\n"); lines != 1 ||
		!strings.Contains(stderr.String(), says) || stdout.Len() != 0 {
		t.Errorf("got stderr %q and stdout %q, want one line with %q and nothing", stderr.String(), stdout.String(),
			says)
	}
}

// TestTheGreetingHasARequestThatWorks runs the curl command that the registry prints at its start. The command must
// create an asset.
func TestTheGreetingHasARequestThatWorks(t *testing.T) {
	build(t)
	addr, output := freeAddr(t), &processes.Output{}
	started := time.Now()
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), output)
	t.Logf("the first start took %v", time.Since(started))
	greeting := await(t, output, "README.md")
	_, command, found := strings.Cut(greeting, "\n\n  curl ")
	command, _, _ = strings.Cut(command, "\n")
	if !found || !strings.Contains(greeting, "http://"+addr) {
		t.Fatalf("got the greeting %q, want a curl command and the address %s", greeting, addr)
	}
	text, err := exec.Command("sh", "-c", "curl -sS -w '%{http_code}' "+command).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "201") {
		t.Errorf("got %s, %v from the greeting's request, want status 201", text, err)
	}
}
