package e2e

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
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

// TestHiddenFieldsAreNowhere hides all groups of fields. It then looks for their values in everything that the
// registry shows without a key (docs/contract.md, "Hidden fields"). A second registry shows locations, because
// GeoJSON has no asset without a location.
// Promises: hidden
func TestHiddenFieldsAreNowhere(t *testing.T) {
	t.Parallel()
	t.Run("one process", func(t *testing.T) {
		addr := freeAddr(t)
		standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{}, "--search", "--snapshot-interval", "1s",
			"--hide", "contacts,addresses,locations", "--webhook-networks", "127.0.0.0/8", "--webhook-http")
		testHidden(t, api{"http://" + addr, "2.5"})
	})
	t.Run("one process that shows locations", func(t *testing.T) {
		addr := freeAddr(t)
		standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{}, "--search", "--snapshot-interval", "1s",
			"--hide", "contacts,addresses")
		testHiddenInMaps(t, api{"http://" + addr, "2.5"})
	})
	t.Run("four processes", func(t *testing.T) {
		stores := processes.Stores{Search: true, Env: []string{"ASSETSVC_HIDE=contacts,addresses,locations",
			"ASSETSVC_SNAPSHOT_INTERVAL=1s", "ASSETSVC_WEBHOOK_NETWORKS=127.0.0.0/8", "ASSETSVC_WEBHOOK_HTTP=true"}}
		base := split(t, filepath.Join(t.TempDir(), "data"), stores, &processes.Output{}).URL
		testHidden(t, api{base, "2.5"})
	})
	t.Run("three asset services and two gateways", func(t *testing.T) {
		stores := newStores(t, mongotest.Start(t), redistest.Start(t))
		stores.Env = append(stores.Env, "ASSETSVC_HIDE=contacts,addresses,locations",
			"ASSETSVC_SNAPSHOT_INTERVAL=1s", "ASSETSVC_WEBHOOK_NETWORKS=127.0.0.0/8", "ASSETSVC_WEBHOOK_HTTP=true")
		testHidden(t, api{startSpread(t, filepath.Join(t.TempDir(), "data"), stores), "2.5"})
	})
}

// statistics is the path of the page with the statistics of a search. The text of the search follows at the end of the
// path. The page contains no ids of assets.
const statistics = "/uk/statistics?q="

func testHidden(t *testing.T, a api) {
	shown := &shownTexts{in: map[string]string{}, hidden: canaries}
	hook := newPlainReceiver(t, shown)
	a.makeHook(t, "broker", fields{"url": hook, "opt_fields": "*"})
	f := withCanaries().set("items.0.unit.code", "MTK")
	word := nonsense()
	f["title"] = word
	streams := shown.follow(t, a)
	c := a.publish(t, f)
	c.answer = a.patch(t, c, fields{"description": "друга редакція: " + word}).must(t, 200)
	shown.want(t, "the answer to the owner", c.text)
	for path, value := range canaries {
		got := a.do(t, call{method: "GET", path: "/assets/" + c.id, key: "concierge"}).must(t, 200)
		expect.Equal(t, fmt.Sprint(at(got.data(), path)), value, "%s, with a key", path)
	}
	a.expectTags(t, c)
	shown.add("the asset", a.read(t, c.id).must(t, 200).text)
	shown.add("the asset in 2.4", api{a.base, "2.4"}.read(t, c.id).must(t, 200).text)
	shown.add("items", a.do(t, call{method: "GET", path: "/assets/" + c.id + "/items"}).must(t, 200).text)
	shown.add("an asset with a wrong key", a.do(t, call{method: "GET", path: "/assets/" + c.id, key: "nobody"}).must(t, 200).text)
	shown.add("an asset with the token only",
		a.do(t, call{method: "GET", path: "/assets/" + c.id, token: c.token}).must(t, 200).text)
	for _, key := range []string{"", "broker"} { // the feed hides the fields even from the asset's broker
		shown.add("the feed", a.do(t, call{method: "GET", path: "/assets?opt_fields=*", key: key}).must(t, 200).text)
		shown.add("named fields",
			a.do(t, call{method: "GET", path: "/assets?opt_fields=items,assetCustodian,assetHolder", key: key}).must(t, 200).text)
	}
	shown.proof(t, a, c)
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
	a.expectNoSuggestions(t, word)
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
	streams(c)
	shown.await(t, "the webhook", c)
	shown.expectNone(t, c)
}

// testHiddenInMaps looks for the values of contacts and addresses in files with locations. Each file must have the
// asset with its location.
func testHiddenInMaps(t *testing.T, a api) {
	shown := &shownTexts{in: map[string]string{}, hidden: maps.Clone(canaries), showsLocations: true}
	maps.DeleteFunc(shown.hidden, func(path, _ string) bool { return strings.HasPrefix(path, "items.0.location.") })
	f := withCanaries()
	word := nonsense()
	f["title"] = word
	c := a.publish(t, f)
	shown.want(t, "the answer to the owner", c.text)
	a.awaitSearch(t)
	a.awaitFound(t, url.Values{"q": {word}}, c.id)
	const search = "the export as geojson"
	shown.add(search, a.export(t, "geojson", word, "broker").text)
	shown.wholeCopies(t, a, c)
	for _, place := range []string{search, "the whole copy assets.geojson"} {
		feature := `"geometry":{"type":"Point","coordinates":[` + canaries["items.0.location.longitude"] + `,`
		if !strings.Contains(shown.in[place], feature) {
			t.Errorf("%s: got %.300s, want %s", place, shown.in[place], feature)
		}
	}
	shown.expectNone(t, c)
}

// hashes finds hashes, which are removed from texts. By chance, a hash may contain a postal code.
var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

