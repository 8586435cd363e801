package main

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

const source = `package p

func admit(n, most int, closed bool, close func() error) (bool, error) {
	count := 0
	if closed || n > most {
		return false, close()
	}
	for range n {
		count++
	}
	return count == n, nil
}
`

func TestEachPlaceIsChanged(t *testing.T) {
	var m maker
	changed := expect.Get(m.mutate("p.go", []byte(source)))(t)
	var got []string
	for _, mutant := range m.mutants {
		got = append(got, mutant.String())
	}
	want := []string{
		"p.go:5: admit: always: if closed || n > most",
		"p.go:5: admit: without: || closed",
		"p.go:5: admit: without: || n > most",
		"p.go:5: admit: >=: n > most",
		"p.go:6: admit: nil: return close()",
		"p.go:9: admit: without: count++",
		"p.go:11: admit: not: return count == n",
	}
	expect.NoDiff(t, cmp.Diff(want, got), "changes")
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", changed, 0); err != nil {
		t.Errorf("got %v for the changed file, want no error:\n%s", err, changed)
	}
}

// module writes the files of a module into a new folder, changes into that folder, and returns it.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Chdir(folder)
	t.Setenv("GOWORK", "off")
	return folder
}

// TestATrialTellsWhatDies tries the mutants of a module, and checks how many of them are killed. The module's test
// notices no moved bound, so mutants that move a bound must survive. Mutants in the function `empty` must count as
// unreached, because the test does not call this function.
func TestATrialTellsWhatDies(t *testing.T) {
	folder := module(t, map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"p/p.go": "package p\n" +
			"func admit(n, most int) bool { return n < most }\n" +
			"func short(text string) bool { return len(text) <= 9 }\n" +
			"func empty(text string) bool { return text == \"\" }\n",
		"p/other.go": "package p\n" +
			"func other(n int) bool { return n == 1 }\n",
		"p/p_test.go": "package p\n" +
			"import \"testing\"\n" +
			"func TestAdmit(t *testing.T) { if !admit(1, 3) || admit(4, 3) || !short(\"\") { t.Error() } }\n",
	})
	if out, err := exec.Command("go", "env", "GOMOD").Output(); !strings.HasPrefix(string(out), folder) {
		t.Fatalf("got the module %s, %v; want the module in %s", out, err, folder)
	}
	got, err := try([]string{"p"}, "", [][]string{
		{"p/p.go", "admit", "<=: n < most", "a reason"},
		{"p/p.go", "admit", "not: return n < most", "a reason for a change that dies"},
		{"p/p.go", "admit", "no such change", "a reason for nothing"},
	})
	want := result{killed: 1, survived: 1, unreached: 2, named: 1, stale: 2}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	got, err = try([]string{"p"}, "p.go", [][]string{{"p/other.go", "other", "no such change", "of another file"}})
	if want := (result{killed: 2, survived: 2, unreached: 1}); err != nil || got != want {
		t.Errorf("one file: got %+v, %v; want %+v", got, err, want)
	}
}

// TestALateTestRunsAgain tries two tests that end too late. One never ends because of a mutant. The other waits
// only the first time, as it could on a busy machine. Only the test that never ends may count as failed.
func TestALateTestRunsAgain(t *testing.T) {
	module(t, map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"p/p.go": "package p\nfunc below(n, most int) bool { return n < most }\n",
		"p/p_test.go": "package p\nimport (\n\"os\"\n\"testing\"\n\"time\"\n)\n" +
			"func TestEnd(t *testing.T) { for below(3, 3) { time.Sleep(time.Millisecond) } }\n" +
			"func TestBusy(t *testing.T) { if os.Mkdir(\"was\", 0o700) == nil { time.Sleep(time.Hour) } }\n",
	})
	tried := &trial{tests: []string{"p"}, work: t.TempDir()}
	expect.OK(t, tried.compile(tried.mutate))
	if got, want := tried.mutants[0].String(), "p/p.go:2: below: not: return n < most"; got != want {
		t.Fatalf("got the change %s, want %s", got, want)
	}
	for _, one := range []struct {
		test string
		want bool
	}{{"TestEnd", true}, {"TestBusy", false}} {
		got, err := tried.fails(&tried.programs[0], "1", 2*time.Second, 0, "-test.run", "^"+one.test+"$")
		if err != nil || got != one.want {
			t.Errorf("%s: got %t, %v for the change; want %t", one.test, got, err, one.want)
		}
	}
}

