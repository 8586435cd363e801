package site_test

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestAddressesInDescriptionsAreLinks has descriptions that contain addresses in many forms. Each case says which
// links the page must have.
func TestAddressesInDescriptionsAreLinks(t *testing.T) {
	many := strings.Repeat("https://many.example/a ", 30)
	for _, c := range []struct {
		text  string
		links []string
	}{
		{"без адрес", nil},
		{"Див. https://photo.example/a?b=1&c=%D1%97, фото.", []string{"https://photo.example/a?b=1&c=%D1%97"}},
		{"http://photo.example", []string{"http://photo.example"}},
		{"(https://a.example/x) «https://b.example»! https://c.example.", []string{"https://a.example/x", "https://b.example",
			"https://c.example"}},
		{"javascript:alert(1) ftp://a.example data:text/html,x https:// https://?x", nil},
		{`https://a.example/"><script>alert(1)</script>`, []string{"https://a.example/"}},
		{"https://a.example/\u202egpj.exe", []string{"https://a.example/"}},
		{"https://long.example/" + strings.Repeat("a", 600) + " https://a.example", []string{"https://a.example"}},
		{many, slices.Repeat([]string{"https://many.example/a"}, 20)},
	} {
		t.Run(fmt.Sprintf("%.40s", c.text), func(t *testing.T) {
			body := assetPage(t, "uk", changed(t, func(a map[string]any) { a["description"] = c.text }))
			shown := regexp.MustCompile(`<bdi data-path="description">(.*?)</bdi>`).FindStringSubmatch(body)
			expect.FatalIf(t, shown == nil, "got no description, want one in: %s", body)
			var links []string
			for _, m := range regexp.MustCompile(`<a ([^>]*)>`).FindAllStringSubmatch(shown[1], -1) {
				href := regexp.MustCompile(`href="([^"]*)"`).FindStringSubmatch(m[1])
				links = append(links, html.UnescapeString(href[1]))
				mustHave(t, m[1], `rel="nofollow noopener noreferrer"`)
			}
			expect.ErrorIf(t, !slices.Equal(links, c.links), "got the links %q, want %q", links, c.links)
			expect.Equal(t, plainText(shown[1]), c.text, "the text")
			if found, _ := harm(body); slices.Contains(found, "<script>alert") {
				t.Errorf("got %q, want no harm", found)
			}
		})
	}
}

// TestUnitsAreDeclined has quantities in many units. The page must show each unit in the form that the number
// requires.
func TestUnitsAreDeclined(t *testing.T) {
	for _, c := range []struct{ quantity, code, uk, en string }{
		{"1", "SET", "1 комплект", "1 set"},
		{"2", "SET", "2 комплекти", "2 sets"},
		{"5", "SET", "5 комплектів", "5 sets"},
		{"11", "SET", "11 комплектів", "11 sets"},
		{"2.5", "SET", "2,5 комплекту", "2.5 sets"},
		{"21", "D63", "21 книга", "21 books"},
		{"1.5", "E48", "1,5 послуги", "1.5 services"},
		{"3", "MTK", "3 м²", "3 m²"},
		{"3", "ZZZ", "3 ZZZ", "3 ZZZ"},
	} {
		asset := changed(t, func(a map[string]any) { a["items"] = []any{item(1, c.quantity, c.code, "Будівлі", "x")} })
		for lang, want := range map[string]string{"uk": c.uk, "en": c.en} {
			body := assetPage(t, lang, asset)
			label := map[string]string{"uk": "Кількість", "en": "Quantity"}[lang]
			expect.Equal(t, strings.ReplaceAll(factsOf(body)[label], "\u00a0", " "), want, "%s %s", c.quantity, c.code)
			mustHave(t, body, `data-path="items.0.unit.code"`)
		}
	}
	named := assetPage(t, "uk", with(t, `"unit":{"code":"H87","name":"штука"}`, `"unit":{"code":"XYZ","name":"штука"}`))
	mustHave(t, named, `<bdi data-path="items.1.unit.name">штука</bdi>`, `data-path="items.1.unit.code"`)
}

