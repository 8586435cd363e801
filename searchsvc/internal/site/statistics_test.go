package site_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
)

// TestStatisticsAreThoseOfASearch requests the statistics of all assets and of a search. The page must have the
// numbers of this search, and each number must be a link to the search for its assets.
func TestStatisticsAreThoseOfASearch(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	_, all := get(t, s, "/en/statistics")
	mustHave(t, html.UnescapeString(all), "Assets in the registry", `href="/en/?status=active"`,
		`href="/en/?published_from=2026-11-01&published_to=2026-11-30">Nov 2026</a>`)
	mustLack(t, all, "Assets found", "noindex")

	_, some := get(t, s, "/en/statistics?q=house&status=active&region=київська+область&published_from=2026-11-05")
	some = html.UnescapeString(some)
	const rest = "published_from=2026-11-05&q=house&region=%D0%BA%D0%B8%D1%97%D0%B2%D1%81%D1%8C%D0%BA%D0%B0"
	mustHave(t, some, "Assets found <bdi>«house»</bdi>", "noindex", `href="/en/?`+rest+`&status=active">1,234</a>`,
		`href="/en/?`+rest+`&status=active">Up for sale</a>`, `href="/en/statistics.xlsx?`+rest+`&status=active"`,
		`href="/en/?published_from=2026-11-05&published_to=2026-11-30&q=house&`,
		`href="/en/statistics?`+rest+`"><span class="hidden">Remove the filter:</span> <span class="chip-name">State</span> <bdi>Up for sale`, `href="/en/statistics"`)
	mustLack(t, some, "Assets in the registry", `&status=pending">`)
	asked := f.queries()[len(f.queries())-1]
	if asked.Limit != 0 || asked.Apart || asked.Text != "house" || len(asked.Filters.ValuesOf(search.ByStatus)) != 1 {
		t.Errorf("got the question %+v, want counts of the search", asked)
	}

	for i := range f.result.Facets {
		if facet := &f.result.Facets[i]; facet.Name == search.ByClassification {
			facet.Values = []search.Count{
				{Value: "04", Count: 9, Area: 1284.6}, {Value: "06", Count: 3, Area: 2_500_000, Pieces: 7}, {Value: "07", Count: 1, Area: 45.678},
			}
		}
	}
	_, sums := get(t, s, "/en/statistics?q=field")
	mustHave(t, html.UnescapeString(sums), `href="/en/?classification=04&q=field&quantity_unit=m2&sort=-area">1,285 m²</a></span>`,
		`href="/en/?classification=06&q=field&quantity_unit=m2&sort=-area">250 ha</a> · `+
			`<a href="/en/?classification=06&q=field&quantity_unit=pieces">7 pcs</a>`, `>45.68 m²<`)
	_, ranged := get(t, s, "/uk/statistics?quantity_from=2&quantity_unit=ha")
	mustHave(t, html.UnescapeString(ranged), `href="/uk/?classification=04&quantity_from=2&quantity_unit=ha&sort=-area">1 285 м²</a>`)
	if asked := f.queries(); !asked[len(asked)-1].Sums {
		t.Error("got a question without sums, want areas and pieces")
	}

	_, found := get(t, s, "/en/?q=house&status=active")
	mustHave(t, html.UnescapeString(found), `href="/en/statistics?q=house&`)
	if resp, _ := get(t, s, "/en/statistics?status=none"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d for a state that does not exist, want 400", resp.StatusCode)
	}
}

// TestChartsHaveAllRegionsAndTheFirstOfOthers has 40 values of each property. The chart of regions must show 30 of
// them, and the other charts the first 10. If the request asks for more, a chart must show all 40.
func TestChartsHaveAllRegionsAndTheFirstOfOthers(t *testing.T) {
	f := newFound()
	for i := range f.result.Facets {
		values := make([]search.Count, 40)
		for n := range values {
			values[n] = search.Count{Value: fmt.Sprintf("%02d", n+4), Count: 5}
		}
		f.result.Facets[i].Values = values
	}
	s := newSite(t, newRegistry(whole), f)
	const more = `href="/en/statistics?more=classification&q=a#by-classification">Show more</a>`
	for _, c := range []struct {
		path                  string
		regions, kinds, limit int
	}{{"?q=a", 30, 10, 30}, {"?q=a&more=classification", 30, 40, 100}, {"", 30, 10, 30}, {"?more=classification", 30, 40, 100}, {"?q=b&more=none", 30, 10, 30}} {
		_, body := get(t, s, "/en/statistics"+c.path)
		for chart, want := range map[string]int{"region": c.regions, "classification": c.kinds} {
			_, rows, _ := strings.Cut(html.UnescapeString(body), `<h2 id="by-`+chart)
			rows, _, _ = strings.Cut(rows, "</section>")
			if got := strings.Count(rows, `scope="row"`); got != want+2 {
				t.Errorf("%q: got %d rows of %s, want %d and the two last ones", c.path, got, chart, want)
			}
			if has := strings.Contains(rows, "Show more"); has != (chart == "classification" && want == 10) {
				t.Errorf("%q: got a link to more rows of %s: %t", c.path, chart, has)
			}
		}
		if c.path == "?q=a" {
			mustHave(t, html.UnescapeString(body), more)
		}
		if asked := f.queries(); asked[len(asked)-1].FacetLimit != c.limit {
			t.Errorf("%q: got %d values asked for, want %d", c.path, asked[len(asked)-1].FacetLimit, c.limit)
		}
	}
}