// TestTheGuardsOfStoresAreThere checks that each guard of stores.txt is still in the code of its file.
// `make mutants PKG=stores` removes the guards from the code, one at a time.
func TestTheGuardsOfStoresAreThere(t *testing.T) {
	t.Chdir("../../..")
	guards, err := storeGuards()
	if err != nil || len(guards) == 0 {
		t.Fatalf("got %d guards, %v; want some", len(guards), err)
	}
	for _, g := range guards {
		source := expect.Get(os.ReadFile(g.file))(t)
		if _, err := g.find(source); err != nil {
			t.Error(err)
		}
		test, _, _ := strings.Cut(g.test, "/")
		tests := expect.Get(filepath.Glob(g.in + "/*_test.go"))(t)
		if !slices.ContainsFunc(tests, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+test+"(t *testing.T)")
		}) {
			t.Errorf("%s: got no test %s in %s, want one", g.file, g.test, g.in)
		}
	}
}

// TestALostGuardOfAStoreIsFound leaves out guards. For one guard, no test fails, and tryStores must count this
// guard. A row for a guard that is not in the source must be an error.
func TestALostGuardOfAStoreIsFound(t *testing.T) {
	rows := "p/p.go | TestOdd | n%2 == 0 | false | an even number is refused\n" +
		"p/p.go | TestOdd | n < 0 | false | a negative number is refused\n" +
		"p/p.go | TestOdd | if 1 |  | a script has a condition\n" +
		"p/p.go | q:TestRefused | n%2 == 0 | false | another package refuses an even number\n" +
		"p/p.go | TestOdd | last > n | false | the last number stays\n"
	module(t, map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"p/p.go": "package p\nvar used, last = `if 1 then 2`, 7\n" +
			"func refused(n int) bool { return n%2 == 0 || n < 0 }\n" +
			"func Refused(n int) bool { return refused(n) }\n" +
			"func keep(n int) {\n\tif last > n {\n\t\treturn\n\t}\n\tlast = n\n}\n",
		"q/q.go": "package q\n",
		"q/q_test.go": "package q\nimport (\n\"m/p\"\n\"testing\"\n)\n" +
			"func TestRefused(t *testing.T) { if !p.Refused(2) { t.Error() } }\n",
		"p/p_test.go": "package p\nimport \"testing\"\nfunc TestOdd(t *testing.T) {\n" +
			"\tkeep(3)\n\tif !refused(2) || used != `if 1 then 2` || last != 7 {\n\t\tt.Error()\n\t}\n}\n",
		lists + "stores.txt": rows,
	})
	expect.Value(t, 1, "")(tryStores(""))
	less := []byte("package p\nfunc refused(n int) bool { return n%2 == 0 }\n")
	expect.OK(t, os.WriteFile("p/p.go", less, 0o600))
	expect.FailsOf(t, "a guard that is not there")(tryStores(""))
}

// TestNothingOutlivesATest starts a process in a new process group, as a shell does. The parent of this process
// ends, and endSession must kill the process.
func TestNothingOutlivesATest(t *testing.T) {
	parent := exec.Command("bash", "-c", "set -m; sleep 600 >/dev/null 2>&1 & echo $!")
	parent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out := expect.Get(parent.Output())(t)
	left := strings.TrimSpace(string(out))
	expect.Try(t, endSession(parent.Process.Pid))
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// An error does not matter: ps fails if the process does not exist any more.
		state, _ := exec.Command("ps", "-o", "stat=", "-p", left).Output()
		if len(state) == 0 || state[0] == 'Z' {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got process %s in state %s, want it ended", left, state)
		}
	}
}