// TestADocumentThatIsAddedIsOneLine compares the states of a record before and after it gets a new document, or a new
// version of one. In the list of changes, each document must be one line.
func TestADocumentThatIsAddedIsOneLine(t *testing.T) {
	const path = "documents"
	before := changed(t, func(a map[string]any) { a[path] = a[path].([]any)[:1] })
	_, body := get(t, newSite(t, newRegistry(before, whole), newFound(), logKey), "/uk/assets/"+id)
	_, list, _ := strings.Cut(body, `<ol class="changes">`)
	list, _, _ = strings.Cut(list, "</li>")
	want := []string{"Документ 2|Паспорт, перша версія (Технічний опис)", "Документ 3|Паспорт <script>alert(1)</script> (Технічний опис)",
		"Документ 4|Огляд (Порядок ознайомлення з активом)"}
	var got []string
	for _, m := range regexp.MustCompile(`<dt>(.*?)</dt><dd>(.*?)</dd>`).FindAllStringSubmatch(list, -1) {
		got = append(got, plainText(m[1])+"|"+plainText(m[2]))
	}
	expect.ErrorIf(t, !slices.Equal(got, want), "got the changes %q, want %q", got, want)
	bare := changed(t, func(a map[string]any) {
		a[path] = append(a[path].([]any), map[string]any{"id": "9", "format": json.Number("1")})
	})
	_, body = get(t, newSite(t, newRegistry(whole, bare), newFound(), logKey), "/uk/assets/"+id)
	mustHave(t, plainText(body), "Документ 5Без назви")
	many := changed(t, func(a map[string]any) {
		for n := range 200 {
			a[path] = append(a[path].([]any), map[string]any{"id": fmt.Sprint(n), "title": "Х"})
		}
	})
	_, body = get(t, newSite(t, newRegistry(whole, many), newFound(), logKey), "/en/assets/"+id+"/changes?from=2")
	mustHave(t, html.UnescapeString(body), "and 160\u00a0differences")
}

// TestNoTwoHeadingsAreAlike has changes with a few seconds between them, and documents with the same title. On
// each page, every heading must be there only once.
func TestNoTwoHeadingsAreAlike(t *testing.T) {
	same := changed(t, func(a map[string]any) {
		for _, d := range a["documents"].([]any) {
			d.(map[string]any)["title"] = "Технічний паспорт"
		}
	})
	s := newSite(t, newRegistry(same, whole, same), newFound(), logKey)
	for _, path := range []string{"/uk/assets/" + id, "/en/assets/" + id, "/uk/assets/" + id + "/changes?from=3", "/uk/?q=a&status=active",
		"/en/", "/uk/statistics", "/uk/about", "/uk/none"} {
		_, body := get(t, s, path)
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?s)<h[1-6][^>]*>(.*?)</h[1-6]>`).FindAllStringSubmatch(body, -1) {
			heading := plainText(m[1])
			expect.ErrorIf(t, seen[heading], "%s: got the heading %q twice, want it once", path, heading)
			seen[heading] = true
		}
		expect.ErrorIf(t, len(seen) == 0, "%s: got no heading, want one", path)
	}
	_, body := get(t, s, "/uk/assets/"+id)
	mustHave(t, body, "22 листопада 2026, 15:00") // the time in the record has no seconds
	if !regexp.MustCompile(`<h3><a href="[^"]+"><time datetime="[^"]+">\d+ \p{L}+ 2026, \d\d:\d\d:\d\d</time></a></h3>`).MatchString(body) {
		t.Error("got no change to the second, want each so")
	}
}

// TestFiltersAreClearedOnlyIfThereAreSome has searches without hits. Only those with filters must have a link
// that clears the filters.
func TestFiltersAreClearedOnlyIfThereAreSome(t *testing.T) {
	f := newFound()
	f.result.Hits, f.result.Total = nil, 0
	s := newSite(t, newRegistry(whole), f)
	for path, want := range map[string]int{"/en/": 0, "/en/?q=a": 0, "/en/?status=active": 1, "/en/?q=a&status=active": 1} {
		_, body := get(t, s, path)
		expect.Equal(t, strings.Count(body, "Clear all filters"), want, "%s: links that clear the filters", path)
	}
}
