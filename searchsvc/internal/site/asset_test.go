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

// changed returns the asset of these tests (whole) after the function `change` has edited its members.
func changed(t *testing.T, change func(asset map[string]any)) []byte {
	t.Helper()
	var asset map[string]any
	d := json.NewDecoder(strings.NewReader(string(whole)))
	d.UseNumber()
	expect.OK(t, d.Decode(&asset))
	change(asset)
	text, err := json.Marshal(asset)
	expect.OK(t, err)
	return text
}

// assetPage returns the page of an asset.
func assetPage(t *testing.T, lang string, asset []byte) string {
	t.Helper()
	_, body := get(t, newSite(t, newRegistry(asset), newFound(), logKey), "/"+lang+"/assets/"+id)
	return body
}

var tags = regexp.MustCompile(`<[^>]*>`)

// plainText returns the text of a part of a page, without its elements.
func plainText(body string) string { return html.UnescapeString(tags.ReplaceAllString(body, "")) }

// factsOf returns the facts at the top of a page, by their labels.
func factsOf(body string) map[string]string {
	_, list, _ := strings.Cut(body, `<dl class="facts">`)
	list, _, _ = strings.Cut(list, "</dl>")
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`<dt>(.*?)</dt><dd>(.*?)</dd>`).FindAllStringSubmatch(list, -1) {
		all[plainText(m[1])] = plainText(m[2])
	}
	return all
}

// item returns an item with a quantity, a unit, a kind and an address.
func item(n int, quantity, unit, kind, street string) map[string]any {
	return map[string]any{"id": fmt.Sprintf("%032x", n), "description": fmt.Sprintf("Об’єкт %d", n), "quantity": json.Number(quantity),
		"unit": map[string]any{"code": unit}, "classification": map[string]any{"scheme": "CAV-PS", "id": "04", "description": kind},
		"address": map[string]any{"streetAddress": street, "locality": "Дрогобич", "region": "Львівська область"}}
}

// TestTheFirstScreenSaysWhatPeopleLookFor checks the facts of assets with one item and with many items.
func TestTheFirstScreenSaysWhatPeopleLookFor(t *testing.T) {
	items := func(all ...any) []byte { return changed(t, func(a map[string]any) { a["items"] = all }) }
	for _, c := range []struct {
		name, page string
		want       map[string]string
	}{
		{"two items in two units", assetPage(t, "uk", whole), map[string]string{
			"Вид майна": "Приміщення, Меблі", "Кількість": "2\u00a0складові: 12\u00a0240,50\u00a0м², 7\u00a0шт.",
			"Де розташовано": "вул. Банкова, 11, Київ На мапі", "Продаж": "Лот UA-LR-1",
			"Балансоутримувач": "Фонд державного майна", "Телефон": "+38 (044) 000-00-00"}},
		{"one item", assetPage(t, "en", items(item(1, "1284.60", "MTK", "Будівлі", "вул. Шевченка, 14"))), map[string]string{
			"Kind of property": "Будівлі", "Quantity": "1,284.60\u00a0m²", "Place": "вул. Шевченка, 14, Дрогобич, Львівська область On a map",
			"Sale": "Lot UA-LR-1", "Custodian": "State Property Fund", "Telephone": "+38 (044) 000-00-00"}},
		{"sums without rounding", assetPage(t, "en", items(item(1, "0.1", "HAR", "a", "x"), item(2, "0.25", "HAR", "b", "y"),
			item(3, "9007199254740993", "HAR", "c", "x"), item(4, "1", "KMT", "a", "z"))), map[string]string{
			"Kind of property": "a, b and 1 more", "Quantity": "4\u00a0items: 9,007,199,254,740,993.35\u00a0ha, 1\u00a0km",
			"Place": "x, Дрогобич, Львівська область and 2 more On a map",
			"Sale":  "Lot UA-LR-1", "Custodian": "State Property Fund", "Telephone": "+38 (044) 000-00-00"}},
		{"a quantity that is no plain number", assetPage(t, "en", items(item(1, "1e3", "HAR", "a", "x"), item(2, "2", "HAR", "a", "x"))),
			map[string]string{"Kind of property": "a", "Quantity": "2\u00a0items", "Place": "x, Дрогобич, Львівська область On a map",
				"Sale": "Lot UA-LR-1", "Custodian": "State Property Fund", "Telephone": "+38 (044) 000-00-00"}},
		{"nothing", assetPage(t, "en", changed(t, func(a map[string]any) {
			delete(a, "items")
			delete(a, "assetCustodian")
			delete(a, "relatedProcesses")
		})), map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := factsOf(c.page)
			expect.ErrorIf(t, len(got) != len(c.want), "got the facts %q, want %q", got, c.want)
			for label, want := range c.want {
				expect.Equal(t, got[label], want, "%s", label)
			}
		})
	}
	for _, c := range []struct{ contacts, want string }{
		{`"telephone":"+38 (044) 000-00-00",`, `<a href="tel:&#43;380440000000">&#43;38 (044) 000-00-00</a>`},
		{`"telephone":"немає",`, `<a href="tel:&#43;380440000001">044 000-00-01</a>`},
		{``, `<a href="tel:&#43;380440000001">044 000-00-01</a>`},
	} {
		body := assetPage(t, "uk", with(t, `"telephone":"+38 (044) 000-00-00",`, c.contacts,
			`"name":"Другий"`, `"name":"Другий","telephone":"044 000-00-01"`))
		_, list, _ := strings.Cut(body, `<dl class="facts">`)
		if list, _, _ = strings.Cut(list, "</dl>"); !strings.Contains(list, c.want) {
			t.Errorf("%s: got no %s, want it in: %s", c.contacts, c.want, list)
		}
	}
}

