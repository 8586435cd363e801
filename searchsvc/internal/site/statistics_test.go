package site_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
)

// TestStatisticsAreThoseOfASearch reads the figures of all assets and those of a search, whose numbers lead to
// searches.
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
		`href="/en/?`+rest+`&status=pending">`,
		`href="/en/?published_from=2026-11-05&published_to=2026-11-30&q=house&`,
		`href="/en/statistics?`+rest+`" aria-label="Remove the filter: State, Up for sale"`, `href="/en/statistics"`)
	mustLack(t, some, "Assets in the registry")
	asked := f.queries()[len(f.queries())-1]
	if asked.Limit != 0 || !asked.Apart || asked.Text != "house" || len(asked.Filters.ValuesOf(search.ByStatus)) != 1 {
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

// TestAllRegionsAreOpenAndLongChartsFold has 27 values of each property.
func TestAllRegionsAreOpenAndLongChartsFold(t *testing.T) {
	f := newFound()
	for i := range f.result.Facets {
		values := make([]search.Count, 27)
		for n := range values {
			values[n] = search.Count{Value: fmt.Sprintf("%02d", n+4), Count: 5}
		}
		f.result.Facets[i].Values = values
	}
	_, body := get(t, newSite(t, newRegistry(whole), f), "/en/statistics")
	for _, c := range []struct {
		chart        string
		open, folded int
	}{{"region", 27, 0}, {"classification", 10, 17}} {
		_, chart, _ := strings.Cut(body, `<h2 id="by-`+c.chart)
		chart, _, _ = strings.Cut(chart, "</section>")
		open, folded, _ := strings.Cut(chart, "<details><summary>17 more</summary>")
		if got, rest := strings.Count(open, `scope="row"`), strings.Count(folded, `scope="row"`); got != c.open || rest != c.folded {
			t.Errorf("%s: got %d open rows and %d folded ones, want %d and %d", c.chart, got, rest, c.open, c.folded)
		}
	}
}
