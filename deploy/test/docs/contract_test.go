package docs

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/routes"
)

// section returns the text of a section of docs/contract.md.
func section(t *testing.T, title string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^## \d+\. ` + regexp.QuoteMeta(title) + "\n").FindIndex(text)
	if start == nil {
		t.Fatalf("got no section %q, want one", title)
	}
	rest, _, _ := strings.Cut(string(text[start[1]:]), "\n## ")
	return rest
}

func TestContractListsEveryRoute(t *testing.T) {
	want := map[string][]string{}
	for _, r := range routes.All() {
		if r.Method == http.MethodHead {
			continue // goes with GET
		}
		path := regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.Pattern, "{$1}")
		want[path] = append(want[path], r.Method)
	}
	got := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([A-Z, ]+) \\|").FindAllStringSubmatch(section(t, "Routes"), -1) {
		got[row[1]] = strings.Split(row[2], ", ")
	}
	for _, methods := range []map[string][]string{want, got} {
		for _, list := range methods {
			slices.Sort(list)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of routes differs (-want +got):\n%s", diff)
	}
}

func TestContractListsEveryVersion(t *testing.T) {
	var want, got []string
	for _, v := range routes.Versions() {
		want = append(want, v.Name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section(t, "Versions"), -1) {
		got = append(got, row[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of versions differs (-want +got):\n%s", diff)
	}
}
