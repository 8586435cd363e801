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
	"asset-registry/shared/routes"
)

// textsOf returns the names of the texts that a template uses.
func textsOf(template string) (names []string) {
	for _, m := range regexp.MustCompile(`\bt "([^"]+)"`).FindAllStringSubmatch(template, -1) {
		names = append(names, m[1])
	}
	return names
}

// TestTextsOfATemplateAreFound checks that the function textsOf finds the names that
// TestEveryTextIsThereInBothLanguages needs.
func TestTextsOfATemplateAreFound(t *testing.T) {
	got := textsOf(`{{t "a.b"}} {{- if eq (t "Other-1") .Text}} {{.Start "x"}} {{$.t "c" | print}}`)
	if want := []string{"a.b", "Other-1", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryTextIsThereInBothLanguages(t *testing.T) {
	for name, text := range texts {
		if text.uk == "" || text.en == "" {
			t.Errorf("got an empty text of %s, want both languages", name)
		}
	}
	used := 0
	names, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		content, err := embedded.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range textsOf(string(content)) {
			used++
			if _, known := texts[name]; !known {
				t.Errorf("%s: got no text %s, want one", file, name)
			}
		}
	}
	if used < 50 {
		t.Errorf("got %d texts in templates, want at least 50", used)
	}
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
	for _, path := range routes.Exports {
		_, form, _ := strings.Cut(path, ".")
		made = append(made, "search.export."+form)
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
	if err != nil || len(names) < 3 {
		t.Fatalf("got the scripts %q, %v, want all", names, err)
	}
	for _, name := range names {
		content, err := embedded.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if strings.Count(line, "`")%2 != 0 || strings.Contains(line, "/*") {
				t.Errorf("%s: got %q, want a text that ends in its line, and comments of whole lines", name, line)
			}
		}
	}
	if got := string(lean([]byte("  // a\n\n  b(\"//c\");\n\td; // e\n"), ".js")); got != "b(\"//c\");\nd; // e" {
		t.Errorf("got %q, want the lines without a comment and without indentation", got)
	}
	if got := string(lean([]byte("a, b > c {\n  d: e 1px;\n}\nf :not(g) { h: i; }"), ".css")); got != "a,b > c{d: e 1px;}f :not(g){h: i;}" {
		t.Errorf("got the style %s, want one without blanks around signs", got)
	}
}
