package site_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

func TestPages(t *testing.T) {
	s := newSite(t, newRegistry(whole), newFound(), logKey)
	for _, test := range []struct {
		path    string
		headers []string
		status  int
		has     []string
	}{
		{"/", nil, 200, []string{`<html lang="uk">`, "У реєстрі 1\u00a0234\u00a0активи"}},
		{"/", []string{"Accept-Language", "de, en-GB;q=0.8, uk;q=0.5"}, 200, []string{`<html lang="en">`}},
		{"/", []string{"Accept-Language", "en;q=x, *"}, 200, []string{`<html lang="uk">`}},
		{"/uk", nil, 301, nil},
		{"/uk/", nil, 200, []string{"Нежитлове приміщення", "Виставлено на продаж", "Київ</bdi> <span class=\"soft\">(1\u00a0200)</span>"}},
		{"/en/", nil, 200, []string{"Non-residential premises", "1,234\u00a0assets", "12,240.50", `href="/uk/"`}},
		{"/uk/?q=будинок&status=active", nil, 200, []string{`value="будинок"`, `Прибрати фільтр:</span> <span class="chip-name">Стан</span> <bdi>Виставлено на продаж`,
			`<meta name="robots" content="noindex, follow">`}},
		{"/uk/?status=draft", nil, 400, []string{"Стан: неправильне значення"}},
		{"/uk/?q=" + strings.Repeat("а+", 70), nil, 400, []string{"до 600 символів"}},
		{"/en/?limit=x&facets=nothing", nil, 200, nil}, // these parameters exist only in the API
		{"/uk/assets/" + id, nil, 200, []string{"UA-AR-DGF-2026-11-22-000017", "12\u00a0240,50", "м²", "Перевірити цей запис"}},
		{"/en/assets/" + id, nil, 200, []string{"Up for sale", "22 November 2026, 15:00", "12,240.50", "m²"}},
		{"/uk/assets/" + strings.Repeat("f", 32), nil, 404, []string{"Сторінку не знайдено"}},
		{"/uk/assets/x", nil, 404, nil},
		{"/uk/nothing", nil, 404, []string{"Сторінку не знайдено"}},
		{"/en/nothing", nil, 404, []string{"Page not found"}},
		{"/nothing", nil, 404, nil},
		{"/uk/statistics", nil, 200, []string{"За областю", "1\u00a0200", "лис 2026", "жов 2026"}},
		{"/en/about", nil, 200, []string{"https://registry.example/api/2.5/search", logKey[:20]}},
		{"/robots.txt", nil, 200, []string{"Sitemap: https://registry.example/sitemap.xml"}},
	} {
		t.Run(test.path+strings.Join(test.headers, " "), func(t *testing.T) {
			headers := append([]string{"X-Registry-Base-Url", "https://registry.example"}, test.headers...)
			resp, body := get(t, s, test.path, headers...)
			expect.Equal(t, resp.StatusCode, test.status, "")
			mustHave(t, html.UnescapeString(body), test.has...)
			policy := resp.Header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") {
				t.Errorf("got the policy %q, want a strict one", policy)
			}
		})
	}
}

// TestThePageHasEachValueOfTheRecord compares the marked parts of the page with the record. Each value must be marked
// exactly once, because the script that checks a record needs it.
func TestThePageHasEachValueOfTheRecord(t *testing.T) {
	want := map[string]string{}
	var record any
	d := json.NewDecoder(strings.NewReader(string(whole)))
	d.UseNumber()
	expect.OK(t, d.Decode(&record))
	flatten("", record, want)
	for _, l := range []string{"uk", "en"} {
		_, body := get(t, newSite(t, newRegistry(whole), newFound(), logKey), "/"+l+"/assets/"+id)
		got := map[string]string{}
		marked := regexp.MustCompile(`<(\w+)[^>]* data-path="([^"]+)"(?: data-value="([^"]*)")?[^>]*>([^<]*)</`)
		for _, m := range marked.FindAllStringSubmatch(body, -1) {
			value := m[4]
			if strings.Contains(m[0], " data-value=") {
				value = m[3]
			}
			if _, twice := got[m[2]]; twice {
				t.Errorf("%s: got %s twice, want it once", l, m[2])
			}
			got[m[2]] = html.UnescapeString(value)
		}
		for path, value := range want {
			if got[path] != value {
				t.Errorf("%s: got %q at %s, want %q", l, got[path], path, value)
			}
		}
		expect.Equal(t, len(got), len(want), "%s: values", l)
	}
}

