package site_test

import (
	"encoding/xml"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// TestTheFormLeavesNothingEmpty sends forms as browsers without script do. The canonical address has no empty
// parameters, and one redirect leads to it.
func TestTheFormLeavesNothingEmpty(t *testing.T) {
	s := newSite(t, newRegistry(whole), newFound())
	for path, want := range map[string]string{
		"/uk/?q=&sort=&region=київ&custodian=": "/uk/?" + url.Values{"region": {"київ"}}.Encode(),
		"/en/?q=&limit=": "/en/", "/?q=a&status": "/?q=a",
		"/en/?limit=50&utm_source=x&q=":         "/en/?limit=50&utm_source=x",
		"/uk/?quantity_to=1+000&quantity_from=": "/uk/?quantity_to=1000",
	} {
		resp, _ := get(t, s, path)
		if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != want {
			t.Errorf("%s: got %d to %q, want 302 to %q", path, resp.StatusCode, resp.Header.Get("Location"), want)
		}
		again, _ := get(t, s, want)
		expect.Equal(t, again.StatusCode, http.StatusOK, "%s", want)
	}
	resp, _ := get(t, s, "/uk/?q=&region=%zz")
	expect.Equal(t, resp.StatusCode, http.StatusBadRequest, "an empty parameter beside a fault")
}

// TestNumbersAreReadAsPeopleWriteThem sends quantities with commas and blanks to each page that has a search. A number
// that cannot be read is a fault, and the page keeps the other filters and marks the field.
func TestNumbersAreReadAsPeopleWriteThem(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	for _, c := range []struct {
		lang, text string
		want       float64 // -1: a fault
	}{
		{"uk", "0,5", 0.5}, {"uk", "1 000", 1000}, {"uk", "12\u00a0500,25", 12500.25}, {"uk", "1\u202f000", 1000}, {"uk", "2.5", 2.5},
		{"uk", "1,000", 1}, {"en", "1,000", -1}, {"en", "0,125", 0.125}, {"uk", "1,2,3", -1}, {"en", "багато", -1}, {"uk", "1.000,5", -1},
	} {
		for _, page := range []string{"/", "/statistics", "/feed.atom", "/statistics.csv"} {
			resp, body := get(t, s, "/"+c.lang+page+"?"+url.Values{"quantity_from": {c.text}, "status": {"active"}}.Encode())
			asked := f.queries()[len(f.queries())-1]
			switch from := asked.Filters.Quantity.From; {
			case c.want < 0 && resp.StatusCode != http.StatusBadRequest, c.want >= 0 && resp.StatusCode != http.StatusOK:
				t.Errorf("%s: %s: got %d", page, c.text, resp.StatusCode)
			case c.want >= 0 && (from == nil || *from != c.want):
				t.Errorf("%s: %s: got the question %v, want %v", page, c.text, from, c.want)
			case c.want < 0 && page == "/":
				mustHave(t, body, `name="quantity_from" form="search" value="`+html.EscapeString(c.text)+`" aria-invalid="true" aria-describedby="wrong"`,
					`value="active" form="search" checked`)
				mustHave(t, body, `class="filters open"`) // also on a phone
				mustLack(t, body, `<ol class="hits">`, `name="quantity_to" form="search" value="" aria`)
			}
		}
	}
	_, body := get(t, s, "/en/?status=x&region=київ&q=a")
	mustHave(t, body, `value="київ" form="search" checked`, `value="a" maxlength`)
	_, body = get(t, s, "/en/?published_from=x&published_to=2026-11-25")
	mustHave(t, body, `name="published_from" form="search" value="" aria-invalid`, `name="published_to" form="search" value="2026-11-25">`)
	_, body = get(t, s, "/en/?regoin=x")
	mustHave(t, body, `id="wrong"`, `name="status"`)
}

// TestTheDoorsStandBesideTheCount looks for files, feeds and the data where people look for them.
func TestTheDoorsStandBesideTheCount(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	_, body := get(t, s, "/en/?q=house&status=active&sort=-area")
	_, head, _ := strings.Cut(html.UnescapeString(body), `id="found"`)
	head, _, _ = strings.Cut(head, `<div class="chips">`)
	mustHave(t, head, `href="/en/search.xlsx?q=house`, `href="/en/search.csv?`, `href="/api/2.5/search.geojson?`,
		`href="/en/feed.atom?q=house&sort=-modified&status=active">new and changed</a>`,
		`href="/en/feed.atom?q=house&sort=-published&status=active">new only</a>`)
	for _, page := range []string{"/en/", "/en/about", "/en/assets/" + id, "/en/nothing"} {
		_, body := get(t, s, page)
		expect.Equal(t, strings.Count(body, `href="/en/data"`), 2+strings.Count(page, "about"), "%s: links to the data", page)
	}
	hit := strings.Index(body, `class="hits"`)
	if quantity, kind := strings.Index(body[hit:], "m²"), strings.Index(body[hit:], `class="soft"`); quantity < 0 || quantity > kind {
		t.Errorf("got the quantity at %d, want it before the grey lines at %d", quantity, kind)
	}
	f.result.Total, f.result.Hits = 0, nil
	_, body = get(t, s, "/uk/?q=house")
	expect.Equal(t, strings.Count(plainText(body), "Нічого не знайдено"), 1, "sentences about nothing")
	mustLack(t, plainText(body), "Знайдено 0")
}

// atomFeed is what the tests read of a feed.
type atomFeed struct {
	Title   string `xml:"title"`
	Updated string `xml:"updated"`
	Entries []struct {
		ID      string `xml:"id"`
		Title   string `xml:"title"`
		Updated string `xml:"updated"`
		Link    struct {
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Summary string `xml:"summary"`
	} `xml:"entry"`
}

func readAtom(t *testing.T, body string) (f atomFeed) {
	t.Helper()
	expect.OK(t, xml.Unmarshal([]byte(body), &f))
	return f
}

// TestAFeedSaysItsSearchAndItsNews reads feeds of searches.
func TestAFeedSaysItsSearchAndItsNews(t *testing.T) {
	f := newFound()
	f.result.Facets[1].Chosen = []search.Count{{Value: "київ", Name: "Київ"}}
	s := newSite(t, newRegistry(whole), f)
	_, body := get(t, s, "/en/feed.atom?q=house&region=Київ&published_from=2026-11-01")
	all := readAtom(t, body)
	for _, want := range []string{"house; Region: Київ; ", "2026-11-01", " – Asset registry"} {
		expect.ErrorIf(t, !strings.Contains(all.Title, want), "got the title %q, want %q in it", all.Title, want)
	}
	if e := all.Entries[0]; !strings.HasPrefix(e.Title, "Changed: Non-") || e.Updated != "2026-11-22T13:00:00.000001Z" {
		t.Errorf("got %+v, want a changed asset", e)
	}
	_, body = get(t, s, "/uk/feed.atom?sort=-published")
	news := readAtom(t, body)
	asked := f.queries()[len(f.queries())-1]
	if e := news.Entries[0]; asked.Sort != search.LatestPublished || e.Updated >= all.Entries[0].Updated || news.Updated != e.Updated {
		t.Errorf("got %+v and the order %s, want the time of the publication", news, asked.Sort)
	}
	f.result.Hits[0].Asset = changed(t, func(a map[string]any) {
		a["rectificationPeriod"] = map[string]any{"startDate": "2026-11-22T14:59:59.9+02:00"}
	})
	_, body = get(t, s, "/uk/feed.atom")
	if e := readAtom(t, body).Entries[0]; !strings.HasPrefix(e.Title, "Нове: ") {
		t.Errorf("got %+v, want a new asset", e)
	}
}

// TestARecordHasAFeed reads the feed of a record. It has the public changes, with links to the record after each.
func TestARecordHasAFeed(t *testing.T) {
	r := newRegistry(whole, with(t, "Паспорт, перша", "Паспорт, друга"))
	s := newSite(t, r, newFound())
	_, page := get(t, s, "/en/assets/"+id)
	mustHave(t, page, `href="/en/assets/`+id+`/feed.atom">Follow this record`, `type="application/atom+xml"`)
	_, body := get(t, s, "/en/assets/"+id+"/feed.atom")
	feed := readAtom(t, body)
	if len(feed.Entries) != 2 || !strings.HasSuffix(feed.Entries[0].Link.Href, "/en/assets/"+id+"/changes/2") ||
		!strings.HasPrefix(feed.Entries[0].Title, "Changed: ") || !strings.Contains(feed.Entries[0].Summary, "Document") ||
		!strings.HasPrefix(feed.Entries[1].Title, "The record was published: ") {
		t.Errorf("got %+v, want two changes", feed.Entries)
	}
	r.hasLog = false
	resp, _ := get(t, s, "/en/assets/"+id+"/feed.atom")
	expect.Equal(t, resp.StatusCode, http.StatusNotFound, "without a log")
	_, page = get(t, s, "/en/assets/"+id)
	mustLack(t, page, "/feed.atom")
}
