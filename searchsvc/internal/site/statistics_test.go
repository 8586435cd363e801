package site_test

import (
	"html"
	"net/http"
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

	_, found := get(t, s, "/en/?q=house&status=active")
	mustHave(t, html.UnescapeString(found), `href="/en/statistics?q=house&`)
	if resp, _ := get(t, s, "/en/statistics?status=none"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d for a state that does not exist, want 400", resp.StatusCode)
	}
}