func flatten(path string, v any, into map[string]string) {
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			flatten(below(name), member, into)
		}
	case []any:
		for i, element := range v {
			flatten(below(fmt.Sprint(i)), element, into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

// harm returns the parts of a page that show that a foreign text was not escaped, and the number of blocks of
// JSON-LD on the page.
func harm(body string) (found []string, blocks int) {
	for _, part := range []string{"<script>alert", "<img", `href="javascript:`, "onerror=alert(1)>\""} {
		if strings.Contains(body, part) {
			found = append(found, part)
		}
	}
	for _, block := range regexp.MustCompile(`(?s)<script type="application/ld\+json">(.*?)</script>`).
		FindAllStringSubmatch(body, -1) {
		blocks++
		var any map[string]any
		if err := json.Unmarshal([]byte(block[1]), &any); err != nil {
			found = append(found, block[1])
		}
	}
	return found, blocks
}

func TestForeignTextsDoNoHarm(t *testing.T) {
	evil := `</script><script>alert(1)</script>"><img src=x onerror=alert(1)>`
	quoted, _ := json.Marshal(evil)
	r := newRegistry(with(t, `"Нежитлове приміщення, 240 м²"`, string(quoted), `"Фонд державного майна"`, string(quoted),
		`"office@example.org"`, `"javascript:alert(1)"`))
	f := newFound()
	f.result.Hits[0].Asset = r.revisions[0].asset
	f.result.Facets[1].Values[0].Name = evil
	s := newSite(t, r, f, logKey)
	shown, all := 0, 0
	for _, path := range []string{"/uk/", "/uk/?q=" + "%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E", "/uk/assets/" + id,
		"/en/assets/" + id, "/uk/statistics", "/uk/feed.atom"} {
		_, body := get(t, s, path)
		found, blocks := harm(body)
		expect.ErrorIf(t, len(found) > 0, "%s: got %q, want no harm", path, found)
		all += blocks
		shown += strings.Count(body, "&lt;script&gt;alert(1)")
	}
	if shown < 5 || all < 2 {
		t.Errorf("got the foreign text %d times and %d blocks of JSON-LD, want at least 5 and 2", shown, all)
	}
}

// TestTextsKeepTheirDirection has texts with a character that reverses the direction of the text after it. Pages
// may show them only inside of bdi elements, which limit the effect to the text.
func TestTextsKeepTheirDirection(t *testing.T) {
	const turned = "\u202eтекст"
	quoted, _ := json.Marshal(turned)
	r := newRegistry(with(t, `"Нежитлове приміщення, 240 м²"`, string(quoted), `"Фонд державного майна"`, string(quoted)))
	f := newFound()
	f.result.Hits[0].Asset = r.revisions[0].asset
	f.result.Facets[1].Values[0].Name = turned
	s := newSite(t, r, f, logKey)
	tags, shown := regexp.MustCompile(`(?s)<script.*?</script>|<[^>]*>`), 0
	for _, path := range []string{"/uk/", "/uk/?q=%E2%80%AEx&%E2%80%AEy=1", "/uk/assets/" + id, "/en/assets/" + id,
		"/uk/assets/" + id + "/changes?from=9", "/uk/statistics"} {
		_, body := get(t, s, path)
		inside, from := 0, 0
		for _, at := range append(tags.FindAllStringIndex(body, -1), []int{len(body), len(body)}) {
			if text := body[from:at[0]]; strings.Contains(text, "\u202e") {
				shown++
				expect.ErrorIf(t, inside == 0, "%s: got %q outside of bdi, want it inside", path, text)
			}
			switch tag := body[at[0]:at[1]]; {
			case strings.HasPrefix(tag, "<bdi"):
				inside++
			case tag == "</bdi>":
				inside--
			}
			from = at[1]
		}
	}
	expect.ErrorIf(t, shown < 8, "got the foreign text %d times, want at least 8", shown)
}

// TestHarmIsFound calls the function `harm` with pages. The function must find everything that
// TestForeignTextsDoNoHarm relies on.
func TestHarmIsFound(t *testing.T) {
	for _, c := range []struct {
		body   string
		want   []string
		blocks int
	}{
		{`<p>&lt;script&gt;alert(1)</p><script type="application/ld+json">{"a":1}</script>`, nil, 1},
		{`<p><script>alert(1)</script>`, []string{"<script>alert"}, 0},
		{`<p><img src=x onerror=alert(1)>">`, []string{"<img", `onerror=alert(1)>"`}, 0},
		{`<a href="javascript:alert(1)">`, []string{`href="javascript:`}, 0},
		{"<script type=\"application/ld+json\">{\n\"a\":</script>", []string{"{\n\"a\":"}, 1},
	} {
		if found, blocks := harm(c.body); !slices.Equal(found, c.want) || blocks != c.blocks {
			t.Errorf("%s: got %q in %d blocks, want %q in %d", c.body, found, blocks, c.want, c.blocks)
		}
	}
}

func TestLinksOfDocumentsLeadNowhereUnsafe(t *testing.T) {
	_, body := get(t, newSite(t, newRegistry(whole), newFound()), "/uk/assets/"+id)
	mustHave(t, body, `href="https://docs.example/1?a=1&amp;b=2"`, `rel="nofollow noopener noreferrer"`)
	mustLack(t, body, `href="javascript`)
	outside := regexp.MustCompile(`<a [^>]*href="https?://[^"]*"[^>]*>`).FindAllString(body, -1)
	for _, link := range outside {
		if !strings.Contains(link, `rel="nofollow noopener noreferrer"`) {
			t.Errorf("got the link %s, want one that tells the other site nothing", link)
		}
	}
	expect.ErrorIf(t, len(outside) == 0, "got no link to a document, want some")
}

func TestEachChangeIsReadable(t *testing.T) {
	first := with(t, `"status":"active"`, `"status":"pending"`, `"quantity":7`, `"quantity":8`)
	r := newRegistry(first, with(t, `"status":"active"`, `"status":"verification"`, `"quantity":7`, `"quantity":8`),
		with(t, `"quantity":7`, `"quantity":8`), whole)
	r.revisions = append([]revision{{"draft", first}}, r.revisions...)
	_, body := get(t, newSite(t, r, newFound(), logKey), "/uk/assets/"+id)
	mustHave(t, body, "Складова 2 › Кількість", "<del><bdi>8</bdi></del>", "<ins><bdi>7</bdi></ins>",
		"Запис оприлюднено", "На перевірці", "Доказ зміни 5<", "Доказ зміни 2<")
	mustLack(t, body, "Доказ зміни 1<", "Давніші зміни")
	line := regexp.MustCompile(`(?s)<ol class="line">(.*?)</ol>`).FindString(body)
	for i, status := range []string{"active", "verification", "pending"} {
		if at := regexp.MustCompile(`<li class="(\w+)">`).FindAllStringSubmatch(line, -1); len(at) != 3 || at[i][1] != status {
			t.Errorf("got the states %q, want %s at %d", at, status, i)
		}
	}
}

func TestManyChangesStandOnSeveralPages(t *testing.T) {
	var states [][]byte
	for n := range 25 {
		states = append(states, with(t, `"quantity":7`, fmt.Sprintf(`"quantity":%d`, 100+n)))
	}
	s := newSite(t, newRegistry(states...), newFound(), logKey)
	path, pages := "/en/assets/"+id, 0
	var seen []string
	for path != "" {
		pages++
		_, body := get(t, s, path)
		for _, m := range regexp.MustCompile(`Proof of change (\d+)<`).FindAllStringSubmatch(body, -1) {
			seen = append(seen, m[1])
		}
		path = ""
		if m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(seen) != 25 || len(slices.Compact(slices.Clone(seen))) != 25 || seen[0] != "25" || seen[24] != "1" || pages != 3 {
		t.Errorf("got the changes %q on %d pages, want 25 to 1 on 3", seen, pages)
	}
}

func TestPagesWithoutHistory(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(*registry)
		want string
	}{
		{"no log", func(r *registry) { r.hasLog = false }, "The public log has no changes of this record."},
		{"erased", func(r *registry) {
			r.revisions = append([]revision{{"publish", nil}}, r.revisions...)
			r.revisions[1].kind = "change"
		}, "An administrator has destroyed the content of this change."},
		{"imported", func(r *registry) { r.revisions[0].kind = "import" }, "when the log began"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRegistry(whole)
			test.set(r)
			resp, body := get(t, newSite(t, r, newFound(), logKey), "/en/assets/"+id)
			expect.Equal(t, resp.StatusCode, http.StatusOK, "")
			mustHave(t, html.UnescapeString(body), test.want)
		})
	}
}

func TestWhatIsNotPublicIsNotShown(t *testing.T) {
	draft := newRegistry(with(t, `"status":"active"`, `"status":"draft"`))
	if resp, body := get(t, newSite(t, draft, newFound()), "/uk/assets/"+id); resp.StatusCode != 404 || strings.Contains(body, "Банкова") {
		t.Errorf("got %d for a draft, want 404 without its content", resp.StatusCode)
	}
	tried := newRegistry(with(t, `"assetType":"bounce"`, `"assetType":"bounce","mode":"test"`))
	resp, body := get(t, newSite(t, tried, newFound()), "/uk/assets/"+id)
	expect.Equal(t, resp.StatusCode, http.StatusOK, "for a test record")
	mustHave(t, body, "Це тестовий запис", `content="noindex, follow"`)
	mustLack(t, body, "ld+json")
}

// TestTheRegistryHearsOfTheVisitor requests pages for two visitors. The registry must get each visitor's
// address, so that the gateways count the requests of each visitor separately.
func TestTheRegistryHearsOfTheVisitor(t *testing.T) {
	r := newRegistry(whole, whole)
	s := newSite(t, r, newFound())
	for _, visitor := range []string{"192.0.2.1", "2001:db8::2", ""} {
		r.visitors = nil
		for _, path := range []string{"/uk/assets/" + id, "/en/assets/" + id + "/changes?from=2"} {
			get(t, s, path, httpserver.ClientHeader, visitor)
		}
		if len(r.visitors) < 2 || slices.ContainsFunc(r.visitors, func(got string) bool { return got != visitor }) {
			t.Errorf("got readings for %q, want several for %q", r.visitors, visitor)
		}
	}
}

func TestConditionalRequests(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f, logKey)
	for _, path := range []string{"/", "/uk/?q=a", "/en/assets/" + id, "/uk/statistics", "/uk/about", "/en/feed.atom", "/sitemap.xml"} {
		resp, _ := get(t, s, path)
		tag := resp.Header.Get("ETag")
		again, body := get(t, s, path, "If-None-Match", `"x", `+tag)
		if tag == "" || again.StatusCode != http.StatusNotModified || body != "" || again.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got %d with %d bytes for the tag %q, want 304", path, again.StatusCode, len(body), tag)
		}
	}
	first, _ := get(t, s, "/uk/")
	f.result.Position.Offset = "2026-11-22T13:01:00.000002+00:00"
	second, _ := get(t, s, "/uk/", "If-None-Match", first.Header.Get("ETag"))
	expect.Equal(t, second.StatusCode, http.StatusOK, "at another position of the index")
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name, path       string
		searches         error
		registry, status int
	}{
		{"the search is busy", "/uk/", fault.New(fault.Unavailable, fault.URL, "search", "busy"), 0, 503},
		{"the search fails", "/uk/", errors.New("secret text"), 0, 500},
		{"the search of a feed is busy", "/en/feed.atom", fault.New(fault.Unavailable, fault.URL, "search", "busy"), 0, 503},
		{"the registry is down", "/en/assets/" + id, nil, 503, 503},
		{"the registry is down for the map", "/sitemap.xml", nil, 500, 503},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, r := newFound(), newRegistry(whole)
			f.err, r.status = test.searches, test.registry
			resp, body := get(t, newSite(t, r, f), test.path)
			if resp.StatusCode != test.status || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("ETag") != "" {
				t.Errorf("got %d, Cache-Control %q, ETag %q; want %d, no-store and none", resp.StatusCode,
					resp.Header.Get("Cache-Control"), resp.Header.Get("ETag"), test.status)
			}
			if test.status == 503 && resp.Header.Get("Retry-After") == "" {
				t.Error("got no Retry-After, want one")
			}
			mustLack(t, body, "secret text")
		})
	}
}

