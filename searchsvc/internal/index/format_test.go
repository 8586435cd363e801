package index

import (
	"reflect"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// TestTheSampleHasEveryField fails if the sample lacks a new field, because the format would then not depend on
// that field.
func TestTheSampleHasEveryField(t *testing.T) {
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch {
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case v.IsZero():
			t.Errorf("%s: got no value in the sample, want one", path)
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			visit(path, v.Index(0))
		}
	}
	visit("asset", reflect.ValueOf(*sample()))
}

// TestEveryPropertyIsInTheIndex checks that the sample has terms and names of each property of the table.
func TestEveryPropertyIsInTheIndex(t *testing.T) {
	terms, _, err := sample().fields(1)
	expect.OK(t, err)
	fields := map[string]bool{wordField: true, titleField: true, positionField: true, publishedField: true, quantityField: true}
	for _, p := range search.Properties {
		for _, field := range []string{p.Field, p.Names} {
			if field == "" {
				continue
			}
			if len(terms[field]) == 0 || fields[field] {
				t.Errorf("%s: got %d terms in the field %q, want some, and in no other's field", p.Name, len(terms[field]), field)
			}
			fields[field] = true
		}
	}
}

// TestTheFormatFollowsTheTable checks that a change of any row of the table changes the format.
func TestTheFormatFollowsTheTable(t *testing.T) {
	before := computeFormat()
	if again := computeFormat(); before != again || len(before) != 16 {
		t.Errorf("got the formats %q and %q, want one of 16 characters", before, again)
	}
	all := search.Properties
	defer func() { search.Properties = all }()
	for name, change := range map[string]func(p *search.Property){
		"a field": func(p *search.Property) { p.Field = "x" }, "a field of names": func(p *search.Property) { p.Names = "x" },
		"the levels": func(p *search.Property) { p.Levels = []int{2, 8} },
	} {
		search.Properties = append([]search.Property(nil), all...)
		change(&search.Properties[3])
		if after := computeFormat(); after == before {
			t.Errorf("%s: got the same format, want another", name)
		}
	}
}
