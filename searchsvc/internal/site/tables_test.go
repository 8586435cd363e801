package site

import (
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
)

func TestEveryTextIsThereInBothLanguages(t *testing.T) {
	for name, text := range texts {
		if text.uk == "" || text.en == "" {
			t.Errorf("got an empty text of %s, want both languages", name)
		}
	}
	used := regexp.MustCompile(`\bt "([a-z.]+)"`)
	names, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		content, err := embedded.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range used.FindAllStringSubmatch(string(content), -1) {
			if _, known := texts[m[1]]; !known {
				t.Errorf("%s: got no text %s, want one", file, m[1])
			}
		}
	}
	var made []string // by a template or by code, from a value
	for _, name := range append(search.FilterParams(), "q", "sort", "search_after") {
		made = append(made, "filter."+name)
	}
	for _, name := range facetsOf() {
		made = append(made, "filter."+string(name))
	}
	for _, name := range statisticsOf {
		made = append(made, "statistics.by."+string(name))
	}
	for _, sort := range search.Sorts {
		made = append(made, "sort."+string(sort))
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
	for _, status := range search.Statuses {
		for _, l := range Langs() {
			if word(l, "status", string(status)) == string(status) {
				t.Errorf("got no name of the state %s in %s, want one", status, l)
			}
		}
	}
}