func TestTheFeed(t *testing.T) {
	f := newFound()
	_, body := get(t, newSite(t, newRegistry(whole), f), "/uk/feed.atom?q=будинок&sort=published&status=active",
		"X-Registry-Base-Url", "https://registry.example")
	var feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string   `xml:"id"`
		Updated string   `xml:"updated"`
		Entries []struct {
			ID   string `xml:"id"`
			Link struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(body), &feed); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if len(feed.Entries) != 1 || feed.Entries[0].ID != "urn:uuid:01234567-89ab-cdef-0123-456789abcdef" ||
		feed.Entries[0].Link.Href != "https://registry.example/uk/assets/"+id || feed.Updated != "2026-11-22T13:00:00.000001Z" {
		t.Errorf("got %+v, want the asset", feed)
	}
	q := f.queries()[0]
	if q.Sort != search.NewestFirst || q.Text != "будинок" || len(q.Filters.ValuesOf(search.ByStatus)) != 1 || len(q.Facets) != 1 {
		t.Errorf("got the question %+v, want the newest first, with the filters", q)
	}
	mustLack(t, body, "<subtitle>")
	f.result.Reading.Steps = []search.Step{search.Stopped}
	_, body = get(t, newSite(t, newRegistry(whole), f), "/uk/feed.atom?q=будинок")
	mustHave(t, body, "<subtitle>Схожі слова шукали не до кінця")
	for _, query := range []string{"status=x", "regoin=Odesa", "mode=test"} {
		resp, _ := get(t, newSite(t, newRegistry(whole), f), "/uk/feed.atom?"+query)
		expect.Equal(t, resp.StatusCode, http.StatusBadRequest, "%s: for a wrong filter", query)
	}
}

