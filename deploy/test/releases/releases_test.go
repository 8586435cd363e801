package releases

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

const root = "../../.." // the root of the repository

var (
	bin        = flag.String("bin", "", "absolute path of the directory of the programs of this version")
	formerFlag = flag.String("former", "", "the same of the version before; by default they are built")
)

// programs is a directory of built programs that several tests use.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "registry-releases")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	return m.Run()
}

// run runs a program in dir and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	text, err := try(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: got %v, want success; it printed:\n%s", name, strings.Join(args, " "), err, text)
	}
	return text
}

// try runs a program that may fail.
func try(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // long enough for a build without a cache
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	return addr
}

// write writes a file, and creates its directory if needed.
func write(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.OK(t, os.WriteFile(path, text, mode))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	expect.OK(t, err)
	return text
}
