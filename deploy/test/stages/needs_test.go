package stages

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// chosen lists files that may skip tests, with the reason. These skips do not depend on the machine: the caller wants
// the skip, or another stage runs the test.
var chosen = map[string]string{
	"assetsvc/internal/mongostore/node_test.go": "MONGODB_URI names a real server",
	"deploy/test/e2e/e2e_test.go":               "E2E_BASE_URL names a registry that somebody runs",
	"deploy/test/compose/stack_test.go":         "test-compose sets COMPOSE",
	"deploy/test/apart/faults/fresh_test.go":    "MONGODB_URI names a real replica set",

	"filesvc/internal/mongostore/mongostore_test.go": "MONGODB_URI names a real server",

	"shared/needtest/needtest.go": "the one skip that is told",
}

// needs reads needs.txt, and returns the needs of each row.
func needs(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../needs.txt")
	expect.OK(t, err)
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			rows[fields[0]] = fields[1:]
		}
	}
	return rows
}

// TestNoSkipIsSilent finds each skip in the code of tests. A skip must go through needtest, which reports it. Only
// the files in the map `chosen` may skip tests in another way.
func TestNoSkipIsSilent(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		for _, call := range p.calls {
			if !slices.Contains([]string{"t", "b", "tb", "f"}, call.on) || !strings.HasPrefix(call.name, "Skip") {
				continue
			}
			if chosen[call.file] == "" {
				t.Errorf("%s skips a test in silence; want needtest.Missing, or a test that cannot skip", call.file)
			}
			seen[call.file] = true
		}
	}
	for file := range chosen {
		if !seen[file] {
			t.Errorf("%s: got no skip, want one or no row here", file)
		}
	}
}

// TestRandomNumbersHaveASeed checks that tests take random numbers from package randtest, or from a generator with
// a seed that they print. Otherwise nobody could repeat a failure. Benchmarks are exempt.
func TestRandomNumbersHaveASeed(t *testing.T) {
	seeded := 0
	for _, p := range packages(t) {
		for _, call := range p.calls {
			if call.on == "randtest" {
				seeded++
			}
			isSecret := call.name == "Read" || call.name == "Text"            // functions of crypto/rand
			others := []string{"bench_test.go", "porttest.go", "randtest.go"} // processes must try different ports
			isFree := strings.HasPrefix(call.name, "New") || isSecret || slices.Contains(others, filepath.Base(call.file))
			if call.on == "rand" && !isFree {
				t.Errorf("%s calls rand.%s; want a call of package randtest", call.file, call.name)
			}
		}
	}
	if seeded < 20 {
		t.Errorf("got %d random numbers in tests, want more: is the name of the package still right?", seeded)
	}
}

