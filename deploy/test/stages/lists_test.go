package stages

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// read holds what the tests of a package contain: their functions, their calls, and all texts that may be the name
// of a subtest.
type read struct {
	functions, texts []string
	calls            []call
}

// parsed caches the result of the function `packages`.
var parsed map[string]read

// packages parses the tests of all packages. The keys are folders.
func packages(t *testing.T) map[string]read {
	t.Helper()
	if parsed != nil {
		return parsed
	}
	all := map[string]read{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == "testdata" || name == ".git") {
			return filepath.SkipDir
		}
		// If isTest is false, the file may still belong to a package that only tests import.
		isTest := strings.HasSuffix(path, "_test.go")
		isPart := strings.HasSuffix(filepath.Dir(path), "test") || strings.HasPrefix(path, filepath.Join(root, "deploy", "test"))
		if !isTest && !(strings.HasSuffix(path, ".go") && isPart) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := all[dir]
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && isTest {
					p.functions = append(p.functions, n.Name.Name)
				}
			case *ast.BasicLit:
				if text, ok := textOf(n); ok {
					p.texts = append(p.texts, strings.ReplaceAll(text, " ", "_"))
				}
			case *ast.CallExpr:
				if c, ok := callOf(filepath.Join(dir, filepath.Base(path)), n); ok {
					p.calls = append(p.calls, c)
				}
			}
			return true
		})
		all[dir] = p
		return nil
	})
	expect.OK(t, err)
	parsed = all
	return all
}

// dryRun returns the commands that make would run for the given targets.
func dryRun(t *testing.T, targets ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n", "MONGODB_URI=x", "-B"}, targets...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make -n %v: %v, %s", targets, err, printed)
	}
	return string(printed)
}

