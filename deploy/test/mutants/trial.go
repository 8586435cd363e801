package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trial tries the mutants of one package.
type trial struct {
	tests []string   // folders whose tests are run; the mutants are in the first folder
	only  string     // name of the file whose mutants are tried; "" for all files
	same  [][]string // mutants that change nothing, as rows of file, function, change, reason

	maker
	work     string
	programs []program
}

// program is a compiled test program that contains all mutants.
type program struct {
	path, folder string
	tests        []test // the tests that reach any mutant
}

// result counts the mutants of a package by what happened to them.
type result struct {
	killed    int // a test failed
	survived  int // a test ran the changed code, but no test failed
	unreached int // no test ran the changed code
	named     int // no test failed, and same.txt says why the change has no effect
	stale     int // rows of same.txt for a mutant that does not exist, or that a test kills
}

// try tries the mutants in the first folder with the tests of all folders, and prints the mutants that no test
// kills. The parameter `only` is the name of a file in that folder, or "" for all files.
func try(tests []string, only string, same [][]string) (result, error) {
	began := time.Now()
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(work)
	for _, folder := range tests { // remove the inputs of failed random tests, which are kept there
		kept := filepath.Join(folder, "testdata", "rapid")
		if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
			defer os.RemoveAll(kept)
		}
	}
	t := &trial{tests: tests, only: only, same: same, work: work}
	if err := t.compile(t.mutate); err != nil {
		return result{}, err
	}
	if err := t.measure(); err != nil {
		return result{}, err
	}
	var r result
	for i, m := range t.mutants {
		named := t.isNamed(m)
		reached, dies, err := t.dies(strconv.Itoa(i + 1))
		if err != nil {
			return result{}, err
		}
		switch {
		case dies && named:
			r.stale++
			fmt.Printf("DIES, but same.txt names it: %s\n", m)
		case dies:
			r.killed++
		case named:
			r.named++
		case reached:
			r.survived++
			fmt.Printf("SURVIVED %s\n", m)
		default:
			r.unreached++
			fmt.Printf("UNREACHED %s\n", m)
		}
	}
	for _, row := range t.unused() {
		r.stale++
		fmt.Printf("NO SUCH CHANGE, but same.txt names it: %s\n", strings.Join(row, " | "))
	}
	fmt.Printf("%s: %d killed, %d survived, %d unreached, %d change nothing, %.1f minutes\n",
		filepath.Join(tests[0], only), r.killed, r.survived, r.unreached, r.named, time.Since(began).Minutes())
	return r, nil
}

// test is a test of a program, and what it did when no mutant was active.
type test struct {
	name    string
	took    time.Duration
	reached map[string]bool // numbers of the mutants that the test reached
}

// quick is the duration up to which a test counts as quick. Quick tests run before the slower ones.
const quick = 300 * time.Millisecond

// measure runs each test without a mutant; the test must pass. It records which mutants the test reaches. Later,
// the test is run only with these mutants (the method `dies`).
func (t *trial) measure() error {
	for i := range t.programs {
		p := &t.programs[i]
		names, err := t.start(p, time.Minute, "", "-test.list", "^(Test|Fuzz)")
		if err != nil {
			return fmt.Errorf("list the tests of %s: %w\n%s", p.folder, err, names)
		}
		reached, began := map[string]bool{}, time.Now()
		for name := range strings.FieldsSeq(string(names)) {
			one, err := t.measured(p, name)
			if err != nil {
				return err
			}
			if len(one.reached) > 0 {
				p.tests = append(p.tests, one)
			}
			maps.Copy(reached, one.reached)
		}
		if len(reached) == 0 {
			return fmt.Errorf("the tests of %s reach no code of %s", p.folder, t.tests[0])
		}
		fmt.Printf("%s: %d tests of %s reach %d of %d changes, in %.1f s\n", t.tests[0], len(p.tests),
			p.folder, len(reached), len(t.mutants), time.Since(began).Seconds())
	}
	return nil
}

func (t *trial) measured(p *program, name string) (test, error) {
	file, began := p.path+"."+name, time.Now()
	if out, err := t.start(p, 5*time.Minute, "MUTANTS_REACHED="+file, "-test.run", "^"+name+"$"); err != nil {
		return test{}, fmt.Errorf("%s of %s fails without a change: %w\n%s", name, p.folder, err, out)
	}
	one := test{name: name, took: time.Since(began), reached: map[string]bool{}}
	numbers, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return test{}, err
	}
	for n := range strings.FieldsSeq(string(numbers)) {
		one.reached[n] = true
	}
	return one, nil
}