// TestItemsFoldFromTheFifthOn counts the items that a page shows before the fold.
func TestItemsFoldFromTheFifthOn(t *testing.T) {
	for count, want := range map[int]int{1: 1, 4: 4, 5: 4, 40: 4} {
		body := assetPage(t, "uk", changed(t, func(a map[string]any) {
			var all []any
			for n := range count {
				all = append(all, item(n+1, "1", "MTK", "Будівлі", "вул. Довга"))
			}
			a["items"] = all
		}))
		_, section, _ := strings.Cut(body, `<section aria-labelledby="items">`)
		section, _, _ = strings.Cut(section, "</section>")
		before, folded, isFolded := strings.Cut(section, "<details>")
		shown, hidden := strings.Count(before, "<tr><td>"), strings.Count(folded, "<tr><td>")
		if shown != want || shown+hidden != count || isFolded != (count > 4) {
			t.Errorf("%d items: got %d rows and %d after the fold, want %d and the rest", count, shown, hidden, want)
		}
		if count == 5 {
			mustHave(t, folded, "<summary>Ще 1\u00a0складова</summary>", "Об’єкт 5")
		}
	}
}

// TestDocumentsSayTypeSizeAndDate has documents with and without a size, in many formats.
func TestDocumentsSayTypeSizeAndDate(t *testing.T) {
	for _, c := range []struct{ fields, uk, en string }{
		{`"format":"application/pdf","size":1234567,`, "Підстава зняття з реєстру · PDF · 1,2\u00a0МБ · 22 листопада 2026, 13:30",
			"Reason of the removal · PDF · 1.2\u00a0MB · 22 November 2026, 13:30"},
		{`"format":"image/jpeg","size":2500,`, " · JPEG · 3\u00a0КБ · ", " · JPEG · 3\u00a0kB · "},
		{`"format":"application/x-foo","size":1,`, " · application/x-foo · 1\u00a0байт · ", " · application/x-foo · 1\u00a0byte · "},
		{`"size":-1,`, " · −1 · ", " · −1 · "},
		{``, "Підстава зняття з реєстру · 22 листопада 2026, 13:30", "Reason of the removal · 22 November 2026, 13:30"},
	} {
		asset := with(t, `"documentType":"x_dgfAssetFamiliarization",`, `"documentType":"cancellationDetails",`+c.fields)
		for lang, want := range map[string]string{"uk": c.uk, "en": c.en} {
			if text := plainText(assetPage(t, lang, asset)); !strings.Contains(text, want) {
				t.Errorf("%s: got no %q, want it in: %s", c.fields, want, text)
			}
		}
	}
}

// TestDocumentsStandByKind has documents of three kinds. Each kind has its heading and its number, and a kind with ten
// documents is folded. A file of the registry is no foreign site.
func TestDocumentsStandByKind(t *testing.T) {
	var all []any
	document := func(kind, url string) {
		d := map[string]any{"id": fmt.Sprint(len(all)), "title": fmt.Sprintf("Док %d.", len(all)), "url": url, "sha256": "b"}
		if kind != "" {
			d["documentType"] = kind
		}
		all = append(all, d)
	}
	for n := range 13 {
		document("notice", fmt.Sprintf("https://registry.example/get/%032x", n))
	}
	for range 9 {
		document("technicalSpecifications", "https://docs.example/1")
	}
	document("", "https://docs.example/2")
	body := assetPage(t, "en", changed(t, func(a map[string]any) { a["documents"] = all }))
	text := plainText(body)
	for _, want := range []string{"(13)", "Further 9", "(9)", "No kind given (1)"} {
		expect.ErrorIf(t, !strings.Contains(text, want), "got no %q, want it in: %s", want, text)
	}
	expect.Equal(t, strings.Count(text, "Док "), 23, "documents")
	for address, want := range map[string]bool{fmt.Sprintf("https://registry.example/get/%032x", 1): false, "https://docs.example/2": true} {
		link := regexp.MustCompile(`<a href="` + regexp.QuoteMeta(address) + `"[^>]*>Док`).FindString(body)
		if link == "" || strings.Contains(link, `class="foreign"`) != want {
			t.Errorf("%s: got %q, want a link that is foreign: %t", address, link, want)
		}
	}
}

// TestALongTitleLeavesRoom: a title that would fill the screen of a phone is small, and the keyboard reaches it.
func TestALongTitleLeavesRoom(t *testing.T) {
	for length, isLong := range map[int]bool{100: false, 990: true} {
		body := assetPage(t, "uk", changed(t, func(a map[string]any) { a["title"] = strings.Repeat("я", length) }))
		expect.Equal(t, strings.Contains(body, `<h1 class="long" tabindex="0">`), isLong, "%d letters", length)
	}
}

