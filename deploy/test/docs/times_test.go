package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachAnswerOfOthersHasATest reads the list of answers in docs/architecture.md. Each row must name tests that exist.
func TestEachAnswerOfOthersHasATest(t *testing.T) {
	section, tests := architecture(t, "Answers of others")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Asked") {
			continue
		}
		rows++
		named := regexp.MustCompile("`([Tt]est\\w+)`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(named) == 0 {
			t.Errorf("%s: got no test, want one", cells[0])
		}
		for _, test := range named {
			if !tests[test[1]] {
				t.Errorf("%s: got no function %s, want the test", cells[0], test[1])
			}
		}
	}
	if rows < 15 {
		t.Errorf("got %d rows, want 15 or more", rows)
	}
}

// architecture returns a section of docs/architecture.md, and the names of all functions that are tests.
func architecture(t *testing.T, name string) (section string, tests map[string]bool) {
	t.Helper()
	all := documents(t)
	at := slices.IndexFunc(all, func(d document) bool { return d.path == "docs/architecture.md" })
	_, section, _ = strings.Cut(all[at].text, "\n## "+name+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tests = map[string]bool{}
	sources(t, func(path, text string) {
		if filepath.Ext(path) == ".go" {
			for _, found := range regexp.MustCompile(`(?m)^func ([Tt]est\w+)\(`).FindAllStringSubmatch(text, -1) {
				tests[found[1]] = true
			}
		}
	})
	return section, tests
}

// TestEachStoredTimeHasATest reads the list of stored times in docs/architecture.md. Each row must have a test that the
// second table names, and each named test must exist.
func TestEachStoredTimeHasATest(t *testing.T) {
	section, tests := architecture(t, "Stored times")
	rows, tested := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.ContainsAny(cells[0], "0123456789") || !strings.HasPrefix(line, "|") {
			continue
		}
		if len(cells) == 4 {
			rows[strings.TrimSpace(cells[0])] = true
			continue
		}
		named := regexp.MustCompile("`([Tt]est\\w+)`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		for _, test := range named {
			if !tests[test[1]] {
				t.Errorf("rows %s: got no function %s, want the test", cells[0], test[1])
			}
		}
		for row := range strings.SplitSeq(cells[0], ",") {
			tested[strings.TrimSpace(row)] = len(named) > 0
		}
	}
	if len(rows) < 20 || !maps.Equal(rows, tested) {
		t.Errorf("got tests of the rows %v, want tests of %v", slices.Sorted(maps.Keys(tested)), slices.Sorted(maps.Keys(rows)))
	}
}
