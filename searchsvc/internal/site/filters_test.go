package site_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
)

// TestAFilterHasAllItsValues has facets with 27 regions and 40 localities. The page must show all regions and 10
// localities, and all localities if somebody asks for more.
func TestAFilterHasAllItsValues(t *testing.T) {
	f := newFound()
	many := func(name search.FacetName, values int) search.Facet {
		facet := search.Facet{Name: name}
		for n := range values {
			facet.Values = append(facet.Values, search.Count{Value: fmt.Sprintf("v%02d", n), Count: int64(100 - n)})
		}
		return facet
	}
	f.result.Facets = []search.Facet{many(search.ByRegion, 27), many(search.ByLocality, 40)}
	s := newSite(t, newRegistry(whole), f)
	for _, c := range []struct {
		path                       string
		regions, localities, limit int
		has                        []string
	}{
		{"/uk/", 27, 10, 30, []string{`<button type="submit" class="quiet" form="search" name="more" value="locality">`,
			`Інший населений пункт <input name="locality"`}},
		{"/uk/?more=locality", 27, 40, 100, []string{`<aside class="filters open"`}},
		{"/uk/?more=nothing", 27, 10, 30, nil},
	} {
		_, body := get(t, s, c.path)
		body = html.UnescapeString(body)
		regions := strings.Count(body, `type="checkbox" name="region"`)
		localities := strings.Count(body, `type="checkbox" name="locality"`)
		if regions != c.regions || localities != c.localities {
			t.Errorf("%s: got %d regions and %d localities, want %d and %d", c.path, regions, localities, c.regions, c.localities)
		}
		mustHave(t, body, c.has...)
		mustLack(t, body, "не знає параметра")
		if asked := f.queries(); asked[len(asked)-1].FacetLimit != c.limit {
			t.Errorf("%s: got %d values asked for, want %d", c.path, asked[len(asked)-1].FacetLimit, c.limit)
		}
	}
}

// TestFiltersAreAskedAsFacetsHaveThem sends values of filters, also numbers, in the spellings that people use. The
// search must get the values in the form that facets have.
func TestFiltersAreAskedAsFacetsHaveThem(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	_, body := get(t, s, "/uk/?region=Київська+область&region=київська&locality=м.+Ізмаїл&custodian=00032945&custodian=UA-EDR-1")
	mustHave(t, html.UnescapeString(body), "Фільтри (4)")
	asked := f.queries()[len(f.queries())-1]
	for name, want := range map[search.FacetName][]string{
		search.ByRegion: {"київська"}, search.ByLocality: {"ізмаїл"}, search.ByCustodian: {"UA-EDR-00032945", "UA-EDR-1"},
	} {
		if got := asked.Filters.ValuesOf(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if !asked.Apart {
		t.Error("got counts that a filter narrows, want the counts of all values that may be chosen")
	}
}

// TestQuantitiesHaveAUnit filters by a unit of quantities. The page must show the unit as chosen and a link that
// removes the filter, and keep the order by area. An unknown unit must be refused.
func TestQuantitiesHaveAUnit(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	for path, want := range map[string][]string{
		"/uk/?quantity_from=2&quantity_unit=ha&sort=-area": {`<option value="ha" selected>га</option>`, `value="-area" selected>Найбільша площа<`,
			`href="/uk/?quantity_from=2&sort=-area"><span class="hidden">Прибрати фільтр:</span> <span class="chip-name">Одиниця</span> <bdi>га`},
		"/en/?quantity_unit=pieces": {`<option value="pieces" selected>pieces</option>`, `Remove the filter:</span> <span class="chip-name">Unit</span> <bdi>pieces`},
		"/en/":                      {`<option value="" selected>any</option><option value="m2">m²</option>`},
	} {
		_, body := get(t, s, path)
		mustHave(t, html.UnescapeString(body), want...)
	}
	if resp, _ := get(t, s, "/uk/?quantity_unit=acre"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d for a unit that there is not, want 400", resp.StatusCode)
	}
}

// TestAPageHasAsManyAssetsAsChosen chooses how many assets a page shows (the parameter `limit`). The links of the page,
// and the link back from an asset, must have the same limit. The links to statistics and to the feed must not have
// it.
func TestAPageHasAsManyAssetsAsChosen(t *testing.T) {
	for _, c := range []struct {
		path string
		rows int
	}{
		{"/uk/?q=x", 20}, {"/uk/?q=x&limit=50", 50}, {"/en/?q=x&limit=100", 100}, {"/uk/?q=x&limit=101", 20},
		{"/uk/?q=x&limit=7", 20}, {"/uk/?q=x&limit=many", 20},
	} {
		f := newFound()
		f.result.Next = &search.Cursor{Sort: search.ByRelevance, Key: 5, At: 1}
		resp, body := get(t, newSite(t, newRegistry(whole), f), c.path)
		body = html.UnescapeString(body)
		if asked := f.queries()[0].Limit; asked != c.rows || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d and %d assets asked for, want %d", c.path, resp.StatusCode, asked, c.rows)
		}
		if c.rows == search.DefaultLimit {
			mustHave(t, body, `<option value="" selected>20</option><option value="50">50</option>`)
			mustLack(t, body, "limit=")
			continue
		}
		limit := fmt.Sprintf("limit=%d", c.rows)
		mustHave(t, body, fmt.Sprintf(`<option value="%d" selected>`, c.rows), `/?`+limit+`&q=x&search_after=`,
			`?back=`+url.QueryEscape(limit+"&q=x"), `/api/2.5/search?`+limit+`&q=x`, `/statistics?q=x"`, `/feed.atom?q=x"`)
	}
	back := url.QueryEscape("limit=50&q=x")
	_, asset := get(t, newSite(t, newRegistry(whole), newFound()), "/uk/assets/"+id+"?back="+back)
	mustHave(t, html.UnescapeString(asset), `href="/uk/?limit=50&q=x"`)
}
