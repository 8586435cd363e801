package docspage

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// read returns an embedded file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := embedded.ReadFile(name)
	expect.OK(t, err)
	return string(text)
}

// Promises: docs-ukrainian
func TestEachGuideHasTheSameExamplesAndLinksInBothLanguages(t *testing.T) {
	// A translation must keep examples, conditions, values, links, tables and lists.
	kept := regexp.MustCompile(`\{\{[^}]*\}\}|href="[^"]*"|</?(?:table|tr|ul|ol|li|h3|figure)\b|<td|<th`)
	examples := 0
	for _, g := range guides {
		english, ukrainian := kept.FindAllString(read(t, "guides/en/"+g.name+".html"), -1),
			kept.FindAllString(read(t, "guides/uk/"+g.name+".html"), -1)
		if diff := cmp.Diff(english, ukrainian); diff != "" {
			t.Errorf("%s differs (-English +Ukrainian):\n%s", g.name, diff)
		}
		examples += strings.Count(strings.Join(english, ""), "{{template")
		for _, text := range []string{"guides/en/", "guides/uk/"} {
			if strings.Contains(read(t, text+g.name+".html"), "<pre") {
				t.Errorf("%s%s: got an example in the guide, want it in the examples, which both languages share", text, g.name)
			}
		}
	}
	expect.ErrorIf(t, examples < 25, "got %d examples, want at least 25", examples)
}

func TestEachTextIsTranslatedAndUsed(t *testing.T) {
	var used strings.Builder
	for _, folder := range []string{"templates", "examples"} {
		entries, err := embedded.ReadDir(folder)
		expect.OK(t, err)
		for _, e := range entries {
			used.WriteString(read(t, folder+"/"+e.Name()))
		}
	}
	for _, g := range guides {
		fmt.Fprintf(&used, "{{t %q}}", g.title)
	}
	for text := range ukrainian { // a missing translation already fails when the page is made
		if !strings.Contains(used.String(), fmt.Sprintf("{{t %q}}", text)) {
			t.Errorf("got the translation of %q, which no page has", text)
		}
	}
	script := read(t, "assets/docs.js")
	table := regexp.MustCompile(`(?s)const ukrainian = \{.*?\};`).FindString(script)
	called := regexp.MustCompile(`\bt\(("[^"]+")\)`).FindAllStringSubmatch(script, -1)
	for _, call := range called {
		if !strings.Contains(table, call[1]+": ") {
			t.Errorf("got no translation of %s in the script, want one", call[1])
		}
	}
	expect.ErrorIf(t, len(called) < 8, "got %d texts in the script, want at least 8", len(called))
}
