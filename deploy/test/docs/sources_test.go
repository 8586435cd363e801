package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/testing/expect"
)

// TestNamedTargetsCanBeMade checks that the Makefile has each target that a document mentions.
func TestNamedTargetsCanBeMade(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	expect.OK(t, err)
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, match[1])
	}
	named := regexp.MustCompile("(?m)(?:`|^)make ([a-z0-9-]+)")
	count := 0
	for _, d := range documents(t) {
		for _, match := range named.FindAllStringSubmatch(d.text, -1) {
			count++
			if !slices.Contains(targets, match[1]) {
				t.Errorf("%s: got `make %s`, want a target of the Makefile", d.path, match[1])
			}
		}
	}
	if count == 0 {
		t.Error("got no target in any document, want some")
	}
}

// TestEveryDependencyIsJustified checks that docs/architecture.md has a row for
// each direct requirement of every module.
func TestEveryDependencyIsJustified(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	expect.OK(t, err)
	_, table, found := strings.Cut(string(text), "\n## Dependencies\n")
	if !found {
		t.Fatal("got no section Dependencies, want one")
	}
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, strings.TrimSuffix(name[1], "*"))
		}
	}
	for _, file := range modules(t) {
		for _, r := range requirements(t, file) {
			justified := slices.ContainsFunc(names, func(name string) bool { return strings.Contains(r.Path, name) })
			if !r.Indirect && !justified && !strings.HasPrefix(r.Path, "asset-registry") {
				t.Errorf("%s: got the requirement %s, want a row for it in docs/architecture.md", file, r.Path)
			}
		}
	}
}

// TestModulesAgreeOnVersions checks that all modules with packages of ours require the same version of each
// dependency, so that the compiled packages can be shared. The other modules only build a program that others
// wrote.
func TestModulesAgreeOnVersions(t *testing.T) {
	type required struct{ version, file string }
	first := map[string]required{}
	for _, file := range modules(t) {
		requires := requirements(t, file)
		ours := slices.ContainsFunc(requires, func(r requirement) bool { return strings.HasPrefix(r.Path, "asset-registry/") })
		if !ours && !strings.HasSuffix(file, "/shared/go.mod") {
			continue
		}
		for _, r := range requires {
			if f, known := first[r.Path]; !known {
				first[r.Path] = required{r.Version, file}
			} else if f.version != r.Version {
				t.Errorf("%s: got %s %s, want %s as in %s", file, r.Path, r.Version, f.version, f.file)
			}
		}
	}
	if len(first) < 50 {
		t.Errorf("got %d dependencies, want more", len(first))
	}
}

// requirement is a module that a go.mod file requires.
type requirement struct {
	Path, Version string
	Indirect      bool
}

func requirements(t *testing.T, file string) []requirement {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
	expect.OK(t, err)
	var module struct{ Require []requirement }
	expect.OK(t, json.Unmarshal(listed, &module))
	return module.Require
}

// modules returns the go.mod files of the repository.
func modules(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*", "deploy/*/*", "deploy/*/*/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern, "go.mod"))
		expect.OK(t, err)
		files = append(files, found...)
	}
	if len(files) < 10 {
		t.Fatalf("got %d modules, want more", len(files))
	}
	return files
}

// TestQuotedMessagesExist takes each text of several words that the guides for operators quote, and looks for it in
// the programs and dashboards. Operators search for these texts.
func TestQuotedMessagesExist(t *testing.T) {
	guides := []string{"docs/operations.md", "docs/runbook.md", "docs/monitoring.md", "docs/features.md"}
	guide := ""
	for _, d := range documents(t) {
		if slices.Contains(guides, d.path) {
			guide += strings.Join(strings.Fields(d.prose), " ") + "\n"
		}
	}
	all := &strings.Builder{}
	sources(t, func(_, text string) { all.WriteString(strings.ToLower(text)) })
	dashboards, err := filepath.Glob(filepath.Join(root, "deploy/observability/grafana/dashboards/*.json"))
	expect.OK(t, err)
	for _, file := range dashboards {
		text, err := os.ReadFile(file)
		expect.OK(t, err)
		all.WriteString(strings.ToLower(string(text)))
	}
	quoted := regexp.MustCompile(`[ (]"([^" ]+ [^"]+)"`).FindAllStringSubmatch(guide, -1)
	for _, match := range quoted {
		if !strings.Contains(all.String(), strings.ToLower(match[1])) {
			t.Errorf("a guide for operators: got the message %q, want one that a program logs or a dashboard shows", match[1])
		}
	}
	if len(quoted) < 20 {
		t.Errorf("got %d quoted messages in the guides for operators, want at least 20", len(quoted))
	}
}

// TestTheCommitWithTheUpgradesExists checks that the operators' guide names the same commit as dataformat, and that
// the commit is in the history. In a shallow copy of the repository, it does not check the history.
func TestTheCommitWithTheUpgradesExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	expect.OK(t, err)
	if want := "`" + dataformat.UpgradesCommit + "`"; !strings.Contains(string(text), want) {
		t.Errorf("docs/operations.md: got no %s, want the commit that dataformat names", want)
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		t.Logf("not tested here: whether the history has the commit (shallow: %q, %v)", shallow, err)
		return
	}
	if _, err := git("merge-base", "--is-ancestor", dataformat.UpgradesCommit, "HEAD"); err != nil {
		t.Errorf("commit %s: got %v, want an ancestor of this version", dataformat.UpgradesCommit, err)
	}
}