// dies reports whether any test reaches a mutant, and whether a test fails with it or takes much longer than
// without the mutant. The quick tests run first.
func (t *trial) dies(n string) (reached, dies bool, err error) {
	for _, slow := range []bool{false, true} {
		for i := range t.programs {
			p := &t.programs[i]
			var names []string
			var took time.Duration
			for _, one := range p.tests {
				if one.reached[n] && (one.took > quick) == slow {
					names = append(names, one.name)
					took += one.took
				}
			}
			if len(names) == 0 {
				continue
			}
			reached = true
			dies, err = t.fails(p, n, 10*time.Second, took, "-test.run", "^("+strings.Join(names, "|")+")$")
			if dies || err != nil {
				return true, dies, err
			}
		}
	}
	return reached, false, nil
}

// errLate is the error for a program that has not ended in time.
var errLate = errors.New("the time is over")

// fails reports whether tests fail with a mutant, or become much slower. The parameter `took` is how long the tests
// take without the mutant. The time limit is four times as long, plus the time in the parameter `spare`. When tests
// are late, the machine may only be busy. So they run again, first without the mutant to measure how long they take
// now, and then with it.
func (t *trial) fails(p *program, n string, spare, took time.Duration, args ...string) (bool, error) {
	args = append([]string{"-test.failfast"}, args...)
	_, err := t.start(p, spare+4*took, "MUTANT="+n, args...)
	if !errors.Is(err, errLate) {
		return err != nil, nil
	}
	began := time.Now()
	if out, err := t.start(p, 5*time.Minute+10*took, "MUTANT=0", args...); err != nil {
		return false, fmt.Errorf("%s fails again, without a change: %w\n%s", p.folder, err, out)
	}
	_, err = t.start(p, spare+4*max(took, time.Since(began)), "MUTANT="+n, args...)
	return err != nil, nil
}

// start runs a program in its folder. It limits the program's memory, because with a mutant the program may need
// more and more. It starts a new session for the program. So it can kill everything that the program leaves behind,
// such as the server of a test that was killed.
func (t *trial) start(p *program, limit time.Duration, environment string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	temporary, err := os.MkdirTemp(t.work, "tmp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	args = append([]string{"-c", `ulimit -d 8000000; exec "$0" "$@"`, p.path}, args...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	if cmd.Dir, err = filepath.Abs(p.folder); err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary, environment)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return endSession(cmd.Process.Pid) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	if err = cmd.Wait(); ctx.Err() != nil {
		err = errors.Join(errLate, err)
	}
	return out.Bytes(), errors.Join(err, endSession(cmd.Process.Pid))
}

// endSession kills all processes of a session. If there is no /proc, it kills the processes of the process group
// with the same number.
func endSession(session int) error {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil { // the process has ended
			continue
		}
		// The fields that follow are state, parent, process group and session.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 3 && fields[3] == strconv.Itoa(session) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("end a process that a test has left: %w", err)
			}
		}
	}
	if err := syscall.Kill(-session, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end the processes that a test has left: %w", err)
	}
	return nil
}

// isNamed reports whether same.txt has a reason why a mutant changes nothing.
func (t *trial) isNamed(m mutant) bool {
	return slices.ContainsFunc(t.same, func(row []string) bool { return names(row, m) })
}

// names reports whether a row of same.txt is about a mutant. Rows have no line numbers, so that they stay valid
// when lines move.
func names(row []string, m mutant) bool {
	return row[0] == m.file && row[1] == m.function && row[2] == m.change
}

// holds reports whether the mutants of a file are tried.
func (t *trial) holds(file string) bool {
	return filepath.Dir(file) == t.tests[0] && (t.only == "" || filepath.Base(file) == t.only)
}

// unused returns the rows of same.txt that are about files of the package, but match no mutant.
func (t *trial) unused() [][]string {
	var unused [][]string
	for _, row := range t.same {
		named := slices.ContainsFunc(t.mutants, func(m mutant) bool { return names(row, m) })
		if t.holds(row[0]) && !named {
			unused = append(unused, row)
		}
	}
	return unused
}
