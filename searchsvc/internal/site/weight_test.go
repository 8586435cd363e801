package site_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/testing/expect"
)

// mustBeLight checks the size of everything that a browser loads for a page, without compression: the page, its
// style sheet and its scripts.
func mustBeLight(t *testing.T, s *site.Site, path string, most int) {
	t.Helper()
	resp, body := get(t, s, path)
	bytes, sent := len(body), zipped(t, body)
	addresses := files(body)
	for _, address := range addresses {
		resp, file := get(t, s, address)
		if resp.StatusCode != http.StatusOK || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d, want a file that may be kept", address, resp.StatusCode)
		}
		bytes += len(file)
		sent += zipped(t, file)
	}
	if resp.StatusCode != http.StatusOK || len(addresses) < 2 || bytes < 10_000 {
		t.Errorf("%.40s: got %d, %d files and %d bytes, want at least a style, an icon and 10,000 bytes", path,
			resp.StatusCode, len(addresses), bytes)
	}
	expect.ErrorIf(t, bytes > most, "%.40s: got %d bytes, want at most %d", path, bytes, most)
	expect.ErrorIf(t, sent > 15_000, "%.40s: got %d bytes with gzip, want at most 15,000", path, sent)
	t.Logf("%.40s: %d bytes, %d with gzip", path, bytes, sent)
}

// TestTheFirstPageIsSmall limits the bytes that a phone loads for the first page.
func TestTheFirstPageIsSmall(t *testing.T) {
	f := newFound()
	for range search.DefaultLimit - 1 {
		f.result.Hits = append(f.result.Hits, f.result.Hits[0])
	}
	s := newSite(t, newRegistry(whole), f, logKey)
	for _, path := range []string{"/uk/", "/en/", "/uk/about", "/uk/assets/" + id} {
		mustBeLight(t, s, path, 60_000)
	}
}

// writer makes texts of random words, which compress about as well as the texts of a registry.
type writer struct {
	random *rand.Rand
	words  []string
}

func newWriter() *writer {
	w := &writer{random: rand.New(rand.NewPCG(7, 7))}
	syllables := strings.Fields("бу ді вля при мі ще ння скла ду га раж ко му наль не зе мель на ді лян ка від ді лен ня фон ду май на об ла сть")
	for range 400 {
		word := ""
		for range 2 + w.random.IntN(3) {
			word += syllables[w.random.IntN(len(syllables))]
		}
		w.words = append(w.words, word)
	}
	return w
}

// text returns a text with the given number of words.
func (w *writer) text(words int) string {
	said := make([]string, words)
	for i := range said {
		said[i] = w.words[w.random.IntN(len(w.words))]
	}
	return strings.Join(said, " ")
}

// TestLargePagesAreLight makes two large pages. The first is a page of 20 different results with long names. It also
// shows all values of the filters, and the link of each result repeats the search. The second is the page of an asset
// with 10 items and 10 documents. Each page must stay below its limit of bytes.
func TestLargePagesAreLight(t *testing.T) {
	w, files := newWriter(), newWriter()
	f := newFound()
	f.result.Hits = nil
	for n := range search.DefaultLimit {
		asset := changed(t, func(asset map[string]any) {
			asset["id"], asset["title"] = fmt.Sprintf("%016x%016x", w.random.Uint64(), w.random.Uint64()), w.text(8)
			asset["assetID"], asset["title_en"] = fmt.Sprintf("UA-AR-DGF-2026-11-22-%06d", w.random.IntN(1e6)), ""
			asset["items"] = []any{item(1, fmt.Sprint(w.random.IntN(1e5)), "MTK", w.text(5), w.text(3)), item(2, "7", "MTK", "Гараж", "вул. Друга")}
			asset["assetCustodian"].(map[string]any)["name"] = w.text(7)
		})
		f.result.Hits = append(f.result.Hits, search.Hit{ID: fmt.Sprint(n), Asset: asset})
		if n == 0 {
			hit := &f.result.Hits[n]
			hit.Picture, hit.Pictures = fmt.Sprintf("%016x%016x", files.random.Uint64(), files.random.Uint64()), 2+n
		}
	}
	f.result.Facets = nil
	sent := url.Values{"q": {w.text(3)}, "status": {"active", "pending"}}
	for _, p := range search.Properties {
		facet := search.Facet{Name: p.Name, More: true}
		for n := range 30 {
			value := fmt.Sprint(w.random.IntN(1e8))
			switch p.Name {
			case search.ByStatus:
				value = []string{"active", "pending", "complete", "verification"}[n%4]
			case search.ByClassification:
				value = fmt.Sprintf("%08d", w.random.IntN(1e8))[:2+n%6]
			case search.ByCustodian:
				value = "UA-EDR-" + fmt.Sprintf("%08d", w.random.IntN(1e8))
			case search.ByMonth, search.ByKyivMonth:
				value = fmt.Sprintf("20%02d-%02d", 24+n/12, 1+n%12)
			}
			count := search.Count{Value: value, Name: w.text(8), Count: w.random.Int64N(1e5)}
			switch p.Name {
			case search.ByRegion, search.ByLocality:
				value = w.text(1)
				count.Value, count.Name = value, value+" область"
			case search.ByClassification:
				count.NameEn, count.Area, count.Pieces = w.text(8), w.random.Float64()*1e7, float64(w.random.IntN(1000))
			}
			facet.Values = append(facet.Values, count)
			if n < map[search.FacetName]int{search.ByCustodian: 5, search.ByClassification: 5, search.ByRegion: 3, search.ByLocality: 3}[p.Name] {
				sent.Add(string(p.Name), value)
			}
		}
		f.result.Facets = append(f.result.Facets, facet)
	}
	f.result.Total, f.result.Before = 12_345, 40
	f.result.Next = &search.Cursor{Sort: search.ByRelevance, Key: 123, At: 1795000000000001, Weights: []int64{11, 12, 13}}
	f.result.Prev = &search.Cursor{Sort: search.ByRelevance, Back: true, Key: 234, At: 1795000000000001, Weights: []int64{11, 12, 13}}
	sent.Set("search_after", f.result.Prev.String())
	query := sent.Encode()
	expect.FatalIf(t, len(query) < 700 || len(query) > 1000, "got a query of %d bytes, want 700 to 1,000", len(query))
	record := changed(t, func(asset map[string]any) {
		var items, documents []any
		for n := range 10 {
			items = append(items, item(n+1, fmt.Sprint(w.random.IntN(1e5)), "MTK", w.text(5), w.text(3)))
			documents = append(documents, map[string]any{"id": fmt.Sprintf("%032x", n+77), "title": w.text(5), "documentType": "notice",
				"format": "application/pdf", "datePublished": "2026-11-22T13:00:00+02:00", "dateModified": "2026-11-22T13:00:00+02:00",
				"url": "https://registry.example/files/" + fmt.Sprintf("%016x", w.random.Uint64()), "hash": fmt.Sprintf("sha-256:%016x", w.random.Uint64())})
		}
		asset["items"], asset["documents"], asset["description"] = items, documents, w.text(120)
	})
	s := newSite(t, newRegistry(whole, record), f, logKey)
	for _, path := range []string{"/uk/?" + query, "/en/?" + query, "/uk/statistics?" + query, "/en/statistics",
		"/uk/assets/" + id + "?" + url.Values{"back": {query}}.Encode()} {
		mustBeLight(t, s, path, 200_000)
	}
}