// targets returns the targets of the Makefile that have a recipe.
func targets(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	expect.OK(t, err)
	for _, rule := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*\n\t`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, rule[1])
	}
	return names
}

// staged returns all stages of test-all and test-nightly. The stage with the name "test" is replaced by the stages that
// it consists of.
func staged(t *testing.T) (names []string) {
	t.Helper()
	script := regexp.MustCompile(`(?m)^exec deploy/test/(?:stages|nightly).sh (.*)$`)
	for _, run := range []string{"test-all", "test-nightly", "test"} {
		lanes := words(script.FindStringSubmatch(dryRun(t, run, "MONGOD=x"))[1])
		names = append(names, strings.Fields(strings.Join(lanes, " "))...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "test" })
	return append(names, "test-stages")
}

// files returns the texts of all files that match patterns of git.
func files(t *testing.T, patterns ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"ls-files", "-z", "--"}, patterns...)...)
	cmd.Dir = root
	printed, err := cmd.Output()
	expect.OK(t, err)
	var all strings.Builder
	for name := range strings.SplitSeq(strings.Trim(string(printed), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		expect.OK(t, err)
		all.Write(text)
	}
	return all.String()
}

// TestEveryListNamesTests checks each "go test" in the Makefile, in scripts and in documents. Each alternative in
// its patterns must select a test of its packages.
func TestEveryListNamesTests(t *testing.T) {
	all := packages(t)
	checked := map[string]int{}
	for _, c := range commands(t, dryRun(t, targets(t)...)+files(t, "*.sh", "*.md")) {
		for _, flag := range slices.Sorted(maps.Keys(c.patterns)) {
			if _, measures := c.patterns["-bench"]; measures && flag == "-run" {
				continue // this pattern must select nothing, so that only benchmarks run
			}
			for _, lost := range unmatched(c, flag, all) {
				t.Errorf("%s: %s %s selects nothing, want a test", c.text, flag, lost)
			}
			checked[flag]++
		}
	}
	for _, flag := range []string{"-run", "-skip", "-bench"} {
		if checked[flag] < 3 {
			t.Errorf("%s: checked %d patterns, want at least 3", flag, checked[flag])
		}
	}
}

// unmatched returns the alternatives of a pattern that select nothing. Before the first slash, an alternative must
// match a test function of the packages. After the slash, it must match a text in their tests.
func unmatched(c testCommand, flag string, all map[string]read) (lost []string) {
	var functions, texts []string
	for dir, p := range all {
		if slices.ContainsFunc(c.packages, func(pattern string) bool { return covers(pattern, dir) }) {
			functions, texts = append(functions, p.functions...), append(texts, p.texts...)
		}
	}
	prefix := regexp.MustCompile(map[string]string{"-bench": "^Benchmark", "-fuzz": "^Fuzz"}[flag])
	if flag == "-run" || flag == "-skip" {
		prefix = regexp.MustCompile("^(Test|Example|Fuzz)")
	}
	functions = slices.DeleteFunc(functions, func(name string) bool { return !prefix.MatchString(name) })
	for level, part := range strings.Split(c.patterns[flag], "/") {
		names := functions
		if level > 0 {
			names = texts
		}
		for _, alternative := range alternatives(part) {
			if !slices.ContainsFunc(names, regexp.MustCompile(alternative).MatchString) {
				lost = append(lost, alternative)
			}
		}
	}
	return lost
}

// covers reports whether a pattern of packages such as "./a/..." includes a folder.
func covers(pattern, dir string) bool {
	below, all := strings.CutSuffix(pattern, "/...")
	return pattern == dir || all && (dir == below || strings.HasPrefix(dir, below+"/"))
}

// alternatives splits a pattern such as "^(A|B)$" into "^A$" and "^B$".
func alternatives(pattern string) (all []string) {
	form := regexp.MustCompile(`^(\^?)\(?(.*?)\)?(\$?)$`).FindStringSubmatch(pattern)
	for choice := range strings.SplitSeq(form[2], "|") {
		all = append(all, form[1]+choice+form[3])
	}
	return all
}

// TestAListThatNamesNoTestIsFound checks that unmatched() finds names of tests that do not exist.
func TestAListThatNamesNoTestIsFound(t *testing.T) {
	all := map[string]read{
		"a":   {functions: []string{"TestA", "TestB", "BenchmarkA", "helper"}, texts: []string{"a_long_poll"}},
		"a/b": {functions: []string{"FuzzB"}},
	}
	for _, c := range []struct{ command, flag, want string }{
		{"go test -run '^(TestA|TestB)$' ./a", "-run", ""},
		{"go test -run '^(TestA|TestC)$' ./a", "-run", "^TestC$"},
		{"go test -run 'A|helper' ./a", "-run", "helper"},
		{"go test -skip TestC ./a", "-skip", "TestC"},
		{"go test -skip=TestC ./a/...", "-skip", "TestC"},
		{"go test -run FuzzB ./a", "-run", "FuzzB"},
		{"go test -run FuzzB ./a/...", "-run", ""},
		{"go test -bench 'A|C' ./a", "-bench", "C"},
		{"go test -run 'TestA/^(a|poll)' ./a", "-run", "^poll"},
		{"go test -skip '/poll' ./a", "-skip", ""},
		{"go test -fuzz B ./a", "-fuzz", "B"},
		{"go test -run TestA ./c", "-run", "TestA"},
	} {
		expect.Equal(t, strings.Join(unmatched(commands(t, c.command)[0], c.flag, all), " "), c.want, "%s", c.command)
	}
}

// TestEveryTestIsInAStage checks that a stage of test-all or test-nightly runs each test. It also checks that each make
// target test-..., except these two and test-mongo, is a stage.
func TestEveryTestIsInAStage(t *testing.T) {
	stages, others := staged(t), []string{"test-all", "test-nightly", "test-mongo"}
	for _, name := range targets(t) {
		if strings.HasPrefix(name, "test-") && !slices.Contains(others, name) && !slices.Contains(stages, name) {
			t.Errorf("%s is in no lane", name)
		}
	}
	all := commands(t, dryRun(t, stages...)+files(t, "deploy/test/compose/test.sh"))
	seen := 0
	for dir, p := range packages(t) {
		for _, name := range p.functions {
			if !strings.HasPrefix(name, "Test") || name == "TestMain" {
				continue
			}
			seen++
			if !slices.ContainsFunc(all, func(c testCommand) bool { return c.runs(dir, name) }) {
				t.Errorf("%s in %s is in no stage", name, dir)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("got %d tests, want at least 1000", seen)
	}
}

// runs reports whether the command runs a test of a folder, at least some of its subtests.
func (c testCommand) runs(dir, name string) bool {
	run, _, _ := strings.Cut(c.patterns["-run"], "/")
	skip := c.patterns["-skip"]
	return slices.ContainsFunc(c.packages, func(pattern string) bool { return covers(pattern, dir) }) &&
		regexp.MustCompile(run).MatchString(name) &&
		(skip == "" || strings.Contains(skip, "/") || !regexp.MustCompile(skip).MatchString(name))
}

// TestNightlyStagesRanLately checks that each stage of test-nightly has a row in nightly.txt, and that few commits have
// changed its subject since its last good run.
func TestNightlyStagesRanLately(t *testing.T) {
	const most = 30
	stages := strings.Fields(regexp.MustCompile(`nightly.sh (.*)`).FindStringSubmatch(dryRun(t, "test-nightly", "MONGOD=x"))[1])
	for _, stage := range stages {
		cmd := exec.CommandContext(t.Context(), "../since.sh", stage)
		text, err := cmd.Output()
		commits, malformed := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, malformed); err != nil {
			t.Errorf("%s: got %v, want a row in nightly.txt with a commit of this repository", stage, err)
		} else if commits > most {
			t.Errorf("%s: %d commits have changed its subject since its last good run, want at most %d; "+
				"run make test-nightly STAGES=%s", stage, commits, most, stage)
		}
	}
}
