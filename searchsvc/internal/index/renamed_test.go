package index

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// TestRenamedPlacesAreFoundByBothNames asks for a renamed town by its former and its present name, in words, exactly, in
// quotes and by the filter. Facets must show what records say.
// Promises: renamed-places
func TestRenamedPlacesAreFoundByBothNames(t *testing.T) {
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { expect.Try(t, x.Close()) })
	change := replica.Change{State: stateAt(2e15)}
	for n, address := range [][]string{
		{"м. Димитров", "Донецька область", "вул. Миру"}, {"м. Мирноград", "Донецька область", "вул. Миру"},
		{"с. Мирноград", "Сумська область", "вул. Димитрова"}, {"м. Торецьк", "Донецька область", ""},
		{"смт Дзержинськ", "Житомирська область", ""}, {"м. Самар", "Дніпропетровська область", ""},
		{"с. Визирка, Лиманський р-н", "Одеська область", ""}, {"Лиманський район", "Донецька область", ""},
	} {
		text := expect.Get(json.Marshal(map[string]any{
			"id": idOf(n + 1), "dateModified": stamp(1e15 + int64(n)), "status": "active", "title": "гараж",
			"items": []any{map[string]any{"address": map[string]any{"locality": address[0], "region": address[1], "streetAddress": address[2]}}},
		}))(t)
		change.Entries = append(change.Entries, replica.Entry{ID: idOf(n + 1), Position: 1e15 + int64(n), JSON: text})
	}
	expect.OK(t, x.Apply(change))
	for query, want := range map[string][]int{
		"q=Мирноград": {1, 2, 3}, "q=гараж Димитров": {1, 2, 3}, "q=Димитров&exact=1": {1, 2, 3}, `q="Димитров"`: {1, 2, 3},
		"locality=Димитров": {1, 2}, "locality=місто Мирноград": {1, 2, 3}, "locality=Мирноград&region=Донецька": {1, 2},
		"q=Дзержинськ": {5}, "q=Дзержинськ Донецька": {4}, "q=Дзержинськ&region=Донецька": {4}, "q=у Дзержинську Донецької обл": {4},
		"q=Дзержинськ Житомирська": {5}, "q=Торецьк": {4}, "locality=Дзержинськ": {5}, "locality=Торецьк": {4},
		"q=Новомосковск": {6}, "q=купити гараж Новомосковську": {6}, "q=Дніпропетровськ Донецька": nil,
		"q=Комінтернівський район Одеська": {7}, "q=гараж Комінтернівський р-н Одеська обл": {7}, "q=Комінтернівський район": nil,
		"q=Краснолиманський район": {8}, "locality=Краснолиманський район": {8},
	} {
		q := expect.Get(search.Parse(expect.Get(url.ParseQuery(query))(t), nil))(t)
		var got []string
		for _, h := range mustSearch(t, x, q).Hits {
			got = append(got, h.ID)
		}
		var ids []string
		for _, n := range want {
			ids = append(ids, idOf(n))
		}
		if slices.Sort(got); !slices.Equal(got, ids) {
			t.Errorf("%s: got %v, want the assets %v", query, got, want)
		}
	}
	q := search.Query{Facets: []search.FacetName{search.ByLocality}}
	if r := mustSearch(t, x, q); len(r.Facets[0].Values) != 7 {
		t.Errorf("got the localities %+v, want the 7 of the records", r.Facets[0].Values)
	}
}
