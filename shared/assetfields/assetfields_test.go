package assetfields_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry.example/client"
	"asset-registry/shared/assetfields"
	"asset-registry/shared/testing/expect"
)

// TestEachRowIsWhole looks for rows that lack what the derived places need.
func TestEachRowIsWhole(t *testing.T) {
	named := map[string]bool{}
	assetfields.Asset.Each(func(rows []assetfields.Field) {
		for _, f := range rows {
			if f.Uk != "" && f.En != "" {
				named[f.Name] = true
			}
		}
	})
	columns := map[string]bool{}
	assetfields.Asset.Each(func(rows []assetfields.Field) {
		path := assetfields.Path(rows)
		f := rows[len(rows)-1]
		base := strings.TrimSuffix(strings.TrimSuffix(f.Name, "_en"), "_ru")
		if f.Kind == "" || f.About == "" {
			t.Errorf("%s: got the kind %q and the sentence %q, want both", path, f.Kind, f.About)
		}
		if f.Is.Has(assetfields.Dropped) && f.Default == "" {
			return
		}
		expect.ErrorIf(t, base == f.Name && f.Example == nil, "%s: got no example, want one", path)
		expect.ErrorIf(t, !named[base], "%s: got no name in two languages, want one", path)
		if f.Column != 0 && len(rows) == 1 {
			if columns[string(rune(f.Column))] {
				t.Errorf("%s: got the column %d of another field, want a column of its own", path, f.Column)
			}
			columns[string(rune(f.Column))] = true
		}
	})
}

// TestTheStructsOfTheClientHaveTheFields compares the list of fields with the structs of the Go client.
func TestTheStructsOfTheClientHaveTheFields(t *testing.T) {
	want := map[string]bool{}
	assetfields.Asset.Each(func(rows []assetfields.Field) {
		if f := rows[len(rows)-1]; !f.Is.Has(assetfields.Dropped) || f.Default != "" {
			want[assetfields.Path(rows)] = true
		}
	})
	got := map[string]bool{}
	var look func(path string, of reflect.Type)
	look = func(path string, of reflect.Type) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		inner := 0
		if of.Kind() == reflect.Struct {
			for f := range of.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "" || name == "-" {
					continue
				}
				inner++
				if name != "previousVersions" && name != "thumbnails" { // only in answers; not stored
					look(strings.TrimPrefix(path+"."+name, "."), f.Type)
				}
			}
		}
		if inner == 0 {
			got[path] = true
		}
	}
	look("", reflect.TypeFor[client.Asset]())
	expect.NoDiff(t, cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))),
		"the fields of client.Asset differ from the list")
}
