package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestEachTableThatOutsidersFillIsTested reads the table in docs/scaling.md, "Memory". Each row must name a folder and a
// test that this folder has.
func TestEachTableThatOutsidersFillIsTested(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "scaling.md"))
	expect.OK(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Memory\n")
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile("`([a-z/0-9]+)` `(Test[A-Za-z0-9]+)` \\|$")
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| What ") {
			continue
		}
		rows++
		named := names.FindStringSubmatch(line)
		if named == nil {
			t.Errorf("%s: got no folder with a test in the last column", line)
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, named[1], "*_test.go"))
		expect.OK(t, err)
		found := false
		for _, file := range files {
			code, err := os.ReadFile(file)
			expect.OK(t, err)
			found = found || strings.Contains(string(code), "\nfunc "+named[2]+"(")
		}
		if !found {
			t.Errorf("%s: got no such test in %s", named[2], named[1])
		}
	}
	if rows < 20 {
		t.Errorf("got %d rows, want the whole table", rows)
	}
}
