package site_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// navOf returns the links and the page number at the end of a page of results.
func navOf(body string) string {
	_, rest, _ := strings.Cut(body, `<nav class="pages"`)
	nav, _, _ := strings.Cut(rest, "</nav>")
	return html.UnescapeString(nav)
}

// TestResultsHavePages reads pages of results. If there are several pages, each must have its number. A page
// must have a link to the next page if that page exists, and else none. The same holds for the previous page.
func TestResultsHavePages(t *testing.T) {
	next := &search.Cursor{Sort: search.NewestFirst, At: 5}
	prev := &search.Cursor{Sort: search.NewestFirst, At: 9, Back: true}
	toPrev := `href="/en/?search_after=` + prev.String() + `&status=active" rel="prev"`
	toNext := `href="/en/?search_after=` + next.String() + `&status=active" rel="next"`
	toFirst := `href="/en/?status=active">First page`
	for _, c := range []struct {
		name          string
		total, before int64
		prev, next    *search.Cursor
		has, lacks    []string
	}{
		{"the only page", 1, 0, nil, nil, nil, []string{"Page", "href"}},
		{"the first page", 43, 0, nil, next, []string{"Page 1 of 4", toNext}, []string{`rel="prev"`, "First"}},
		{"the second page", 41, 20, prev, next, []string{"Page 2 of 3", toPrev}, []string{"First"}},
		{"the third page", 1_000_061, 40, prev, next, []string{"Page 3 of 50,004", toPrev, toNext, toFirst}, nil},
		{"a page after others have come", 46, 25, prev, nil, []string{"Page 3 of 4", toPrev, toFirst}, []string{`rel="next"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFound()
			f.result.Total, f.result.Before, f.result.Prev, f.result.Next = c.total, c.before, c.prev, c.next
			_, body := get(t, newSite(t, newRegistry(whole), f), "/en/?status=active")
			nav := navOf(body)
			mustHave(t, nav, c.has...)
			mustLack(t, nav, c.lacks...)
			if title := regexp.MustCompile(`<title>(.*)</title>`).FindStringSubmatch(body)[1]; strings.Contains(title, " – Page ") != (c.before > 0) {
				t.Errorf("got the title %s, want the number of the page from the second on", title)
			}
		})
	}
}

// TestResultsAreFiles looks for a link to a file of each form. A page with a very long query has none.
func TestResultsAreFiles(t *testing.T) {
	s := newSite(t, newRegistry(whole), newFound())
	_, body := get(t, s, "/en/?status=active")
	_, long := get(t, s, "/en/?status=active&q="+strings.Repeat("x", 300))
	for _, path := range []string{"/en/search.csv", "/en/search.xlsx", "/api/2.5/search.geojson"} {
		mustHave(t, body, `<a href="`+path+`?`)
		mustLack(t, long, path)
	}
}

// TestAPageThatHasLostItsAssetsLeadsBack has an empty page, with assets only on the page before it. The empty
// page must say so, and link to the page before.
func TestAPageThatHasLostItsAssetsLeadsBack(t *testing.T) {
	f := newFound()
	f.result.Hits, f.result.Total, f.result.Before = nil, 20, 20
	f.result.Prev = &search.Cursor{Sort: search.NewestFirst, At: 9, Back: true}
	_, body := get(t, newSite(t, newRegistry(whole), f), "/en/?search_after="+search.Cursor{Sort: search.NewestFirst, At: 9}.String())
	mustHave(t, body, "This page has no assets any more.", `rel="prev"`, "Page 2 of 2")
	mustLack(t, body, "The registry has no assets yet.", "Nothing was found")
}

// TestAnAssetLeadsBackToItsPage opens assets of later pages. The asset must link back to its page. If the address
// of the page is too long for a link, the asset must link to the first page.
func TestAnAssetLeadsBackToItsPage(t *testing.T) {
	long := search.Reading{Steps: []search.Step{search.BySynonym}}
	for range 20 {
		long.Words = append(long.Words, search.Word{Text: "слово", By: []string{"=слово"}, Said: "слово"})
	}
	for _, c := range []struct {
		reading search.Reading
		isKept  bool
	}{{search.Reading{}, true}, {long, false}} {
		after := search.Cursor{Sort: search.NewestFirst, At: 5, Back: true, Reading: c.reading}
		page := "/en/?" + url.Values{"search_after": {after.String()}, "status": {"active"}}.Encode()
		s := newSite(t, newRegistry(whole), newFound())
		resp, results := get(t, s, page)
		link := regexp.MustCompile(`href="(/en/assets/[^"]*)" lang`).FindStringSubmatch(results)
		if resp.StatusCode != http.StatusOK || link == nil {
			t.Fatalf("got %d and no hit, want one", resp.StatusCode)
		}
		_, asset := get(t, s, html.UnescapeString(link[1]))
		want := page
		if !c.isKept {
			want = "/en/?status=active"
		}
		expect.Equal(t, crumb(t, asset), want, "the way back")
	}
}
