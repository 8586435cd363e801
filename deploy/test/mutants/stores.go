package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// guard is a piece of a store's source that keeps data safe. stores.txt has a row for each guard.
type guard struct {
	file    string
	in      string // package of the test
	test    string // such as TestA/a case; it passes with the guard and fails without it
	text    string // the source of the guard
	instead string // the source that replaces the guard
	keeps   string // what the guard keeps safe
}

func storeGuards() (guards []guard, err error) {
	all, err := rows(lists+"stores.txt", " | ")
	for _, row := range all {
		if len(row) != 5 {
			return nil, fmt.Errorf("%sstores.txt: got %d columns, want 5: %s", lists, len(row), row[0])
		}
		in, test, elsewhere := strings.Cut(row[1], ":")
		if !elsewhere {
			in, test = filepath.Dir(row[0]), row[1]
		}
		guards = append(guards, guard{row[0], in, test, row[2], row[3], row[4]})
	}
	return guards, err
}

// The method `find` returns the position of the guard in the source of its file. The guard must occur exactly once.
func (g guard) find(source []byte) (int, error) {
	if n := strings.Count(string(source), g.text); n != 1 {
		return 0, fmt.Errorf("%s has the guard %q %d times, want once", g.file, g.text, n)
	}
	return strings.Index(string(source), g.text), nil
}

// tryStores leaves out each guard of the stores, one at a time, and prints the guards whose tests pass
// nevertheless. If its argument is not "", it tries only the guards in files whose path contains the argument.
func tryStores(only string) (survived int, err error) {
	guards, err := storeGuards()
	if err != nil {
		return 0, err
	}
	type pair struct{ of, in string } // the package of guards, and the package of their tests
	packages := map[pair][]guard{}
	var pairs []pair
	for _, g := range guards {
		if p := (pair{filepath.Dir(g.file), g.in}); strings.Contains(g.file, only) {
			if packages[p] == nil {
				pairs = append(pairs, p)
			}
			packages[p] = append(packages[p], g)
		}
	}
	for _, p := range pairs {
		lost, err := tryStore(p.of, p.in, packages[p])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.of, err)
		}
		survived += lost
	}
	return survived, nil
}

// tryStore compiles the tests of a package once, and then runs them once for each guard, without that guard. The
// parameter `folder` is the package of the guards, and the parameter `in` is the package of the tests.
func tryStore(folder, in string, guards []guard) (survived int, err error) {
	began, killed := time.Now(), 0
	work, err := os.MkdirTemp("", "stores-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	t := &trial{tests: slices.Compact([]string{folder, in}), work: work}
	if err := t.compile(func(file string, source []byte) ([]byte, error) {
		return t.leaveOut(guards, file, source)
	}); err != nil {
		return 0, err
	}
	took := map[string]time.Duration{} // how long each test takes with all guards
	p := &t.programs[len(t.programs)-1]
	for i, g := range guards {
		run := "^" + strings.ReplaceAll(g.test, "/", "$/^") + "$"
		if took[g.test] == 0 {
			begun := time.Now()
			out, err := t.start(p, 5*time.Minute, "MUTANT=0", "-test.v", "-test.run", run)
			if err == nil && !strings.Contains(string(out), "--- PASS: "+strings.ReplaceAll(g.test, " ", "_")+" ") {
				err = errors.New("there is no such test")
			}
			if err != nil {
				return 0, fmt.Errorf("%s fails with all guards: %w\n%s", g.test, err, out)
			}
			took[g.test] = time.Since(begun)
		}
		switch dies, err := t.fails(p, strconv.Itoa(i+1), 20*time.Second, took[g.test], "-test.run", run); {
		case err != nil:
			return 0, err
		case dies:
			killed++
		default:
			survived++
			fmt.Printf("SURVIVED %s: %s: %s\n", g.file, g.keeps, g.text)
		}
	}
	fmt.Printf("stores: %s: %d killed, %d survived, %.1f minutes\n", folder, killed, survived, time.Since(began).Minutes())
	return survived, nil
}

// leaveOut returns a changed source of a file. A process that runs this source leaves out the guard whose number is in
// MUTANT. For each guard, leaveOut copies the body of the guard's function to the beginning of that function, without
// the guard. If a guard is in a text outside functions, such as a script, leaveOut copies the text instead.
func (m *maker) leaveOut(guards []guard, file string, source []byte) ([]byte, error) {
	m.source, m.set, m.inserts = source, token.NewFileSet(), nil
	parsed, err := parser.ParseFile(m.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m.name = parsed.Name.Name
	for i, g := range guards {
		if i == len(m.mutants) {
			m.mutants = append(m.mutants, mutant{file: g.file, text: g.text})
		}
		if g.file != file {
			continue
		}
		at, err := g.find(source)
		if err != nil {
			return nil, err
		}
		place := m.holding(parsed, at, at+len(g.text))
		if place == nil {
			return nil, fmt.Errorf("%s has the guard %q in no function and in no text", g.file, g.text)
		}
		without := func(n ast.Node) string { return strings.Replace(m.text(n), g.text, g.instead, 1) }
		f, isFunction := place.(*ast.FuncDecl)
		if !isFunction {
			m.wrap(place, fmt.Sprintf("mutantText(%d, %s, ", i+1, without(place)), ")")
			continue
		}
		end := ""
		if f.Type.Results == nil {
			end = "; return"
		}
		m.inserts = append(m.inserts, insert{m.offset(f.Body.Pos()) + 1, true, len(m.inserts),
			fmt.Sprintf(" if mutantOn(%d) { %s%s }; ", i+1, without(f.Body), end)})
	}
	return m.apply(), nil
}

// holding returns the function that contains a range of the source, or the string literal if the range is outside
// functions.
func (m *maker) holding(file *ast.File, from, to int) (place ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || m.offset(n.Pos()) > from || m.offset(n.End()) < to {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			place = n
			return false
		case *ast.BasicLit:
			place = n
		}
		return true
	})
	return place
}
