package site_test

import (
	"html"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/testing/expect"
)

// outwardLinks returns the addresses of the links to maps and sales on a page.
func outwardLinks(body string) (all []string) {
	for _, m := range regexp.MustCompile(`<a ([^>]*)href="(https://(?:maps|sales)[^"]*)"([^>]*)>`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(m[1]+m[3], `rel="nofollow noopener noreferrer"`) {
			all = append(all, "unsafe")
		}
		all = append(all, html.UnescapeString(m[2]))
	}
	return all
}

// TestPagesLeadToMapsAndSales has assets whose places and sales are valid, hostile or missing. Links must stay
// on the sites of the templates. A missing value must have no link.
func TestPagesLeadToMapsAndSales(t *testing.T) {
	const at = "https://maps.example/?at=50.4501,30.5234#50.4501"
	const lot = "https://sales.example/lot/UA-LR-1?id=88888888888888888888888888888888"
	place := `"location":{"latitude":50.4501,"longitude":"30.5234"},`
	for _, c := range []struct {
		name  string
		asset []byte
		want  []string // links, in order: two facts (the place and the sale), the item, the process
	}{
		{"coordinates", whole, []string{at, lot, at, lot}},
		{"an address", with(t, place, ""), []string{
			"https://maps.example/search?query=%D0%B2%D1%83%D0%BB.%20%D0%91%D0%B0%D0%BD%D0%BA%D0%BE%D0%B2%D0%B0%2C%2011%2C%20" +
				"%D0%9A%D0%B8%D1%97%D0%B2%2C%20%D0%9A%D0%B8%D1%97%D0%B2%2C%20%D0%A3%D0%BA%D1%80%D0%B0%D1%97%D0%BD%D0%B0", lot,
			"https://maps.example/search?query=%D0%B2%D1%83%D0%BB.%20%D0%91%D0%B0%D0%BD%D0%BA%D0%BE%D0%B2%D0%B0%2C%2011%2C%20" +
				"%D0%9A%D0%B8%D1%97%D0%B2%2C%20%D0%9A%D0%B8%D1%97%D0%B2%2C%20%D0%A3%D0%BA%D1%80%D0%B0%D1%97%D0%BD%D0%B0", lot}},
		{"a country only", with(t, place, "", `"region":"Київ","locality":"Київ","streetAddress":"вул. Банкова, 11"`,
			`"region":"Київ"`), []string{lot, lot}},
		{"a faulty latitude", with(t, place, `"location":{"latitude":91,"longitude":1},`, `"вул. Банкова, 11"`, `"a&b=c#d/../e"`,
			`"region":"Київ","locality":"Київ"`, `"region":"X"`), []string{"https://maps.example/search?query=" +
			"a%26b%3Dc%23d%2F..%2Fe%2C%20X%2C%20%D0%A3%D0%BA%D1%80%D0%B0%D1%97%D0%BD%D0%B0", lot,
			"https://maps.example/search?query=a%26b%3Dc%23d%2F..%2Fe%2C%20X%2C%20%D0%A3%D0%BA%D1%80%D0%B0%D1%97%D0%BD%D0%B0", lot}},
		{"a hostile number of a lot", with(t, place, "", `"UA-LR-1"`, `"../../\"><script>alert(1)</script>?x=//foreign.example"`,
			`"region":"Київ","locality":"Київ","streetAddress":"вул. Банкова, 11"`, `"region":"Київ"`), []string{
			"https://sales.example/lot/..%2F..%2F%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%3Fx%3D%2F%2Fforeign.example" +
				"?id=88888888888888888888888888888888",
			"https://sales.example/lot/..%2F..%2F%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%3Fx%3D%2F%2Fforeign.example" +
				"?id=88888888888888888888888888888888"}},
		{"a number of dots", with(t, `"UA-LR-1"`, `"..."`), []string{at, at}},
		{"a very long number", with(t, `"UA-LR-1"`, `"`+strings.Repeat("ї", 1000)+`"`), []string{at, at}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outwardLinks(assetPage(t, "uk", c.asset)); !slices.Equal(got, c.want) {
				t.Errorf("got the links %q, want %q", got, c.want)
			}
		})
	}
	made, err := site.New(site.Config{Searcher: newFound(), Registry: "http://registry.internal", Transport: newRegistry(whole),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	expect.OK(t, err)
	_, body := get(t, made, "/uk/assets/"+id)
	if got := outwardLinks(body); len(got) > 0 {
		t.Errorf("got the links %q without templates, want none", got)
	}
	mustHave(t, body, "UA-LR-1")
}

// TestFaultyTemplatesAreRefused configures templates of links. A template must be refused if its links could lead to
// a site that the operator did not mean.
func TestFaultyTemplatesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"https://sales.example/lots/{identifier}", ""},
		{"https://sales.example:8443?id={id}&type={type}#{identifier}", ""},
		{"", ""},
		{"http://sales.example/{id}", "must be an address that begins with https://"},
		{"HTTPS://sales.example/{id}", "must be an address that begins with https://"},
		{"//sales.example/{id}", "must be an address that begins with https://"},
		{"javascript:alert({id})", "must be an address that begins with https://"},
		{"https://{id}.sales.example/", "must be an address that begins with https://"},
		{"https://sales.example{id}", "must be an address that begins with https://"},
		{"https://sales.example:{id}/", "must be an address that begins with https://"},
		{"https://user@sales.example/{id}", "must be an address that begins with https://"},
		{"https:///{id}", "must be an address that begins with https://"},
		{"https://sales.example/{id} ", "must be an address that begins with https://"},
		{"https://sales.example/\"{id}", "must be an address that begins with https://"},
		{"https://sales.example/{id}}", "must be an address that begins with https://"},
		{"https://sales.example/{ID}", "must be an address that begins with https://"},
		{"https://sales.example/лот/{id}", "must be an address that begins with https://"},
		{"https://sales.example/%zz{id}", "must be an address that begins with https://"},
		{"https://sales.example/", "must have placeholders among {type}, {id}, {identifier}"},
		{"https://sales.example/{id}/{latitude}", "must have placeholders among {type}, {id}, {identifier}"},
		{"https://sales.example/{id}" + strings.Repeat("a", 2000), "must have at most 2000 characters"},
	} {
		err := site.Links{Sale: c.text}.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), "--sale-url "+c.says) {
			t.Errorf("%.60s: got %v, want %q", c.text, err, c.says)
		}
	}
	err := site.Links{Map: "https://maps.example/", Search: "https://maps.example/{latitude}"}.Validate()
	if err == nil || !strings.Contains(err.Error(), "--map-url") || !strings.Contains(err.Error(), "--map-search-url") {
		t.Errorf("got %v, want both faults", err)
	}
}