// TestTheFeedHasPages follows the link to the next page of the feed (RFC 5005). It must lead to the assets after
// the first page, as a page of the same feed.
func TestTheFeedHasPages(t *testing.T) {
	f := newFound()
	f.result.Next = &search.Cursor{Sort: search.NewestFirst, At: 1764000000000000}
	s := newSite(t, newRegistry(whole), f)
	type page struct {
		ID    string `xml:"id"`
		Links []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
	}
	read := func(path string) (p page, links map[string]string) {
		t.Helper()
		_, body := get(t, s, path, "X-Registry-Base-Url", "https://registry.example")
		if err := xml.Unmarshal([]byte(body), &p); err != nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
		links = map[string]string{}
		for _, l := range p.Links {
			links[l.Rel] = l.Href
		}
		return p, links
	}
	for _, query := range []string{"", "?status=active", "?q=будинок&sort=published", "?q=будинок"} {
		if query == "?q=будинок" { // assets with words of the same meaning are in the feed, too
			f.result.Next.Reading = search.Reading{Steps: []search.Step{search.ByAlso}, Words: []search.Word{{Text: "будинок", By: []string{"хата", "будинок"}}}}
		}
		first, links := read("/uk/feed.atom" + query)
		next, _ := strings.CutPrefix(links["next"], "https://registry.example")
		second, after := read(next)
		asked := f.queries()
		if last := asked[len(asked)-1]; last.After == nil || last.After.At != f.result.Next.At || last.Sort != search.NewestFirst ||
			asked[len(asked)-2].Also != (query == "?q=будинок") {
			t.Errorf("%s: got the question %+v for %s, want the page after the first", query, last, next)
		}
		if second.ID != first.ID || after["first"] != links["self"] || after["self"] != links["next"] {
			t.Errorf("%s: got the links %v and %v, want the same feed with self and first", query, links, after)
		}
	}
	f.result.Next = nil
	if _, links := read("/uk/feed.atom"); links["next"] != "" {
		t.Errorf("the last page: got the next page %s, want none", links["next"])
	}
}

