package site_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

var (
	marks = regexp.MustCompile(`<mark>([^<]*)</mark>`)
	lines = regexp.MustCompile(`(?s)<ol class="hits">.*?</p>\n<p lang="uk"><bdi>(.*?)</bdi></p>`)
)

// TestFoundWordsAreMarked checks which words of a hit are marked, and which line of its description is shown.
func TestFoundWordsAreMarked(t *testing.T) {
	long := strings.Repeat("слово ", 40)
	for _, test := range []struct {
		name, asked, title, description string
		read                            search.Reading
		want                            []string // words that are marked
		line                            string   // text of the line without marks; "": no line is shown
	}{
		{"another form, and a sign within the word", "гаражі кав'ярня", "Гараж і Кав’ярня", "Опис", search.Reading{},
			[]string{"Гараж", "Кав’ярня"}, ""},
		{"numbers", "145 36.6", "Склад №145, 36,6 кв. м", "", search.Reading{}, []string{"145", "36,6"}, ""},
		{"an invisible sign", "екскаватор", "Екска\u200bватор", "", search.Reading{}, []string{"Екска\u200bватор"}, ""},
		{"texts are texts", "script", `<script>alert("x")</script>`, "a <script> & more", search.Reading{},
			[]string{"script", "script", "script"}, "a <script> & more"},
		{"a line in the middle", "криниця", "Дім", long + "криниця " + long, search.Reading{}, []string{"криниця"}, "… слово"},
		{"words that were read", "ексковатор терміново", "Екскаватор терміново", "", search.Reading{
			Steps: []search.Step{search.ByNearest}, Words: []search.Word{
				{Text: "ексковатор", By: []string{"=екскаватор"}, Said: "екскаватор"}, {Text: "терміново", Out: true},
			},
		}, []string{"Екскаватор"}, ""},
		{"a beginning, and codes", "екскав 0413 abcdef12", "Екскаватори 0413", "abcdef12", search.Reading{
			Steps: []search.Step{search.ByPrefix}, Words: []search.Word{
				{Text: "екскав", By: []string{"^екскав"}, Said: "екскав"}, {Text: "0413", By: []string{"#0413"}, Said: "0413"},
				{Text: "abcdef12", By: []string{"@abcdef12"}, Said: "abcdef12"},
			},
		}, []string{"Екскаватори"}, ""},
		{"a preposition", "у лісі", "Дім у лісі", "", search.Reading{}, []string{"лісі"}, ""},
		{"no question", "", "Дім", "Дім", search.Reading{}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			asset, err := json.Marshal(map[string]any{
				"id": id, "status": "active", "title": test.title, "description": test.description,
			})
			expect.OK(t, err)
			f := newFound()
			f.result.Hits, f.result.Reading = []search.Hit{{ID: id, Asset: asset}}, test.read
			_, body := get(t, newSite(t, newRegistry(whole), f), "/uk/?q="+url.QueryEscape(test.asked))
			var got []string
			for _, m := range marks.FindAllStringSubmatch(body, -1) {
				got = append(got, html.UnescapeString(m[1]))
			}
			expect.ErrorIf(t, !slices.Equal(got, test.want), "got the marks %q, want %q", got, test.want)
			line := ""
			if m := lines.FindStringSubmatch(body); m != nil {
				line = html.UnescapeString(marks.ReplaceAllString(m[1], "$1"))
			}
			if !strings.HasPrefix(line, test.line) || (line == "") != (test.line == "") || utf8.RuneCountInString(line) > 163 {
				t.Errorf("got the line %q, want one that begins %q, of at most 163 characters", line, test.line)
			}
		})
	}
}

// TestThePageAsksForSuggestions checks that the page has everything that the script for suggestions needs.
func TestThePageAsksForSuggestions(t *testing.T) {
	for path, want := range map[string]string{
		"/uk/": "?q=", "/en/?q=x": "?q=", "/uk/?status=draft": "?q=", "/uk/?exact=x": "?q=",
		"/uk/?q=x&status=active&quantity_from=5&published_from=2026-11-02&sort=area&limit=50": "?published_from=2026-11-01T22%3A00%3A00Z" +
			"&amp;quantity_from=5&amp;status=active&amp;q=",
	} {
		_, body := get(t, newSite(t, newRegistry(whole), newFound()), path)
		mustHave(t, body, ` list="suggested"`, `<datalist id="suggested" data-from="/api/2.5/search/suggest`+want+`"></datalist>`,
			"/suggest.js\" defer></script>")
	}
}

// TestAHitSaysThatThereAreOtherItems finds an asset with one item, and then with two. Only the second hit must
// mention other items.
func TestAHitSaysThatThereAreOtherItems(t *testing.T) {
	for n := range 2 {
		f := newFound()
		f.result.Hits[0].Asset = changed(t, func(asset map[string]any) {
			asset["items"] = []any{item(1, "5", "MTK", "Гараж", "вул. Перша"), item(2, "7", "MTK", "Гараж", "вул. Друга")}[:n+1]
		})
		_, body := get(t, newSite(t, newRegistry(whole), f), "/en/")
		if got := strings.Contains(body, "and other items"); got != (n > 0) {
			t.Errorf("%d items: got the sign of others %t, want %t", n+1, got, n > 0)
		}
		mustHave(t, plainText(body), "5\u00a0m²")
	}
}

// TestAHitNamesACityOnce searches assets with a region. If the region is the same city as the locality, the hit
// must not name the region. Another region must be named.
func TestAHitNamesACityOnce(t *testing.T) {
	for _, c := range []struct{ locality, region, want string }{
		{"Київ", "м. Київ", "вул. Перша, Київ"}, {"м. Київ", "м. Київ", "вул. Перша, м. Київ"},
		{"Дрогобич", "Львівська область", "вул. Перша, Дрогобич, Львівська область"}, {"", "м. Київ", "вул. Перша, м. Київ"},
	} {
		f := newFound()
		f.result.Hits[0].Asset = changed(t, func(asset map[string]any) {
			one := item(1, "5", "MTK", "Гараж", "вул. Перша")
			one["address"] = map[string]any{"streetAddress": "вул. Перша", "locality": c.locality, "region": c.region}
			asset["items"] = []any{one}
		})
		_, body := get(t, newSite(t, newRegistry(whole), f), "/uk/")
		mustHave(t, body, `<bdi>`+c.want+`</bdi>`)
	}
}

// TestARangeInWordsIsShown shows how the words of a range were read, and leads to the search for the words as words.
func TestARangeInWordsIsShown(t *testing.T) {
	const text = "склад від 1500 м2 до 2,5 га"
	in, ok := (search.Query{Text: text}).Range()
	expect.FatalIf(t, !ok, "%q: got no range", text)
	f := newFound()
	f.result.Range = in
	for lang, want := range map[string]string{
		"uk": "<bdi>Площа від 1\u00a0500 до 25\u00a0000\u00a0м².</bdi>", "en": "<bdi>Area from 1,500 to 25,000\u00a0m².</bdi>",
	} {
		_, body := get(t, newSite(t, newRegistry(whole), f), "/"+lang+"/?q="+url.QueryEscape(text))
		body = html.UnescapeString(body)
		link := `href="/` + lang + `/?exact=1&q=` + url.QueryEscape(text) + `"`
		if !strings.Contains(body, want) || !strings.Contains(body, link) {
			t.Errorf("%s: got a page without %q or without the link %s", lang, want, link)
		}
		if unwanted := "Nothing for"; strings.Contains(body, unwanted) {
			t.Errorf("%s: got %q, want only the range", lang, unwanted)
		}
	}
}
