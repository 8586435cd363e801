package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	longestLine   = 140 // characters of a line of a document
	longestCode   = 120 // characters of a line of Go outside tests
	longestReadme = 150 // lines
)

// document is a document of the repository.
type document struct {
	path  string // from the root
	text  string
	prose string // text without its code blocks
}

// documents returns those at the top, those of docs, and those of deploy.
func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md", "deploy/*/*.md", "deploy/*/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, document{name, string(text), codeBlock.ReplaceAllString(string(text), "")})
		}
	}
	if len(all) < 5 {
		t.Fatalf("got %d documents, want more", len(all))
	}
	return all
}

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading   = regexp.MustCompile(`(?m)^#+ (?:\d+\. )?(.+)$`)
	anyHead   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

func TestLinesAreShort(t *testing.T) {
	for _, d := range documents(t) {
		if dir := filepath.Dir(d.path); dir != "." && dir != "docs" {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(d.text, "\n"), "\n")
		for i, line := range lines {
			if got := utf8.RuneCountInString(line); got > longestLine {
				t.Errorf("%s:%d: got %d characters, want at most %d", d.path, i+1, got, longestLine)
			}
		}
		if d.path == "README.md" && len(lines) >= longestReadme {
			t.Errorf("README.md: got %d lines, want under %d", len(lines), longestReadme)
		}
	}
}

func TestLinesOfCodeAreShort(t *testing.T) {
	files := 0
	sources(t, func(path, text string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		files++
		for i, line := range strings.Split(text, "\n") {
			if got := utf8.RuneCountInString(line); got > longestCode {
				t.Errorf("%s:%d: got %d characters, want at most %d", path, i+1, got, longestCode)
			}
		}
	})
	if files == 0 {
		t.Error("got no file of Go, want some")
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, d := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(d.prose, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			to := filepath.Join(root, d.path)
			if file != "" {
				to = filepath.Join(root, filepath.Dir(d.path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: got a link to %s, want one to a file that exists", d.path, match[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(t, to), anchor) {
				t.Errorf("%s: got a link to %s, want a heading of that name", d.path, match[1])
			}
		}
	}
}

// anchors returns the anchors that a document's headings have where it is shown.
func anchors(t *testing.T, path string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range anyHead.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1]))
	}
	return all
}

// notPaths look like paths of the repository and are something else.
var notPaths = []string{
	"shared/registry", // a file of secrets, with Compose
}

func TestPathsExist(t *testing.T) {
	named := regexp.MustCompile(`(^|[^\w./-])((?:gateway|assetsvc|authsvc|shared|deploy|docs)/[\w./-]*\w)(.?)`)
	for _, d := range documents(t) {
		if dir := filepath.Dir(d.path); dir != "." && dir != "docs" {
			continue // others name paths from where they are
		}
		for _, match := range named.FindAllStringSubmatch(d.text, -1) {
			path := match[2]
			if slices.Contains(notPaths, path) || match[3] == "{" {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: got the path %s, want one that exists", d.path, path)
			}
		}
	}
}

// sources calls f with every file of ours that has comments.
func sources(t *testing.T, f func(path, text string)) {
	t.Helper()
	kinds := []string{".go", ".sh", ".yaml", ".yml", ".pml", ".lua", ".js", ".py", ".ts", ".mjs", ".cfg", ".conf", ".txt"}
	skipped := []string{".git", "bin", "data", "data-split", "testdata", "secrets", "node_modules"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(kinds, filepath.Ext(path)) && entry.Name() != "Makefile" || entry.Name() == "text_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f(strings.TrimPrefix(path, root+"/"), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nextLine is the end of a comment's line and the beginning of its next one.
var nextLine = regexp.MustCompile(`\s*\n\s*(?://|#|\*) ?`)

func TestCitedSectionsExist(t *testing.T) {
	cited := regexp.MustCompile(`docs/(\w+)\.md, (?:sections? )?((?:"[^"\n]+"(?:, (?:and )?| and )?)+)`)
	quoted := regexp.MustCompile(`"([^"\n]+)"`)
	titles := map[string][]string{}
	for _, d := range documents(t) {
		for _, match := range heading.FindAllStringSubmatch(d.prose, -1) {
			titles[d.path] = append(titles[d.path], match[1])
		}
	}
	citations := 0
	sources(t, func(path, text string) {
		for _, match := range cited.FindAllStringSubmatch(nextLine.ReplaceAllString(text, " "), -1) {
			file := fmt.Sprintf("docs/%s.md", match[1])
			for _, title := range quoted.FindAllStringSubmatch(match[2], -1) {
				citations++
				if !slices.Contains(titles[file], title[1]) {
					t.Errorf("%s: got a citation of %s, %q, want a section that exists", path, file, title[1])
				}
			}
		}
	})
	if citations == 0 {
		t.Error("got no citation of a section, want some")
	}
}
func TestOnlyDocumentsOfTheRepositoryAreCited(t *testing.T) {
	cited := regexp.MustCompile(`docs/\w+\.md`)
	gone := regexp.MustCompile(`(?i)interface document|\bcontract,? (?:sections?|decisions?|appendix)\b|\.\./shared/\w+\.md|(?:^|[^/\w])architecture\.md`)
	sources(t, func(path, text string) {
		text = nextLine.ReplaceAllString(text, " ")
		for _, match := range gone.FindAllString(text, -1) {
			t.Errorf("%s: got a citation of %q, want one of a section of docs", path, match)
		}
		for _, match := range cited.FindAllString(text, -1) {
			if strings.Contains(text, "/public/"+match) { // where Grafana has a copy
				continue
			}
			if _, err := os.Stat(filepath.Join(root, match)); err != nil {
				t.Errorf("%s: got a citation of %s, want a document that exists", path, match)
			}
		}
	})
}
