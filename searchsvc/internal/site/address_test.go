package site_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

const number = "UA-AR-DGF-2026-11-22-000017" // the complete assetID

// TestAddressesThatPeopleQuoteLeadToThePage requests the page of an asset by its number, by its id in capitals,
// and without a language. Each must redirect to the page.
func TestAddressesThatPeopleQuoteLeadToThePage(t *testing.T) {
	page := "/assets/" + id
	for _, c := range []struct {
		path, language string
		status         int
		to             string
	}{
		{"/uk/assets/" + strings.ToUpper(id), "", 302, "/uk" + page},
		{"/en/assets/" + number, "", 302, "/en" + page},
		{"/uk/assets/" + strings.ToLower(number), "", 302, "/uk" + page},
		{"/uk/assets/UA-AR-DGF-2026-11-22-000018", "", 404, ""},
		{"/uk/assets/UA-AR-" + strings.Repeat("0", 100), "", 404, ""},
		{page, "", 302, "/uk" + page},
		{page, "en-GB", 302, "/en" + page},
		{"/assets/" + strings.ToUpper(id), "de, en;q=0.5", 302, "/en/assets/" + strings.ToUpper(id)},
		{"/assets/" + number, "uk", 302, "/uk/assets/" + number},
		{"/assets/none", "en", 404, ""},
		{"/assets/%2F%2Fforeign.example", "", 404, ""},
		{"/assets/UA-AR-%0D%0ALocation:%20https:%2F%2Fforeign.example", "", 404, ""},
		{"/uk?q=%D0%BB%2F", "", 301, "/uk/?q=%D0%BB%2F"},
		{"/uk/data/", "", 302, "/uk/data"},
		{"/en/statistics/?region=%D0%BB", "", 302, "/en/statistics?region=%D0%BB"},
		{"/uk" + page + "/", "", 302, "/uk" + page},
		{"/uk" + page + "/changes/", "", 302, "/uk" + page + "/changes"},
		{"/uk/nothing/", "", 404, ""},
		{"/uk/about//", "", 404, ""},
		{"/uk//foreign.example/", "", 404, ""},
		{"/uk/%2F%2Fforeign.example/", "", 404, ""},
		{"//foreign.example/..", "", 404, ""},
	} {
		t.Run(c.path+" "+c.language, func(t *testing.T) {
			resp, _ := get(t, newSite(t, newRegistry(whole), newFound()), c.path, "Accept-Language", c.language)
			if to := resp.Header.Get("Location"); resp.StatusCode != c.status || to != c.to {
				t.Errorf("got %d to %q, want %d to %q", resp.StatusCode, to, c.status, c.to)
			}
		})
	}
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	get(t, s, "/uk/assets/"+number)
	if q := f.queries()[0]; q.Text != number || !q.Exact || q.Limit > 20 || len(q.Facets) > 0 {
		t.Errorf("got the question %+v, want one for the number only", q)
	}
	get(t, s, "/uk"+page)
	if asked := len(f.queries()); asked != 1 {
		t.Errorf("got %d searches, want none for a page's own address", asked-1)
	}
	f.err = fault.New(fault.Unavailable, fault.URL, "search", "busy")
	if resp, _ := get(t, s, "/uk/assets/"+number); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %d while the search is busy, want 503", resp.StatusCode)
	}
}

// crumb returns the address to which the link at the top of an asset's page leads.
func crumb(t *testing.T, body string) string {
	t.Helper()
	m := regexp.MustCompile(`<p class="crumbs"><a href="([^"]*)"`).FindStringSubmatch(body)
	expect.FatalIf(t, m == nil, "got no link to a search, want one in: %s", body)
	return html.UnescapeString(m[1])
}

// TestAPageLeadsBackToTheResults follows the link of a hit. The page of the asset must link back to the search.
func TestAPageLeadsBackToTheResults(t *testing.T) {
	s := newSite(t, newRegistry(whole), newFound())
	for _, query := range []string{"q=%D0%B1%D1%83%D0%B4%D0%B8%D0%BD%D0%BE%D0%BA&sort=published&status=active",
		"q=%2F%2Fforeign.example", "region=%D0%BA%D0%B8%D1%97%D0%B2&region=%D0%BB%D1%8C%D0%B2%D1%96%D0%B2", ""} {
		_, results := get(t, s, "/uk/?"+query)
		link := regexp.MustCompile(`href="(/uk/assets/[^"]*)" lang`).FindStringSubmatch(results)
		expect.FatalIf(t, link == nil, "%s: got no hit, want one", query)
		_, body := get(t, s, html.UnescapeString(link[1]))
		expect.Equal(t, crumb(t, body), strings.TrimSuffix("/uk/?"+query, "?"), "the way back")
		english := regexp.MustCompile(`<a href="(/en/assets/[^"]*)"`).FindStringSubmatch(body)
		_, body = get(t, s, html.UnescapeString(english[1]))
		expect.Equal(t, crumb(t, body), strings.TrimSuffix("/en/?"+query, "?"),
			"the way back, after a change of the language")
		mustHave(t, body, `<link rel="canonical" href="http://registry.example/en/assets/`+id+`">`)
	}
}

// TestTheWayBackStaysOnTheSite sends parameters "back" that are not searches of the site. The link back must
// lead to the first page of the search.
func TestTheWayBackStaysOnTheSite(t *testing.T) {
	s := newSite(t, newRegistry(whole), newFound())
	for _, back := range []string{"//foreign.example", "https://foreign.example/?q=a", "/uk/?q=a", "javascript:alert(1)",
		`"><script>alert(1)</script>`, "q=a&next=//foreign.example", "status=none", "q=%zz", "q=a;b", "limit=x", "",
		"q=" + strings.Repeat("a", 3000), strings.Repeat("region=a&", 300)} {
		resp, body := get(t, s, "/uk/assets/"+id+"?"+url.Values{"back": {back}}.Encode())
		if got := crumb(t, body); resp.StatusCode != http.StatusOK || got != "/uk/" {
			t.Errorf("%.50s: got %d with the way back %s, want the first page of the search", back, resp.StatusCode, got)
		}
		mustLack(t, body, "foreign.example", "alert(1)</script>\"")
	}
	_, results := get(t, s, "/uk/?q="+strings.Repeat("%D0%B0", 590)) // the query is too long to be in the link
	mustHave(t, results, `href="/uk/assets/`+id+`" lang`)
}
