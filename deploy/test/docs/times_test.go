package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachStoredTimeHasATest reads the list of stored times in docs/architecture.md. Each row must have a test that the
// second table names, and each named test must exist.
func TestEachStoredTimeHasATest(t *testing.T) {
	all := documents(t)
	at := slices.IndexFunc(all, func(d document) bool { return d.path == "docs/architecture.md" })
	_, section, _ := strings.Cut(all[at].text, "\n## Stored times\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tests := map[string]bool{}
	sources(t, func(path, text string) {
		if filepath.Ext(path) == ".go" {
			for _, found := range regexp.MustCompile(`(?m)^func ([Tt]est\w+)\(`).FindAllStringSubmatch(text, -1) {
				tests[found[1]] = true
			}
		}
	})
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