// wholeCopies waits for whole copies that contain the asset, and adds their files and descriptions.
func (s *shownTexts) wholeCopies(t *testing.T, a api, c created) {
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
		// The file leaves the asset out if its places are hidden. The id is added because expectNone looks for it.
		if file == "assets.geojson" && !s.showsLocations {
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

// expectNoSuggestions asks for suggestions with the first letters of each word of the canaries. No suggestion may have
// such a word. A word of a title must be suggested, because titles are not hidden.
func (a api) expectNoSuggestions(t *testing.T, shown string) {
	t.Helper()
	suggested := func(word string) string {
		begin := string([]rune(word)[:5])
		return a.do(t, call{method: "GET", path: "/api/2.5/search/suggest?" + url.Values{"q": {begin}}.Encode()}).must(t, 200).text
	}
	if got := suggested(shown); !strings.Contains(got, shown) {
		t.Errorf("got the suggestions %s, want %s among them", got, shown)
	}
	for path, value := range canaries {
		for _, word := range strings.Fields(value) {
			if utf8.RuneCountInString(word) >= 5 && strings.Contains(suggested(word), strings.ToLower(word)) {
				t.Errorf("%s: got %s among the suggestions, want it hidden", path, word)
			}
		}
	}
}

// expectTags checks that the public view and the full view of an asset have different tags, so that a cache cannot
// mix them up. The owner may change the asset with either tag.
func (a api) expectTags(t *testing.T, c created) {
	t.Helper()
	public := a.read(t, c.id).header.Get("ETag")
	full := a.do(t, call{method: "GET", path: "/assets/" + c.id, key: "broker"})
	if tag := full.header.Get("ETag"); tag == public || !strings.Contains(full.header.Get("Vary"), "Authorization") {
		t.Errorf("got the tags %s and %s and Vary %q, want two tags, and Authorization", public, tag, full.header.Get("Vary"))
	}
	again := call{method: "GET", path: "/assets/" + c.id}.with("If-None-Match", public)
	if got := a.do(t, again); got.status != http.StatusNotModified {
		t.Errorf("got %d for the tag %s without a key, want 304", got.status, public)
	}
	again.key = "broker"
	a.do(t, again).must(t, 200)
	write := call{method: "PATCH", path: "/assets/" + c.id, key: "broker", token: c.token,
		body: data(fields{"description": "третя редакція"})}
	a.do(t, write.with("If-Match", public)).must(t, 200)
}

// shownTexts are the texts that the registry shows without a key.
type shownTexts struct {
	mu sync.Mutex
	in map[string]string // the keys are the places that show the texts

	hidden         map[string]string // the canaries that no text may contain
	showsLocations bool              // GeoJSON has the asset
}

func (s *shownTexts) add(place, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in[place] += text
}

// want checks that a text contains all canaries. It is for texts of readers who may see the hidden fields. Without
// this check, the test would pass if nobody ever saw a canary.
func (s *shownTexts) want(t *testing.T, place, text string) {
	t.Helper()
	for path, value := range canaries {
		if !strings.Contains(text, value) {
			t.Errorf("%s: got no %s in %s, want it", place, path, text)
		}
	}
}

// await waits until the texts of a place contain the id of an asset.
func (s *shownTexts) await(t *testing.T, place string, c created) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		there := strings.Contains(s.in[place], c.id)
		s.mu.Unlock()
		if there {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: got nothing of asset %s within 30 s", place, c.id)
		}
	}
}

// expectNone checks that no text has a canary, and that each text is about the asset.
func (s *shownTexts) expectNone(t *testing.T, c created) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for place, text := range s.in {
		if place != "items" && !strings.HasPrefix(place, statistics) && !strings.Contains(text, c.id) {
			t.Errorf("%s: got no asset %s in %.300s, want it", place, c.id, text)
		}
		for path, value := range s.hidden {
			if strings.Contains(text, value) {
				t.Errorf("%s: got %s, want it hidden: %s", place, path, text)
			}
		}
	}
}

// follow opens one stream of each kind, and returns a function that waits until both streams have shown an asset.
func (s *shownTexts) follow(t *testing.T, a api) (await func(c created)) {
	t.Helper()
	kinds := []string{"text/event-stream", "application/x-ndjson"}
	for _, kind := range kinds {
		r := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, a.base+"/api/2.5/assets?opt_fields=*",
			nil))(t)
		r.Header.Set("Accept", kind)
		resp := expect.Get(http.DefaultClient.Do(r))(t)
		go func() {
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() { // ends when the test ends
				s.add(kind, lines.Text())
			}
		}()
	}
	return func(c created) {
		for _, kind := range kinds {
			s.await(t, kind, c)
		}
	}
}

// proof adds the proof of an asset. The proof must contain the asset itself.
func (s *shownTexts) proof(t *testing.T, a api, c created) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got := a.do(t, call{method: "GET", path: "/assets/" + c.id + "/proof"})
		if got.status == http.StatusOK {
			if text(at(got.data(), "asset.id")) != c.id {
				t.Errorf("got %s, want a proof with the asset", got.text)
			}
			s.add("the proof", got.text)
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %d %s for 30 s, want a proof", got.status, got.text)
		}
	}
}

// newPlainReceiver starts a receiver of webhooks that adds every message to s, and returns its address.
func newPlainReceiver(t *testing.T, s *shownTexts) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m struct{ Data struct{ Challenge string } }
		if err != nil || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.add("the webhook", string(body))
		json.NewEncoder(w).Encode(map[string]string{"challenge": m.Data.Challenge})
	}))
	t.Cleanup(server.Close)
	return server.URL
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
