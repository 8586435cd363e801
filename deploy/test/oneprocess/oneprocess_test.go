package oneprocess

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// patience is how long a test waits for something that should take a moment.
const patience = 40 * time.Second

var bin = flag.String("bin", "", "absolute path of the directory of the programs")

func TestMain(m *testing.M) {
	flag.Parse()
	if *bin == "" {
		fmt.Fprintln(os.Stderr, "name the directory of the programs: -bin DIR")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

func freeAddr(t *testing.T) string {
	t.Helper()
	return expect.Get(porttest.FreeAddr())(t)
}

// start starts a program that accepts connections at addr, and kills it when the test ends.
func start(t *testing.T, addr string, output *processes.Output, program string, args ...string) *processes.Process {
	t.Helper()
	p := expect.Get(processes.StartAny(t.Context(), addr, output, program, args...))(t)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed %s", program, output)
		}
	})
	return p
}

func stop(t *testing.T, p *processes.Process, output *processes.Output) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Fatalf("stop: got %v, want exit code 0; it printed %s", err, output)
	}
}

// run runs a program, and returns its output and its exit code.
func run(t *testing.T, program string, args ...string) (text string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	printed, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	return string(printed), cmd.ProcessState.ExitCode()
}

// The function `must` runs a program that must succeed, and returns its output.
func must(t *testing.T, program string, args ...string) string {
	t.Helper()
	text, code := run(t, program, args...)
	if code != 0 {
		t.Fatalf("%s %s: got exit code %d, want 0; it printed %s", program, strings.Join(args, " "), code, text)
	}
	return text
}

func registry(name string) string { return filepath.Join(*bin, name) }

// The function `soon` waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// get sends a GET, and returns the status and the body of the answer.
func get(t *testing.T, client *http.Client, url string) (status int, text string) {
	t.Helper()
	r := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}