// TestEveryNeedIsInTheList checks that everything that tests need is in the row of their stage.
func TestEveryNeedIsInTheList(t *testing.T) {
	rows, all, seen := needs(t), packages(t), 0
	stages := staged(t)
	for row := range rows {
		others := []string{"every", "engine", "bench-gateway", "bench-data", "bench-files"}
		if !slices.Contains(stages, row) && !slices.Contains(others, row) {
			t.Errorf("needs.txt has a row for %s, which is no stage", row)
		}
	}
	for _, stage := range stages {
		have := append(slices.Clone(rows[stage]), rows["every"]...)
		for _, c := range commands(t, dryRun(t, stage)) {
			if c.patterns["-run"] != "" {
				continue // the stage runs only some of the tests, which may need less
			}
			for dir, p := range all {
				if !slices.ContainsFunc(c.packages, func(pattern string) bool { return covers(pattern, dir) }) {
					continue
				}
				for _, need := range p.needs() {
					seen++
					if !slices.Contains(have, need) {
						t.Errorf("%s: %s needs %s; want it in the row of needs.txt", stage, dir, need)
					}
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("got %d needs of tests, want at least 15", seen)
	}
}

// needs returns the programs and other things that the tests of a package need.
func (r read) needs() (all []string) {
	for _, call := range r.calls {
		switch call.on + "." + call.name {
		case "needtest.Commands":
			all = append(all, call.texts...)
		case "needtest.Missing":
			all = append(all, call.texts[:1]...)
		case "disktest.New":
			all = append(all, "mount")
		}
	}
	return all
}

// TestAMissingNeedIsToldAtTheEnd runs a stage that cannot run one of its tests. With CI set, the stage must fail.
// Without CI, it must pass. The end of its own output, and of the output of a stage that runs it, must say which test did
// not run, and why.
func TestAMissingNeedIsToldAtTheEnd(t *testing.T) {
	missing, err := filepath.Abs("../missing.sh")
	expect.OK(t, err)
	for _, c := range []struct {
		ci, table string
		status    int
		told      bool
	}{
		{"", "good passed, lacks passed", 0, true},
		{"true", "good passed, lacks FAILED, FAILED: lacks", 1, false},
	} {
		outer := filepath.Join(t.TempDir(), "missing") // report of the stage that runs the script, as the stage "test" does
		cmd := script(t.Context(), t, t.TempDir(), "good lacks")
		cmd.Env = append(cmd.Env, "CI="+c.ci, "MISSING="+missing, "NOT_TESTED="+outer)
		printed, err := cmd.CombinedOutput()
		expect.Equal(t, end(t, err), c.status, "CI=%s: the status", c.ci)
		expect.Equal(t, table(printed), c.table, "CI=%s: the table", c.ci)
		const line = "one: x is missing: there is none\n"
		if got := strings.Contains(string(printed), "\nnot tested here: lacks: "+line); got != c.told {
			t.Errorf("CI=%s: told at the end: got %v, want %v; output: %s", c.ci, got, c.told, printed)
		}
		if passed, _ := os.ReadFile(outer); string(passed) == line != c.told {
			t.Errorf("CI=%s: told the stage that runs it %q; want the same line: %v", c.ci, passed, c.told)
		}
	}
}

// TestTheGateSetsCI checks that a missing need fails the landing gate.
func TestTheGateSetsCI(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	expect.OK(t, err)
	_, run, _ := strings.Cut(string(text), "\nexport CI=true ")
	if !strings.Contains(run, "\nmake test-all\n") {
		t.Error("got no CI=true before the stages, want it")
	}
}

// TestSetupNamesWhatIsMissing runs setup.sh on a system where nothing is installed and nothing can be installed.
// The script must name all missing programs.
func TestSetupNamesWhatIsMissing(t *testing.T) {
	bare := t.TempDir()
	for _, name := range []string{"bash", "sed", "awk", "sort", "tr", "dirname", "env", "go"} {
		path, err := exec.LookPath(name)
		expect.OK(t, err)
		expect.OK(t, os.Symlink(path, filepath.Join(bare, name)))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bare, "bash"), "../setup.sh", "test-log")
	cmd.Env = []string{"PATH=" + bare}
	printed, err := cmd.CombinedOutput()
	expect.Equal(t, end(t, err), 1, "the status")
	want := "these are missing, please install them: column curl gcc jq openssl python3 redis-server spin"
	expect.Equal(t, strings.TrimSpace(string(printed)), want, "")
}

// TestSetupWaitsForABusyApt runs setup.sh with an apt-get whose package lists are locked by another process at
// first. The script must try again.
func TestSetupWaitsForABusyApt(t *testing.T) {
	bare, home, temporary := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"bash", "sed", "awk", "sort", "tr", "dirname", "env", "go", "mkdir", "flock", "id", "touch"} {
		path, err := exec.LookPath(name)
		expect.OK(t, err)
		expect.OK(t, os.Symlink(path, filepath.Join(bare, name)))
	}
	for name, text := range map[string]string{
		"sudo":  `exec "$@"`,
		"sleep": `exit 0`,
		"apt-get": `echo "$*" >>"$HOME/log"
			[ "$1" != update ] || [ -e "$HOME/free" ] || { touch "$HOME/free"; exit 100; }`,
	} {
		script := "#!" + filepath.Join(bare, "bash") + "\n" + text + "\n"
		expect.OK(t, os.WriteFile(filepath.Join(bare, name), []byte(script), 0o700))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bare, "bash"), "../setup.sh")
	cmd.Env = []string{"PATH=" + bare, "HOME=" + home, "TMPDIR=" + temporary}
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("got %v: %s", err, printed)
	}
	text, err := os.ReadFile(filepath.Join(home, "log"))
	expect.OK(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 3 || lines[0] != "update -qq" || lines[1] != "update -qq" ||
		!strings.HasPrefix(lines[2], "install -y -qq --no-upgrade -o DPkg::Lock::Timeout=") {
		t.Errorf("got the calls of apt-get %q, want two updates and an install that waits and upgrades nothing", lines)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v in the folder of temporary files, want nothing", left, err)
	}
}

// call is a call of a function or method, with the string literals among its arguments.
type call struct {
	file, on, name string
	texts          []string
}

// callOf returns a call of a method, or of a function in another package. It returns false for any other call.
func callOf(file string, n *ast.CallExpr) (call, bool) {
	f, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return call{}, false
	}
	c := call{file: file, name: f.Sel.Name}
	for _, argument := range n.Args {
		if text, ok := textOf(argument); ok {
			c.texts = append(c.texts, text)
		}
	}
	if on, ok := f.X.(*ast.Ident); ok {
		c.on = on.Name
	}
	return c, true
}

// textOf returns the value of a string literal.
func textOf(node ast.Node) (string, bool) {
	literal, ok := node.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
