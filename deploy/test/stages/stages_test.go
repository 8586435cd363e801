// Package stages tests deploy/test/stages.sh, which runs the stages of the landing gate, and the lists of tests in
// the Makefile and in scripts.
package stages

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

const root = "../../.."

// rules is a Makefile with the targets that the tests use. The parent process of a recipe's shell is make, and the
// parent of make is the shell of the lane.
const rules = `
.PHONY: good other bare silent fails pipe kill full slow
good other:
	@echo all is well
bare: good
silent:
	@true
fails:
	@echo it fails; exit 1
pipe:
	@false | cat; echo after
list:
	@false; echo after
kill:
	@echo before; kill -9 $$(cut -d' ' -f4 /proc/$$PPID/stat); sleep 60
own:
	@echo before; kill -9 $$PPID
full:
	@echo before; head -c 4M /dev/zero >$$TMPDIR/filler || true
slow:
	@echo it begins; touch $$BEGUN; sleep 60
lacks:
	@$$MISSING one x 'there is none'
no-tests-run:
	@echo 'ok  	asset-registry/x	0.003s [no tests to run]'
no-test-files:
	@echo '?   	asset-registry/x	[no test files]'
no-fuzz-target:
	@echo 'testing: warning: no fuzz tests to fuzz'
no-packages:
	@echo 'go: warning: "./x/..." matched no packages'
`

// script returns a command that runs stages.sh with the Makefile above.
func script(ctx context.Context, t *testing.T, dir string, lanes ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs("../stages.sh")
	expect.OK(t, err)
	place := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(place, "Makefile"), []byte(rules), 0o600))
	cmd := exec.CommandContext(ctx, path, lanes...)
	cmd.Dir = place
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "MAKEFLAGS=", "BEGUN="+filepath.Join(dir, "begun"))
	return cmd
}

// end returns the exit status of a command from its error.
func end(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

func TestAStageThatDidNotPassIsRed(t *testing.T) {
	for _, c := range []struct {
		name, lanes string // the lanes are separated by "|"
		status      int
		want        string // the lines of the table, without times
	}{
		{"all pass", "good|other", 0, "good passed, other passed"},
		{"one fails", "fails good|other", 1, "fails FAILED, good passed, other passed, FAILED: fails"},
		{"a command before a pipe fails", "pipe", 1, "pipe FAILED, FAILED: pipe"},
		{"a command before another fails", "list", 1, "list FAILED, FAILED: list"},
		{"a stage prints nothing", "silent|good", 1, "silent FAILED: it printed nothing, good passed, FAILED: silent"},
		{"make is killed", "own good", 1, "own FAILED, good passed, FAILED: own"},
		{"the first lane is killed", "kill other|good", 1,
			"kill lost: its lane was killed, other did not run, good passed, FAILED: kill other"},
		{"a later lane is killed", "other|kill fails|good", 1,
			"other passed, kill lost: its lane was killed, fails did not run, good passed, FAILED: kill fails"},
		{"no test is run", "no-tests-run", 1, "no-tests-run FAILED: a test looked at nothing, FAILED: no-tests-run"},
		{"a package has no tests", "no-test-files", 1,
			"no-test-files FAILED: a test looked at nothing, FAILED: no-test-files"},
		{"no fuzz target is run", "no-fuzz-target", 1,
			"no-fuzz-target FAILED: a test looked at nothing, FAILED: no-fuzz-target"},
		{"a pattern matches no package", "no-packages", 1,
			"no-packages FAILED: a test looked at nothing, FAILED: no-packages"},
		{"there is no lane", "", 2, ""},
		{"the first lane is empty", " |good", 2, ""},
		{"a later lane is empty", "good||other", 2, ""},
		{"a target has no recipe", "good|bare", 2, ""},
		{"a target is only a file", "good|Makefile", 2, ""},
		{"there is no such target", "good|absent", 2, ""},
		{"a target is named twice", "good|other good", 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var lanes []string
			if c.lanes != "" {
				lanes = strings.Split(c.lanes, "|")
			}
			printed, err := script(ctx, t, t.TempDir(), lanes...).CombinedOutput()
			expect.Equal(t, end(t, err), c.status, "the status")
			expect.Equal(t, table(printed), c.want, "the table")
			expect.Equal(t, bytes.Contains(printed, []byte("begins")), (c.status != 2), "a stage ran")
			if t.Failed() {
				t.Logf("%s", printed)
			}
		})
	}
}

// table returns the table at the end of the output, and the line that lists the failed stages.
func table(printed []byte) string {
	text := string(printed)
	text = text[strings.LastIndex(text, "\n\n")+1:]
	var rows []string
	pattern := `(?m)^(\S+) +\d+ s +\d+ s of processors  (.+)$|^(FAILED:.*)$`
	for _, row := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		rows = append(rows, strings.Trim(row[1]+" "+row[2]+row[3], " "))
	}
	return strings.Join(rows, ", ")
}

// TestAWriteThatFailsIsRed checks that the script fails when it cannot write: when its folder is full from the
// start, when a stage fills the folder, and when its output cannot be written.
func TestAWriteThatFailsIsRed(t *testing.T) {
	t.Run("a full folder", func(t *testing.T) {
		dir := disktest.New(t, 1)
		disktest.Fill(t, dir)
		printed, err := script(t.Context(), t, dir, "good", "other").CombinedOutput()
		if got := end(t, err); got == 0 {
			t.Errorf("got the status 0, want a failure; output: %s", printed)
		}
	})
	t.Run("a folder that a stage fills", func(t *testing.T) {
		printed, err := script(t.Context(), t, disktest.New(t, 1), "good", "full other").CombinedOutput()
		expect.Equal(t, end(t, err), 1, "the status")
		if !strings.HasSuffix(string(printed), "FAILED: full other\n") {
			t.Errorf("got %s, want both stages after the last space was used named as failed", printed)
		}
	})
	t.Run("an output that takes nothing", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		expect.OK(t, err)
		defer full.Close()
		cmd := script(t.Context(), t, t.TempDir(), "good", "other")
		cmd.Stdout = full
		expect.Equal(t, end(t, cmd.Run()), 1, "the status")
	})
}

// TestAnInterruptShowsWhatRan interrupts the script during a stage. The output of the stage must be shown, and its
// processes must end.
func TestAnInterruptShowsWhatRan(t *testing.T) {
	dir := t.TempDir()
	cmd := script(t.Context(), t, dir, "good", "slow other")
	var printed bytes.Buffer
	cmd.Stdout = &printed
	expect.OK(t, cmd.Start())
	for {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	expect.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	expect.Equal(t, end(t, cmd.Wait()), 1, "the status")
	want := "good passed, slow interrupted, other did not run, FAILED: slow other"
	expect.Equal(t, table(printed.Bytes()), want, "the table")
	if !strings.Contains(printed.String(), "it begins\n") {
		t.Errorf("got %s, want the output of the interrupted stage", &printed)
	}
}
