package stages

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// linesFile has the most lines of code that the product and its tests may have. Anyone may lower a number. A commit that
// raises one says in its body for which user, in a line that begins with "Lines for ".
const linesFile = "deploy/test/stages/limits.txt"

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	forTests  = regexp.MustCompile(`(^|/)[a-z0-9]*test(/|$)|^deploy/(test|bench)(/|$)|^shared/testing/|^assetsvc/internal/fill$`)
)

// TestLines counts the lines that have code.
func TestLines(t *testing.T) {
	most, got := limitsOfLines(t, fileText(t, linesFile)), map[string]int{}
	for name := range strings.FieldsSeq(git(t, "ls-files", "*.go")) {
		kind := kindOf(name)
		if kind == "" {
			continue
		}
		code := fileText(t, name)
		if head, _, _ := strings.Cut(code, "\npackage "); generated.MatchString(head) {
			continue
		}
		got[kind] += codeLines(code)
	}
	for kind, most := range most {
		if got[kind] > most {
			t.Errorf("%s: got %d lines, want at most %d: take lines away, or raise the number in %s", kind, got[kind], most, linesFile)
		}
	}
	t.Log(got)
}

// TestLinesAreRaisedForAUser compares each commit of linesFile with its parents.
func TestLinesAreRaisedForAUser(t *testing.T) {
	commits := strings.Fields(git(t, "log", "--full-history", "--format=%H", "--", linesFile))
	if len(commits) == 0 {
		t.Fatalf("got no commit of %s, want its history", linesFile)
	}
	for _, commit := range commits {
		before := map[string]int{} // the largest numbers of the parents
		for parent := range strings.FieldsSeq(git(t, "log", "-1", "--format=%P", commit)) {
			if git(t, "ls-tree", "--name-only", parent, linesFile) == "" {
				continue
			}
			for kind, n := range limitsOfLines(t, git(t, "show", parent+":"+linesFile)) {
				before[kind] = max(before[kind], n)
			}
		}
		for kind, n := range limitsOfLines(t, git(t, "show", commit+":"+linesFile)) {
			if was, ok := before[kind]; ok && n > was && !strings.Contains(git(t, "log", "-1", "--format=%n%b", commit), "\nLines for ") {
				t.Errorf("%.8s raises %s from %d to %d and has no line that begins with \"Lines for \"", commit, kind, was, n)
			}
		}
	}
}

func TestCodeLines(t *testing.T) {
	const code = "// A\npackage a // b\n\n/* c\n d */\nvar x = `e\n\n// f` /* g */\n\nfunc y() {\n\t// h\n}\n"
	if got, want := codeLines(code), 6; got != want {
		t.Errorf("got %d lines, want %d of\n%s", got, want, code)
	}
}

func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_test.go"):
		return "test"
	case forTests.MatchString(path.Dir(name)):
		return ""
	}
	return "product"
}

// codeLines counts the lines of code that have a token other than a comment.
func codeLines(code string) (n int) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, []byte(code), nil, 0)
	last := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text != ";" { // the scanner's own
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(text, "\n")
		n += end - max(first-1, last)
		last = end
	}
}

func limitsOfLines(t *testing.T, text string) map[string]int {
	t.Helper()
	limits := map[string]int{}
	for line := range strings.Lines(text) {
		var kind string
		var n int
		expect.MustOf(t, "%q", line)(fmt.Sscan(line, &kind, &n))
		limits[kind] = n
	}
	return limits
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", name))
	expect.OK(t, err)
	return string(text)
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	expect.Must(t, err, "git %s", strings.Join(args, " "))
	return string(out)
}
