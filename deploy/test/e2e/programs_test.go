package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// bin is the directory of the built programs. TestMain creates it, and build fills it.
var bin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// By default, a program with the race detector waits for a second before it exits.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "registry-bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	return m.Run()
}

// buildOnce builds the programs on its first call.
var buildOnce = sync.OnceValue(func() error { return processes.Build(context.Background(), bin) })

// build builds the programs on its first call.
func build(t *testing.T) {
	t.Helper()
	expect.OK(t, buildOnce())
}

func freeAddr(t *testing.T) string {
	t.Helper()
	return expect.Get(porttest.FreeAddr())(t)
}

// killAtEnd kills a process when the test ends, and checks its output for reports of the race detector.
func killAtEnd(t *testing.T, p *processes.Process, output *processes.Output) {
	t.Cleanup(func() {
		expect.Try(t, p.Kill())
		checkRaces(t, output)
	})
}

// standalone starts the registry as one process and kills it when the test ends.
func standalone(t *testing.T, addr, dir string, output *processes.Output, args ...string) *processes.Process {
	t.Helper()
	build(t)
	p := expect.Get(processes.Standalone(t.Context(), bin, addr, dir, output, args...))(t)
	killAtEnd(t, p, output)
	return p
}

// split starts the services on dir, each as a process, and stops them when the test ends.
func split(t *testing.T, dir string, stores processes.Stores, output *processes.Output,
	args ...string) *processes.Split {
	t.Helper()
	build(t)
	s := expect.Get(processes.StartSplit(t.Context(), bin, freeAddr(t), dir, stores, output, args...))(t)
	t.Cleanup(func() {
		expect.Try(t, s.Stop())
		checkRaces(t, output)
	})
	return s
}

// await waits up to 10 s until the output contains a text, and returns the whole output.
func await(t *testing.T, output *processes.Output, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := output.Await(ctx, text); err != nil {
		t.Fatalf("%v; the output is %s", err, output)
	}
	return output.String()
}

// checkRaces fails the test if the race detector of a program has reported a race.
func checkRaces(t *testing.T, output *processes.Output) {
	t.Helper()
	if _, race, found := strings.Cut(output.String(), "WARNING: DATA RACE"); found {
		t.Errorf("got a data race, want none: %s", race)
	}
}

// command runs a command of the registry and returns its output.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	build(t)
	text, err := exec.Command(filepath.Join(bin, "registry"), args...).CombinedOutput()
	return string(text), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	text, err := command(t, args...)
	if err != nil {
		t.Fatalf("registry %s: %v: %s", strings.Join(args, " "), err, text)
	}
	return text
}

// mustRefuse runs a command that must exit with 2, and must print the reason in one line. This line must contain
// the text in the parameter `says`.
func mustRefuse(t *testing.T, says string, args ...string) {
	t.Helper()
	text, err := command(t, args...)
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || strings.Count(text, "\n") != 1 ||
		!strings.Contains(text, says) {
		t.Errorf("registry %s: got %v and %q, want exit code 2 and one line with %q",
			strings.Join(args, " "), err, text, says)
	}
}