func TestTheMapOfTheSite(t *testing.T) {
	r := newRegistry(whole)
	r.feed = 2500
	s := newSite(t, r, newFound())
	type entries struct {
		Maps  []string `xml:"sitemap>loc"`
		Pages []string `xml:"url>loc"`
	}
	read := func(path string) (e entries) {
		resp, body := get(t, s, path, "X-Registry-Base-Url", "https://registry.example")
		expect.FatalIf(t, resp.StatusCode != http.StatusOK, "%s: got %d, want 200", path, resp.StatusCode)
		expect.OK(t, xml.Unmarshal([]byte(body), &e))
		return e
	}
	index := read("/sitemap.xml")
	expect.FatalIf(t, len(index.Maps) != 4, "got the parts %q, want one of pages and three of assets", index.Maps)
	seen := map[string]bool{}
	for _, part := range index.Maps {
		for _, page := range read(strings.TrimPrefix(part, "https://registry.example")).Pages {
			expect.ErrorIf(t, seen[page], "got %s twice, want it once", page)
			seen[page] = true
		}
	}
	if want := 2 * (3 + 2250); len(seen) != want { // a tenth of the assets is deleted
		t.Errorf("got %d pages, want %d", len(seen), want)
	}
	for _, path := range []string{"/sitemap/x", "/sitemap/-1", "/sitemap/253402300800000000", "/sitemap/99999999999999999999"} {
		if resp, _ := get(t, s, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, resp.StatusCode)
		}
	}
}

