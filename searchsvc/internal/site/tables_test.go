package site

import (
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/export"
	"asset-registry/shared/testing/expect"
)

// textsOf returns the names of the texts that a template uses, and the names that the table lacks.
func textsOf(template string, table map[string]text) (all, lost []string) {
	for _, m := range regexp.MustCompile(`\bt "([^"]+)"`).FindAllStringSubmatch(template, -1) {
		all = append(all, m[1])
		if _, known := table[m[1]]; !known {
			lost = append(lost, m[1])
		}
	}
	return all, lost
}

// halfTexts returns the names of the texts that a table has in one language only, or in none.
func halfTexts(table map[string]text) (found []string) {
	for name, text := range table {
		if text.uk == "" || text.en == "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// TestLostTextsAreFound checks a table that lacks texts and translations, and a template that uses the texts.
func TestLostTextsAreFound(t *testing.T) {
	table := map[string]text{"a.b": {uk: "\u0430", en: "a"}, "Other-1": {en: "o"}, "d": {uk: "\u0434"}}
	all, lost := textsOf(`{{t "a.b"}} {{- if eq (t "Other-1") .Text}} {{.Start "x"}} {{$.t "c" | print}}`, table)
	if want := []string{"a.b", "Other-1", "c"}; !slices.Equal(all, want) || !slices.Equal(lost, want[2:]) {
		t.Errorf("got the texts %q, lost %q, want %q and the last of them", all, lost, want)
	}
	if got, want := halfTexts(table), []string{"Other-1", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q in one language, want %q", got, want)
	}
}

func TestEveryTextIsThereInBothLanguages(t *testing.T) {
	if half := halfTexts(texts); len(half) > 0 {
		t.Errorf("got %q in one language or none, want both languages", half)
	}
	used := 0
	names, err := fs.Glob(embedded, "templates/*.html")
	expect.OK(t, err)
	for _, file := range names {
		content, err := embedded.ReadFile(file)
		expect.OK(t, err)
		all, lost := textsOf(string(content), texts)
		used += len(all)
		expect.ErrorIf(t, len(lost) > 0, "%s: got no texts %q, want all", file, lost)
	}
	expect.ErrorIf(t, used < 50, "got %d texts in templates, want at least 50", used)
	var made []string // names that templates or code put together from a value
	for _, name := range append(search.FilterParams(), "q", "sort", "search_after") {
		made = append(made, "filter."+name)
	}
	for _, name := range facetsOf() {
		if made = append(made, "filter."+string(name)); isTyped(name) {
			made = append(made, "search.type."+string(name))
		}
	}
	for _, name := range statisticsOf {
		made = append(made, "statistics.by."+string(name))
	}
	for _, sort := range search.Sorts {
		made = append(made, "sort."+string(sort))
	}
	for _, file := range export.Whole {
		made = append(made, "data.file."+file.Name)
	}
	for _, name := range made {
		if _, known := texts[name]; !known {
			t.Errorf("got no text %s, want one", name)
		}
	}
}

func TestEveryFieldHasAName(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			if _, known := fields[strings.TrimSuffix(strings.TrimSuffix(name, "_en"), "_ru")]; !known {
				t.Errorf("got no name of the field %s of %s, want one", name, of)
			}
			look(of.Field(i).Type)
		}
	}
	look(reflect.TypeFor[client.Asset]())
	for _, status := range assetfilter.Statuses {
		for _, l := range Langs() {
			if word(l, "status", string(status)) == string(status) {
				t.Errorf("got no name of the state %s in %s, want one", status, l)
			}
		}
	}
}

// TestNoTextOfAScriptHasTwoLines checks that no string in a script spans several lines, because the function
// lean could remove some of these lines.
func TestNoTextOfAScriptHasTwoLines(t *testing.T) {
	names, err := fs.Glob(embedded, "assets/*.js")
	expect.FatalIf(t, err != nil || len(names) < 3, "got the scripts %q, %v, want all", names, err)
	for _, name := range names {
		content, err := embedded.ReadFile(name)
		expect.OK(t, err)
		for line := range strings.Lines(string(content)) {
			if strings.Count(line, "`")%2 != 0 || strings.Contains(line, "/*") {
				t.Errorf("%s: got %q, want a text that ends in its line, and comments of whole lines", name, line)
			}
		}
	}
	if got := string(lean([]byte("  // a\n\n  b(\"//c\");\n\td; // e\n"), ".js")); got != "b(\"//c\");\nd; // e" {
		t.Errorf("got %q, want the lines without a comment and without indentation", got)
	}
	if got := string(lean([]byte("a, b > c {\n  d: e 1px;\n}\nf :not(g) { h: i; }"), ".css")); got != "a,b > c{d:e 1px}f :not(g){h:i}" {
		t.Errorf("got the style %s, want one without blanks around signs", got)
	}
}
