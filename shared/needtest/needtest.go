// Package needtest skips the tests that a machine cannot run, and reports each of them, so that no skip is
// silent.
package needtest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Commands skips the test unless all commands are installed.
func Commands(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Missing(t, name, err)
		}
	}
}

// Missing skips the test, because the machine lacks a command or a privilege that
// deploy/test/needs.txt names. The reason is added to the file that NOT_TESTED names, which
// deploy/test/stages.sh prints. With CI set, as in the landing gate, the test fails instead.
func Missing(t testing.TB, need string, reason any) {
	t.Helper()
	if ci := os.Getenv("CI"); ci != "" && ci != "false" {
		t.Fatalf("%s is missing, and CI is set: %v", need, reason)
	}
	if list := os.Getenv("NOT_TESTED"); list != "" {
		file, err := os.OpenFile(list, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(file, "%s: %s is missing: %v\n", t.Name(), need, reason)
			file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Skipf("%s is missing: %v", need, reason)
}