// files returns the addresses of the site's files that a page loads.
func files(body string) (addresses []string) {
	for _, m := range regexp.MustCompile(`(?:href|src)="(/site/[^"]+)"`).FindAllStringSubmatch(body, -1) {
		addresses = append(addresses, m[1])
	}
	return addresses
}

// TestFilesOfAPageAreFound calls the function `files` with a small page. The function must return the addresses of all
// files that TestTheFirstPageIsSmall adds to the size of a page.
func TestFilesOfAPageAreFound(t *testing.T) {
	got := files(`<link rel="stylesheet" href="/site/a.css?1"><a href="/uk/"><script defer src="/site/b.js"></script>`)
	if want := []string{"/site/a.css?1", "/site/b.js"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// zipped returns the size of a text in bytes after the compression that gateways use.
func zipped(t *testing.T, text string) int {
	t.Helper()
	var sent bytes.Buffer
	w := gzip.NewWriter(&sent)
	expect.Get(io.WriteString(w, text))(t)
	expect.OK(t, w.Close())
	return sent.Len()
}

// TestAPageSaysHowItReadTheWords has a search that was read with other words, and a search that finds nothing.
// The page must name the words that were replaced, left out or not found.
func TestAPageSaysHowItReadTheWords(t *testing.T) {
	f := newFound()
	f.result.Reading = search.Reading{Steps: []search.Step{search.ByNearest}, Words: []search.Word{
		{Text: "ексковатор", By: []string{"=екскаватор"}, Said: "екскаватор"}, {Text: "терміново", Out: true},
	}}
	s := newSite(t, newRegistry(whole), f)
	_, body := get(t, s, "/uk/?q=ексковатор+терміново")
	for _, want := range []string{"За запитом «ексковатор терміново» нічого немає.", "Показано: «екскаватор».",
		"Без слів: «терміново».", "exact=1"} {
		expect.ErrorIf(t, !strings.Contains(body, want), "got no %q on the page, want it there", want)
	}
	f.result = search.Result{NotFound: []string{"йцукен"}, Position: f.result.Position,
		Others: []search.Query{{Text: "йцукен гараж"}, {Text: "гараж", Exact: true}}}
	_, body = get(t, s, "/uk/?q=йцукен+гараж&exact=1")
	for _, want := range []string{"Жоден актив не має слів: «йцукен».", `>Шукати й близькі слова</a>`, `>гараж</a>`} {
		expect.ErrorIf(t, !strings.Contains(body, want), "got no %q on the page of no hits, want it there", want)
	}
	if others := f.queries(); !others[len(others)-1].Others || strings.Contains(body, ">йцукен</a>") {
		t.Error("got a page that did not ask for other questions, or has one that finds nothing")
	}
	_, body = get(t, s, "/uk/?q=гараж")
	if strings.Contains(body, `value="relevance"`) {
		t.Error("got a form that sends the order by relevance, want one that sends none unless somebody chooses")
	}
}

// TestPagesNameWhatTheyCannotRead sends each kind of broken question to each page that takes one. None may answer as
// if the broken part were not there. Parameters that other sites add to links change nothing.
func TestPagesNameWhatTheyCannotRead(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	onPage := map[string]string{"region": "Область", "q": "Слова", "sort": "Порядок", "exact": "exact"}
	for _, page := range []string{"/uk/", "/en/statistics", "/uk/feed.atom"} {
		for query, name := range map[string]string{
			"region=%D0%BB;": "region", "region=%zz": "region", "%zz=a": "", "region=%ff": "region", "regoin=Odesa": "regoin",
			"q=a&q=b": "q", "more=region&more=status": "more", "sort=modified&sort=published": "sort", "exact=x": "exact",
		} {
			resp, body := get(t, s, page+"?q=&"+query)
			expect.Equal(t, resp.StatusCode, http.StatusBadRequest, "%s?%s", page, query)
			if said, isKnown := onPage[name]; page == "/uk/" && isKnown {
				name = said
			}
			if !strings.Contains(body, name) {
				t.Errorf("%s?%s: got no %s on the page, want it named", page, query, name)
			}
		}
		resp, _ := get(t, s, page+"?utm_source=x&fbclid=1&utm_source=y&region=&region=&sort=&q=a")
		if page == "/uk/" { // the canonical address
			resp, _ = get(t, s, resp.Header.Get("Location"))
		}
		if resp.StatusCode != http.StatusOK || f.queries()[len(f.queries())-1].Text != "a" {
			t.Errorf("%s with parameters of other sites: got %d, want the search for a", page, resp.StatusCode)
		}
	}
	_, body := get(t, s, "/uk/?regoin=Odesa&q=house&sort=published&sort=published")
	for _, want := range []string{"Порядок: може стояти один раз", "Сторінка не знає параметра regoin. Найближчий: region.", `value="house"`} {
		expect.ErrorIf(t, !strings.Contains(body, want), "got no %s on the page, want it", want)
	}
}

// TestDaysOfPagesAreThoseOfKyiv asks for a day. The search must begin and end two hours earlier than the day in
// UTC.
func TestDaysOfPagesAreThoseOfKyiv(t *testing.T) {
	f := newFound()
	s := newSite(t, newRegistry(whole), f)
	_, body := get(t, s, "/uk/?published_from=2026-11-25&published_to=2026-11-25")
	asked := f.queries()[len(f.queries())-1].Filters.Published
	expect.Equal(t, asked.From.UTC().Format("2006-01-02T15"), "2026-11-24T22", "the start")
	expect.Equal(t, asked.Until.UTC().Format("2006-01-02T15"), "2026-11-25T22", "the end")
	for _, want := range []string{`name="published_from" form="search" value="2026-11-25"`,
		"/api/2.5/search?published_from=2026-11-24T22%3A00%3A00Z", "/uk/search.xlsx?published_from=2026-11-24T22%3A00%3A00Z"} {
		expect.ErrorIf(t, !strings.Contains(body, want), "got no %s on the page, want it there", want)
	}
}
