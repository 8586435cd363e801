package e2e

import (
	"archive/zip"
	"compress/gzip"
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// canaries has values of hidden fields. The keys are the paths of the fields in an asset. No other field has these
// values, so a canary in an answer shows that a hidden field leaked.
var canaries = map[string]string{
	"assetCustodian.contactPoint.name":                "Таємничук",
	"assetCustodian.contactPoint.telephone":           "+380449998877",
	"assetCustodian.additionalContactPoints.0.name":   "Прихованюк",
	"assetCustodian.additionalContactPoints.0.email":  "hidden@canary.example",
	"assetHolder.contactPoint.name":                   "Невидимчук",
	"assetHolder.contactPoint.telephone":              "+380449998866",
	"assetHolder.additionalContactPoints.0.name":      "Незримець",
	"assetHolder.additionalContactPoints.0.telephone": "+380449998855",
	"assetCustodian.address.streetAddress":            "вул. Канарейкова 77",
	"assetCustodian.address.postalCode":               "77987",
	"assetHolder.address.streetAddress":               "вул. Канарейкова 66",
	"assetHolder.address.postalCode":                  "66987",
	"items.0.address.streetAddress":                   "вул. Канарейкова 55",
	"items.0.address.postalCode":                      "55987",
	"items.0.location.latitude":                       "49.8877665",
	"items.0.location.longitude":                      "24.5566778",
}

// withCanaries returns an asset in which each group of fields has canaries.
func withCanaries() fields {
	f := validAsset()
	f["assetHolder"] = map[string]any{"name": "Утримувач", "identifier": map[string]any{"scheme": "UA-EDR", "id": "00037257"},
		"address": map[string]any{"countryName": "Україна", "locality": "м. Львів"}}
	for _, organisation := range []string{"assetCustodian", "assetHolder"} {
		f = f.set(organisation+".additionalContactPoints", []any{map[string]any{"telephone": "1"}})
	}
	for _, path := range slices.Sorted(maps.Keys(canaries)) {
		f = f.set(path, canaries[path])
	}
	return f
}

// TestHiddenFieldsAreNowhere hides all groups of fields. It then looks for their values in what the registry shows
// without a key (docs/contract.md, "Hidden fields"). The tests of the services look in streams, webhooks and proofs.
// Promises: hidden
func TestHiddenFieldsAreNowhere(t *testing.T) {
	t.Parallel()
	t.Run("one process", func(t *testing.T) {
		addr := freeAddr(t)
		standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{}, "--search", "--snapshot-interval", "1s",
			"--hide", "contacts,addresses,locations")
		testHidden(t, api{"http://" + addr, "2.5"})
	})
}

// statistics is the path of the page with the statistics of a search. The text of the search follows at the end of the
// path. The page contains no ids of assets.
const statistics = "/uk/statistics?q="

func testHidden(t *testing.T, a api) {
	shown := shownTexts{}
	f := withCanaries().set("items.0.unit.code", "MTK")
	word := nonsense()
	f["title"] = word
	c := a.publish(t, f)
	for path, value := range canaries {
		if !strings.Contains(c.text, value) {
			t.Errorf("the answer to the owner: got no %s in %s, want it", path, c.text)
		}
	}
	shown.add("the asset", a.read(t, c.id).must(t, 200).text)
	shown.add("items", a.do(t, call{method: "GET", path: "/assets/" + c.id + "/items"}).must(t, 200).text)
	shown.add("the feed", a.do(t, call{method: "GET", path: "/assets?opt_fields=*", key: "broker"}).must(t, 200).text)
	copied := a.newCopy(t, "")
	for deadline := time.Now().Add(30 * time.Second); copied.assets[c.id] == "" && time.Now().Before(deadline); {
		copied = a.newCopy(t, copied.date)
	}
	shown.add("the snapshot", copied.assets[c.id])
	a.awaitSearch(t)
	found := a.awaitFound(t, url.Values{"q": {word}}, c.id)
	shown.add("the search", found.text)
	facets := []string{"classification", "region", "locality", "custodian", "owner"}
	shown.add("facets", a.find(t, url.Values{"q": {word}, "facets": facets}).text)
	for path, value := range canaries {
		if got := a.find(t, url.Values{"q": {value}}).json["total"]; got != json.Number("0") {
			t.Errorf("%s: got %v found assets for its value, want 0", path, got)
		}
	}
	for _, page := range []string{"/uk/assets/" + c.id, "/en/assets/" + c.id, "/uk/assets/" + c.id + "/changes?from=3",
		"/uk/?q=" + url.QueryEscape(word), "/uk/?quantity_unit=m2&sort=-area&q=" + url.QueryEscape(word), "/uk/feed.atom", statistics + url.QueryEscape(word)} {
		got := a.do(t, call{method: "GET", path: page})
		expect.Equal(t, got.status, http.StatusOK, "%s", page)
		shown.add(page, got.text)
		shown.add(page+" with the texts of its links", decoded(got.text))
		if strings.HasSuffix(page, c.id) && (!strings.Contains(got.text, "/search?query=") || !strings.Contains(got.text, "og:description")) {
			t.Errorf("%s: got no link to a map or no Open Graph, want both without the hidden fields", page)
		}
	}
	for form, key := range map[string]string{"csv": "", "xlsx": "broker", "geojson": "concierge"} {
		file := a.export(t, form, word, key).text
		switch form {
		case "xlsx":
			file = unpacked(t, file)
		case "geojson": // the file has no asset with hidden places, but expectNone wants the id in each text
			file += c.id
		}
		shown.add("the export as "+form, file)
	}
	shown.wholeCopies(t, a, c)
	shown.expectNone(t, c)
}

