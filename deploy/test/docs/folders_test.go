package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// made are the folders in the root that are not part of the repository.
var made = []string{"bin", "data", "dist", "secrets"}

// TestTablesOfFoldersAreWhole compares each table of folders with the folders that exist. They must be equal, because
// people who are new to the repository start with these tables.
func TestTablesOfFoldersAreWhole(t *testing.T) {
	for _, c := range []struct{ document, header, dir string }{
		{"README.md", "Folder", "."},
		{"docs/architecture.md", "Module", "."},
		{"deploy/README.md", "folder", "deploy"},
		{"deploy/test/README.md", "folder", "deploy/test"},
		{"deploy/bench/README.md", "folder", "deploy/bench"},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.document))
		expect.OK(t, err)
		told := foldersIn(string(text), c.header)
		if len(told) < 5 {
			t.Errorf("%s: got the folders %q, want a table of at least 5", c.document, told)
		}
		there := folders(t, c.dir, told)
		if c.header == "Module" {
			there = slices.DeleteFunc(there, func(name string) bool { return name == "docs" })
		}
		if !slices.Equal(told, there) {
			t.Errorf("%s: got a table of the folders %q, want %q", c.document, told, there)
		}
	}
}

// foldersIn returns the names in the first column of a table, sorted. The parameter `header` is the first header of
// the table.
func foldersIn(text, header string) (names []string) {
	_, table, _ := strings.Cut(text, "\n| "+header+" |")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			names = append(names, found[1])
		}
	}
	slices.Sort(names)
	return names
}

// folders returns the folders in a directory, sorted. If the table lists the subfolders of a folder, the result has
// these subfolders instead of the folder.
func folders(t *testing.T, dir string, told []string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	expect.OK(t, err)
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || strings.HasPrefix(name, ".") || dir == "." && slices.Contains(made, name) {
			continue
		}
		if slices.ContainsFunc(told, func(part string) bool { return strings.HasPrefix(part, name+"/") }) {
			for _, part := range folders(t, filepath.Join(dir, name), nil) {
				names = append(names, name+"/"+part)
			}
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
