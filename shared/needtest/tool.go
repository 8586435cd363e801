package needtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Tool returns the path of a program that only tests need, and builds it if it is missing.
// deploy/test/tool.sh has the names, and builds each outside the workspace, because they have
// hundreds of dependencies.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	tool := filepath.Join("deploy", "test", "tool.sh")
	for !exists(filepath.Join(dir, tool)) { // goes up to the root of the project
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatalf("no %s above the working directory", tool)
		}
		dir = up
	}
	cmd := exec.Command(filepath.Join(dir, tool), name)
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		tb.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(path))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
