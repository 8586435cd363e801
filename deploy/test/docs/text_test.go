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

	"asset-registry/shared/testing/expect"
)

const (
	longestLine   = 140 // characters in a line of a document
	longestCode   = 120 // characters in a line of Go code outside tests
	longestReadme = 149 // lines of README.md
	longestGuide  = 450 // lines of docs/operations.md; runbooks, scaling and settings have documents of their own
)

// document is a document of the repository.
type document struct {
	path  string // relative to the root
	text  string
	prose string // text without its code blocks
}

// documents returns the documents in the root, in docs and in deploy.
func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md", "deploy/*/*.md", "deploy/*/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		expect.OK(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			expect.OK(t, err)
			name, err := filepath.Rel(root, path)
			expect.OK(t, err)
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
	oldAnchor = regexp.MustCompile(`<a id="([^"]+)"></a>`) // keeps links to a former heading
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
		if most := map[string]int{"README.md": longestReadme, "docs/operations.md": longestGuide}[d.path]; most > 0 && len(lines) > most {
			t.Errorf("%s: got %d lines, want at most %d", d.path, len(lines), most)
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

// lostLinks returns the links of a document that lead nowhere, and the number of its links to our files.
func lostLinks(t *testing.T, d document) (lost []string, all int) {
	t.Helper()
	for _, match := range link.FindAllStringSubmatch(d.prose, -1) {
		if strings.Contains(match[1], "://") {
			continue
		}
		all++
		file, anchor, _ := strings.Cut(match[1], "#")
		to := filepath.Join(root, d.path)
		if file != "" {
			to = filepath.Join(root, filepath.Dir(d.path), file)
		}
		_, err := os.Stat(to)
		if err != nil || anchor != "" && !slices.Contains(anchors(t, to), anchor) {
			lost = append(lost, match[1])
		}
	}
	return lost, all
}

func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, d := range documents(t) {
		lost, all := lostLinks(t, d)
		links += all
		for _, to := range lost {
			t.Errorf("%s: got a link to %s, want one to a file and a heading that exist", d.path, to)
		}
	}
	if links < 100 {
		t.Errorf("got %d links, want at least 100", links)
	}
}

// anchors returns the anchors of a document: those that a website gives to its headings, and those that stand in it.
func anchors(t *testing.T, path string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	expect.OK(t, err)
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
	for _, match := range oldAnchor.FindAllStringSubmatch(string(text), -1) {
		all = append(all, match[1])
	}
	return all
}

// notPaths look like paths of the repository, but are something else.
var notPaths = []string{
	"shared/registry", // a file in the folder secrets of an installation with Docker Compose
}

// named finds a path of the repository, and the character behind it.
var named = regexp.MustCompile(`(^|[^\w./-])((?:gateway|assetsvc|authsvc|filesvc|searchsvc|clients|shared|deploy|docs)/[\w./-]*\w)(.?)`)

// lostPaths returns the paths in a text that do not exist, and the number of all paths in it.
func lostPaths(text string) (lost []string, all int) {
	for _, match := range named.FindAllStringSubmatch(text, -1) {
		path := match[2]
		if slices.Contains(notPaths, path) || match[3] == "{" {
			continue
		}
		all++
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			lost = append(lost, path)
		}
	}
	return lost, all
}

func TestPathsExist(t *testing.T) {
	paths := 0
	for _, d := range documents(t) {
		if dir := filepath.Dir(d.path); dir != "." && dir != "docs" {
			continue // the other documents use paths relative to their own folder
		}
		lost, all := lostPaths(d.text)
		paths += all
		for _, path := range lost {
			t.Errorf("%s: got the path %s, want one that exists", d.path, path)
		}
	}
	if paths < 50 {
		t.Errorf("got %d paths, want at least 50", paths)
	}
}

// sources calls the function f with every file of ours that has comments.
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
	expect.OK(t, err)
}

// nextLine finds the end of a line of a comment and the beginning of the next line.
var nextLine = regexp.MustCompile(`\s*\n\s*(?://|#|\*) ?`)

