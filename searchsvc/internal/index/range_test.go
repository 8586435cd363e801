package index

import (
	"slices"
	"strconv"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// TestARangeInWordsIsAFilter asks for areas in words. An asset is found if it has the other words and an item in the
// range, or all words in its title; the latter come first. Pages, counts and second tries use the range, too.
// Promises: search-ranges
func TestARangeInWordsIsAFilter(t *testing.T) {
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { _ = x.Close() })
	asset := func(n int, title, text string, units []string, quantities ...int) simple {
		return simple{n: n, position: 1e15 + int64(n), status: client.Active, title: title, text: text,
			regions: slices.Repeat([]string{"Київ"}, len(units)), units: units, quantities: quantities}
	}
	apply(t, x, stateAt(2e15),
		asset(1, "Приміщення 100-200 м²", "", nil),
		asset(2, "Приміщення", "", []string{"MTK", "MTK"}, 900, 150),
		asset(3, "Приміщення", "площа 100-200 м²", []string{"MTK"}, 300),
		asset(4, "Приміщення", "", []string{"MTK", "HAR"}, 90, 1),
		asset(5, "Ділянка", "", []string{"ARE"}, 150),
		asset(6, "Ділянка до 200 м2", "", []string{"HAR"}, 7),
		asset(7, "Приміщення", "", []string{"MTK"}, 160))
	for text, want := range map[string][]int{
		"приміщення 100-200 м²":            {1, 7, 2},
		"приміщення площею від 100 м2":     {7, 4, 3, 2},
		"приміщення понад 1 га":            {4},
		"премещення до 100 м2":             {4},
		"від 1 га":                         {6, 5, 4},
		"ділянка до 200 м2":                {6},
		"ділянка до 2 га":                  {5},
		"приміщення до 80 м2":              nil,
		`"приміщення 100-200 м²"`:          {1, 3},
		"приміщення 100-200":               {1, 3},
		"приміщення від 300 до 400 кв. м.": {3},
	} {
		q, got := search.Query{Text: text, Limit: 1, Sort: search.ByRelevance, Facets: []search.FacetName{search.ByStatus}}, []int(nil)
		for {
			r := mustSearch(t, x, q)
			if r.Total != int64(len(want)) || r.Total > 0 && r.Facets[0].Values[0].Count != r.Total {
				t.Errorf("%q: got %d assets and the counts %v, want %d", text, r.Total, r.Facets, len(want))
			}
			for _, h := range r.Hits {
				n, _ := strconv.ParseInt(h.ID, 16, 64)
				got = append(got, int(n))
			}
			if r.Next == nil {
				break
			}
			c, err := search.ParseCursor(r.Next.String())
			if err != nil {
				t.Fatal(err)
			}
			q.After = &c
		}
		expect.ErrorIf(t, !slices.Equal(got, want), "%q: got the assets %v, want %v", text, got, want)
	}
}