// hashes finds hashes, which are removed from texts. By chance, a hash may contain a postal code.
var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

// wholeCopies waits for whole copies that contain the asset, and adds their files and descriptions.
func (s shownTexts) wholeCopies(t *testing.T, a api, c created) {
	t.Helper()
	plain := func(file string) string {
		got := a.do(t, call{method: "GET", path: "/data/" + file})
		if !strings.HasSuffix(file, ".gz") || got.status != http.StatusOK {
			return got.text
		}
		r := expect.Get(gzip.NewReader(strings.NewReader(got.text)))(t)
		return string(expect.Get(io.ReadAll(r))(t))
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(plain("documents.csv"), c.id); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got no whole copy with asset %s within 30 s", c.id)
		}
	}
	for _, file := range []string{"assets.csv", "items.csv", "documents.csv", "assets.jsonl.gz", "assets.geojson"} {
		text := plain(file)
		// The file leaves the asset out, because its places are hidden. The id is added because expectNone looks for it.
		if file == "assets.geojson" {
			text += c.id
		}
		s.add("the whole copy "+file, text)
	}
	for _, path := range []string{
		"/api/2.5/dictionaries", "/data/catalog.jsonld", "/data/manifest.json", "/data/assets.schema.json", "/en/data"} {
		got := a.do(t, call{method: "GET", path: path})
		expect.Equal(t, got.status, http.StatusOK, "%s", path)
		s.add(path, hashes.ReplaceAllString(got.text, "")+c.id) // the id is added, because no description names an asset
	}
}

// decoded returns a page in which the texts in links are decoded.
func decoded(page string) string {
	return regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`).ReplaceAllStringFunc(html.UnescapeString(page), func(text string) string {
		if plain, err := url.PathUnescape(text); err == nil {
			return plain
		}
		return text
	})
}

// shownTexts are the texts that the registry shows without a key. The keys are the places that show them.
type shownTexts map[string]string

func (s shownTexts) add(place, text string) { s[place] += text }

// expectNone checks that no text has a canary, and that each text is about the asset.
func (s shownTexts) expectNone(t *testing.T, c created) {
	t.Helper()
	for place, text := range s {
		if place != "items" && !strings.HasPrefix(place, statistics) && !strings.Contains(text, c.id) {
			t.Errorf("%s: got no asset %s in %.300s, want it", place, c.id, text)
		}
		for path, value := range canaries {
			if strings.Contains(text, value) {
				t.Errorf("%s: got %s, want it hidden: %s", place, path, text)
			}
		}
	}
}

// unpacked returns the texts of all files in an archive.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	files := expect.Get(zip.NewReader(strings.NewReader(archive), int64(len(archive))))(t)
	var all strings.Builder
	for _, f := range files.File {
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(&all, r)
		}
		expect.OK(t, err)
	}
	return all.String()
}