// lostSections returns the cited sections that do not exist, and the number of all sections that a text cites. The
// parameter `titles` has the section titles of each document.
func lostSections(text string, titles map[string][]string) (lost []string, all int) {
	cited := regexp.MustCompile(`docs/(\w+)\.md, (?:sections? )?((?:"[^"\n]+"(?:, (?:and )?| and )?)+)`)
	quoted := regexp.MustCompile(`"([^"\n]+)"`)
	for _, match := range cited.FindAllStringSubmatch(nextLine.ReplaceAllString(text, " "), -1) {
		file := fmt.Sprintf("docs/%s.md", match[1])
		for _, title := range quoted.FindAllStringSubmatch(match[2], -1) {
			all++
			if !slices.Contains(titles[file], title[1]) {
				lost = append(lost, file+", "+title[1])
			}
		}
	}
	return lost, all
}

func TestCitedSectionsExist(t *testing.T) {
	titles := map[string][]string{}
	for _, d := range documents(t) {
		for _, match := range heading.FindAllStringSubmatch(d.prose, -1) {
			titles[d.path] = append(titles[d.path], match[1])
		}
	}
	citations := 0
	sources(t, func(path, text string) {
		lost, all := lostSections(text, titles)
		citations += all
		for _, section := range lost {
			t.Errorf("%s: got a citation of %s, want a section that exists", path, section)
		}
	})
	if citations < 20 {
		t.Errorf("got %d citations of sections, want at least 20", citations)
	}
}

// lostDocuments returns the cited documents that do not exist, and the number of all documents that a text cites.
func lostDocuments(text string) (lost []string, all int) {
	cited := regexp.MustCompile(`docs/\w+\.md`)
	gone := regexp.MustCompile(`(?i)interface document|\bcontract,? (?:sections?|decisions?|appendix)\b|\.\./shared/\w+\.md|(?:^|[^/\w])architecture\.md`)
	text = nextLine.ReplaceAllString(text, " ")
	lost = gone.FindAllString(text, -1)
	for _, match := range cited.FindAllString(text, -1) {
		all++
		if strings.Contains(text, "/public/"+match) { // Grafana serves a copy of this document
			continue
		}
		if _, err := os.Stat(filepath.Join(root, match)); err != nil {
			lost = append(lost, match)
		}
	}
	return lost, all
}

func TestOnlyDocumentsOfTheRepositoryAreCited(t *testing.T) {
	citations := 0
	sources(t, func(path, text string) {
		lost, all := lostDocuments(text)
		citations += all
		for _, name := range lost {
			t.Errorf("%s: got a citation of %q, want one of a document that exists", path, name)
		}
	})
	if citations < 50 {
		t.Errorf("got %d citations of documents, want at least 50", citations)
	}
}

// TestLostTargetsAreFound checks texts with links, paths and citations. Exactly those that lead nowhere must be found.
func TestLostTargetsAreFound(t *testing.T) {
	links := "[a](no.md), [b](style.md#no), [c](style.md#prose), [d](#no), [e](https://x.example/no.md) and [f](../README.md)"
	titles := map[string][]string{"docs/style.md": {"Prose", "Size"}}
	for _, c := range []struct {
		name string
		find func() ([]string, int)
		want []string
		all  int
	}{
		{"links", func() ([]string, int) { return lostLinks(t, document{path: "docs/contract.md", prose: links}) },
			[]string{"no.md", "style.md#no", "#no"}, 5},
		{"paths", func() ([]string, int) {
			return lostPaths("`deploy/no`, (searchsvc/internal/no.go), clients/go, shared/no/x.go and shared/registry. docs/{a,b}")
		}, []string{"deploy/no", "searchsvc/internal/no.go", "shared/no/x.go"}, 4},
		{"sections", func() ([]string, int) {
			return lostSections("// See docs/style.md, \"Prose\" and \"No\".\n// See docs/style.md,\n// sections \"Size\",\n"+
				"// \"None\". See docs/no.md, \"Prose\".", titles)
		}, []string{"docs/style.md, No", "docs/style.md, None", "docs/no.md, Prose"}, 5},
		{"documents", func() ([]string, int) {
			return lostDocuments("// docs/style.md, docs/no.md\n// The interface\n// document, contract section 3, ../shared/x.md")
		}, []string{"interface document", "contract section", "../shared/x.md", "docs/no.md"}, 2},
	} {
		if lost, all := c.find(); !slices.Equal(lost, c.want) || all != c.all {
			t.Errorf("%s: got %q among %d, want %q among %d", c.name, lost, all, c.want, c.all)
		}
	}
}