// TestTheListOfSectionsLeadsToEach compares the links at the top of a page with the sections of the page. Each
// section except the technical one must have a link.
func TestTheListOfSectionsLeadsToEach(t *testing.T) {
	for name, asset := range map[string][]byte{
		"whole": whole,
		"bare": changed(t, func(a map[string]any) {
			for _, name := range []string{"items", "documents", "decisions", "relatedProcesses", "assetCustodian"} {
				delete(a, name)
			}
		}),
	} {
		body := assetPage(t, "uk", asset)
		_, list, _ := strings.Cut(body, `<nav class="contents"`)
		list, _, _ = strings.Cut(list, "</nav>")
		var links, sections []string
		for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(list, -1) {
			links = append(links, m[1])
			if strings.Count(body, `id="`+m[1]+`"`) != 1 {
				t.Errorf("%s: got no place #%s, want one", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`<section [^>]*aria-labelledby="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			sections = append(sections, strings.TrimSuffix(m[1], "-title"))
		}
		slices.Sort(links)
		slices.Sort(sections)
		sections = slices.DeleteFunc(sections, func(s string) bool { return s == "technical" })
		if !slices.Equal(links, sections) {
			t.Errorf("%s: got links to %q, want one to each of %q", name, links, sections)
		}
	}
}

// metaOf returns the properties of the meta elements in the head of a page.
func metaOf(body string) map[string]string {
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`<meta (?:name|property)="([^"]+)" content="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		all[m[1]] = html.UnescapeString(m[2])
	}
	return all
}

// TestALinkSaysWhatItLeadsTo checks the texts that messengers and search engines show for a link.
func TestALinkSaysWhatItLeadsTo(t *testing.T) {
	for lang, want := range map[string]map[string]string{
		"uk": {"og:title": "Нежитлове приміщення, 240 м²", "og:site_name": "Реєстр активів", "og:locale": "uk_UA",
			"og:description": "Приміщення, Меблі · 2\u00a0складові: 12\u00a0240,50\u00a0м², 7\u00a0шт. · вул. Банкова, 11, Київ · " +
				"Лот UA-LR-1 · Перший поверх, окремий вхід. Стан задовільний."},
		"en": {"og:title": "Non-residential premises, 240 m²", "og:site_name": "Asset registry", "og:locale": "en_GB",
			"og:description": "Приміщення, Меблі · 2\u00a0items: 12,240.50\u00a0m², 7\u00a0pcs · вул. Банкова, 11, Київ · " +
				"Lot UA-LR-1 · Ground floor, own entrance."},
	} {
		got := metaOf(assetPage(t, lang, whole))
		want["description"], want["og:url"] = want["og:description"], "http://registry.example/"+lang+"/assets/"+id
		for name, value := range want {
			expect.Equal(t, got[name], value, "%s", name)
		}
	}
	long := metaOf(assetPage(t, "uk", with(t, `"Перший поверх`, `"`+strings.Repeat("довго ", 1000)+`Перший поверх`)))
	if length := len([]rune(long["og:description"])); length > 201 {
		t.Errorf("got a description of %d characters, want at most 200 and an ellipsis", length)
	}
}

// TestThePrintedPageHasItsAddress checks that a printed page shows its address, and that a button copies the
// same address.
func TestThePrintedPageHasItsAddress(t *testing.T) {
	body := assetPage(t, "uk", whole)
	address := "http://registry.example/uk/assets/" + id
	mustHave(t, body, `<p class="printed">`+address+`</p>`, `id="copy-link" hidden data-link="`+address+`"`)
	_, body = get(t, newSite(t, newRegistry(whole), newFound()), "/uk/?q=a&status=active")
	mustHave(t, body, `<p class="printed">http://registry.example/uk/?q=a&amp;status=active</p>`)
	mustLack(t, body, "asset.js")
}

// TestTheSavedProofIsTheFileOfTheCommand reads the check of a record whose newest change is known, and of one without
// the key of the log. The command must name the file that the browser saves, and have no quotes that Windows takes for
// a part of a word.
func TestTheSavedProofIsTheFileOfTheCommand(t *testing.T) {
	_, body := get(t, newSite(t, newRegistry(whole, with(t, "Паспорт, перша", "Паспорт, друга")), newFound(), logKey), "/uk/assets/"+id)
	const saved = id + "-2.json"
	mustHave(t, html.UnescapeString(body), `href="/api/2.5/assets/`+id+`/proof?revision=2" download="`+saved+`"`,
		"<code>registryctl verify "+saved+` --public-key "`+logKey+`"</code>`)
	mustLack(t, body, "&#39;", "opt_pretty=1\" download")
	body = assetPage(t, "en", whole)
	mustHave(t, body, `download="`+id+`-1.json"`)
	_, body = get(t, newSite(t, newRegistry(whole), newFound()), "/en/assets/"+id)
	mustHave(t, html.UnescapeString(body), "registryctl verify "+id+`-1.json --public-key "KEY"`)
}
