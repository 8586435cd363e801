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

	"asset-registry/assetsvc"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// section returns the text of a section of docs/contract.md.
func section(t *testing.T, title string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "contract.md"))
	expect.OK(t, err)
	start := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(title) + "\n").FindIndex(text)
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
			continue // the contract lists it together with GET
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
	expect.NoDiff(t, cmp.Diff(want, got), "the table of routes")
}

func TestContractListsEveryVersion(t *testing.T) {
	var want, got []string
	for _, v := range routes.Versions() {
		want = append(want, v.Name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section(t, "Versions"), -1) {
		got = append(got, row[1])
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the table of versions")
}

// quoted finds the code spans in a table cell. A star behind a code span stands for the translations of the field.
var quoted = regexp.MustCompile("`([^`]+)`(\\*?)")

func TestContractListsEveryStep(t *testing.T) {
	// For a step from a state A to a state B, got["A B"] has the roles that may take the step. For a state A,
	// got["A"] has the roles that may change the asset.
	got := map[string][]string{}
	var from string
	for row := range strings.Lines(section(t, "States")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 4 || strings.Contains(row, "---") || strings.Contains(row, "From") {
			continue
		}
		if names := quoted.FindAllStringSubmatch(cells[0], -1); len(names) == 1 {
			from = names[0][1]
			got[from] = list(cells[1])
		} else if len(names) > 1 { // a row for the final states
			continue
		}
		for _, to := range quoted.FindAllStringSubmatch(cells[2], -1) {
			got[from+" "+to[1]] = list(cells[3])
		}
	}
	want := map[string][]string{}
	for _, s := range assetsvc.Steps() {
		for _, by := range s.By {
			want[string(s.From)+" "+string(s.To)] = append(want[string(s.From)+" "+string(s.To)], string(by))
		}
		want[string(s.From)] = nil
		for _, by := range s.From.Writers() {
			want[string(s.From)] = append(want[string(s.From)], string(by))
		}
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the table of states")
}

// list returns the names in a cell. Commas separate them.
func list(cell string) []string { return strings.Split(strings.TrimSpace(cell), ", ") }

func TestContractListsEveryWritableField(t *testing.T) {
	got := map[string][]string{}
	var role string
	for row := range strings.Lines(section(t, "Writable fields")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 2 || strings.Contains(row, "---") || strings.Contains(row, "Role") {
			continue
		}
		if words := strings.FieldsFunc(cells[0], func(r rune) bool { return r == ' ' || r == ',' }); len(words) > 0 {
			role = words[0]
		}
		fields, _, _ := strings.Cut(cells[1], "; and") // the rest is about decisions
		for _, name := range quoted.FindAllStringSubmatch(fields, -1) {
			got[role] = append(got[role], name[1])
			if name[2] == "*" {
				got[role] = append(got[role], name[1]+"_en", name[1]+"_ru")
			}
		}
	}
	want := map[string][]string{}
	for _, f := range assetsvc.Describe()[0].Fields {
		for _, role := range []string{"owner", "concierge", "administrator"} {
			if slices.Contains(f.Writers, role) {
				want[role] = append(want[role], f.Name)
			}
		}
	}
	for _, fields := range []map[string][]string{want, got} {
		for _, names := range fields {
			slices.Sort(names)
		}
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the table of writable fields")
}
