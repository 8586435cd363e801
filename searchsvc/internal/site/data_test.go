package site_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// catalogueOf returns a catalogue of two files. Pages must not show the second one.
func catalogueOf(licence, publisher string) string {
	return `{"dct:modified":{"@value":"2026-11-22T13:00:00.000000+00:00"},"dct:license":{"@id":"` + licence + `"},
		"dct:publisher":{"foaf:name":"` + publisher + `"},"dcat:dataset":[{"dct:accrualPeriodicity":{"rdf:value":5400},"dcat:distribution":[
		{"dcat:downloadURL":{"@id":"https://registry.example/data/assets.csv"},"dcat:byteSize":{"@value":"2500000"},
		"dct:extent":{"rdf:value":1234},"dct:conformsTo":{"@id":"https://registry.example/data/assets.csv-metadata.json"},
		"spdx:checksum":{"spdx:checksumValue":{"@value":"abc<b>"}}},
		{"dcat:downloadURL":{"@id":"https://elsewhere.example/x/evil.exe"}}]}]}`
}

func TestThePageOfWholeCopies(t *testing.T) {
	r := newRegistry(whole)
	s := newSite(t, r, newFound(), logKey)
	r.catalogue = catalogueOf("https://licence.example/4.0", "Фонд <i>")
	resp, body := get(t, s, "/en/data")
	expect.FatalIf(t, resp.StatusCode != http.StatusOK, "got %d, want 200", resp.StatusCode)
	mustHave(t, body, `<a href="/data/assets.csv" download>assets.csv</a>`, "1,234", "2.5\u00a0MB", "/data/assets.csv-metadata.json",
		`<a href="https://licence.example/4.0" rel="license">`, "Фонд &lt;i&gt;", "abc&lt;b&gt;", "22 November 2026, 15:00",
		"an apostrophe stands before a sign that could begin a formula")
	mustHave(t, body, "Time between renewals of the files: 90\u00a0minutes.")
	if strings.Contains(body, "evil") || strings.Contains(body, "elsewhere") {
		t.Errorf("got\n%s\nwant no file that the page does not know", body)
	}
	for licence, says := range map[string]string{"": "names no licence", "javascript:alert(1)": "names no licence"} {
		r.catalogue = catalogueOf(licence, "")
		if _, body := get(t, s, "/en/data"); !strings.Contains(body, says) || strings.Contains(body, "javascript:") {
			t.Errorf("licence %q: got\n%s\nwant %q", licence, body, says)
		}
	}
	r.catalogue = strings.Replace(catalogueOf("", ""), "1234", "0", 1)
	_, body = get(t, s, "/uk/data")
	mustHave(t, html.UnescapeString(body), "Перші файли ще готують.")
	mustLack(t, body, "assets.csv\" download", "не має цілих копій")
	r.catalogue = ""
	if _, body := get(t, s, "/uk/data"); !strings.Contains(html.UnescapeString(body), "не має цілих копій") {
		t.Errorf("got\n%s\nwant none", body)
	}
	r.catalogue = "{"
	if resp, _ := get(t, s, "/uk/data"); resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("a broken catalogue: got %d, want 500", resp.StatusCode)
	}
	r.status = http.StatusServiceUnavailable
	if resp, _ := get(t, s, "/uk/data"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without the registry: got %d, want 503", resp.StatusCode)
	}
	for language, want := range map[string]string{"uk": "/uk/data", "en": "/en/data", "": "/uk/data"} {
		if resp, _ := get(t, s, "/data", "Accept-Language", language); resp.Header.Get("Location") != want {
			t.Errorf("%q: got %q, want %s", language, resp.Header.Get("Location"), want)
		}
	}
}
