package site_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

// transport is a function that answers requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func siteOn(t *testing.T, to http.RoundTripper, s search.Searcher) *site.Site {
	t.Helper()
	made, err := site.New(site.Config{Searcher: s, Registry: "http://registry.internal", Transport: to,
		LogKeys: []string{logKey}, Log: slog.New(slog.DiscardHandler)})
	expect.OK(t, err)
	return made
}

// TestSlowReadingsDoNotPileUp requests many pages while the registry does not answer. All requests must end
// within the time of one page, and few of them may read at the same time.
func TestSlowReadingsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		hangs := transport(func(r *http.Request) (*http.Response, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		s := siteOn(t, hangs, newFound())
		var running sync.WaitGroup
		for n := range 100 {
			path := []string{"/uk/assets/" + id, "/en/assets/" + id + "/changes?from=3", "/sitemap/0", "/sitemap.xml"}[n%4]
			running.Go(func() {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != http.StatusServiceUnavailable && (path != "/sitemap.xml" || w.Code != http.StatusOK) {
					t.Errorf("%s: got %d, want 503", path, w.Code)
				}
			})
		}
		running.Wait()
		if most.Load() > 8 {
			t.Errorf("got %d readings at once, want at most 8", most.Load())
		}
	})
}

// counting is a searcher that counts turns, by the name of the caller.
type counting struct {
	*found
	held  atomic.Int64
	full  bool // no turn is given
	names []string
}

func (c *counting) Turn(_ context.Context, caller string) (func(), error) {
	c.names = append(c.names, caller)
	if c.full {
		return nil, fault.New(fault.Unavailable, fault.URL, "search", "full")
	}
	c.held.Add(1)
	return sync.OnceFunc(func() { c.held.Add(-1) }), nil
}

// TestEachPageIsMadeInATurn requests pages for a caller. Each page takes turns of this caller only, and holds none
// while the registry works for it or while it is sent. The registry learns the name of the caller. Without a turn the
// page is a 503.
// Promises: fair-places, fair-callers
func TestEachPageIsMadeInATurn(t *testing.T) {
	for _, path := range []string{
		"/uk/?q=x", "/en/statistics?q=x", "/uk/statistics", "/uk/feed.atom", "/uk/assets/" + id, "/uk/assets/" + number,
		"/en/assets/" + id + "/changes?from=3", "/sitemap.xml", "/sitemap/0", "/uk/statistics.xlsx?q=x", "/en/?quantity_from=x",
		"/uk/assets/" + id + "/changes/1", "/uk/assets/" + id + "/feed.atom",
	} {
		c, records := &counting{found: newFound()}, newRegistry(whole)
		s := siteOn(t, transport(func(r *http.Request) (*http.Response, error) {
			expect.Equal(t, c.held.Load(), 0, "%s, turns held while the registry works", path)
			expect.Equal(t, r.Header.Get(httpserver.CallerHeader), "a caller", "%s: the caller for the registry", path)
			return records.RoundTrip(r)
		}), c)
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set(httpserver.CallerHeader, "a caller")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == http.StatusServiceUnavailable || len(c.names) == 0 || c.held.Load() != 0 {
			t.Errorf("%s: got %d, turns of %q and %d held at the end, want a turn and none held", path, w.Code, c.names, c.held.Load())
		}
		for _, name := range c.names {
			expect.Equal(t, name, "a caller", "%s: a turn of", path)
		}
		c.full = true
		w = httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s without a turn: got %d and Retry-After %q, want 503 and a time", path, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// TestLargeRecordsAreNotShown requests pages of records that are too large. The page must say so, and stay
// small.
func TestLargeRecordsAreNotShown(t *testing.T) {
	long := func(bytes int) []byte {
		return with(t, `"Щосереди"`, `"`+strings.Repeat("x", bytes)+`"`)
	}
	for _, test := range []struct {
		name  string
		bytes int
		says  string
	}{
		{"a record within the limit", 200 << 10, "Check this record"},
		{"a record that is too large for a page", 300 << 10, "The record is too large for a page"},
		{"an answer that is too large to be read", 2 << 20, "The record is too large for a page"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, body := get(t, newSite(t, newRegistry(long(test.bytes)), newFound(), logKey), "/en/assets/"+id)
			if resp.StatusCode != http.StatusOK || len(body) > 1<<20 {
				t.Errorf("got %d with %d bytes, want 200 and less", resp.StatusCode, len(body))
			}
			expect.ErrorIf(t, !strings.Contains(body, test.says), "got no %q, want it on the page", test.says)
		})
	}
}

// TestOnlyTheRecordHasLongTexts has a record with very long texts. The head of the page, and the parts of the
// page outside of the record, must stay short.
func TestOnlyTheRecordHasLongTexts(t *testing.T) {
	var record map[string]any
	expect.OK(t, json.Unmarshal(whole, &record))
	long := strings.Repeat("<щось ", 5000)
	for _, name := range []string{"title", "title_en", "description", "assetID"} {
		record[name] = long
	}
	record["assetCustodian"].(map[string]any)["name"] = long
	text, err := json.Marshal(record)
	expect.OK(t, err)
	for _, path := range []string{"/uk/assets/" + id, "/en/assets/" + id, "/uk/assets/" + id + "/changes?from=1"} {
		resp, body := get(t, newSite(t, newRegistry(text), newFound(), logKey), path)
		head, _, found := strings.Cut(body, "<body>")
		if !found || resp.StatusCode != http.StatusOK || len(head) > 20_000 || strings.Contains(path, "changes") && len(body) > 40_000 {
			t.Errorf("%s: got %d with %d bytes in the head and %d in all, want few", path, resp.StatusCode, len(head), len(body))
		}
	}
}

// TestAHistoryHasSoManyReadings counts how often one page reads from the registry. The record has many changes,
// few of which were public. The page must stop after a few readings.
func TestAHistoryHasSoManyReadings(t *testing.T) {
	r := newRegistry(whole)
	for range 500 {
		r.revisions = append(r.revisions, revision{"draft", whole})
	}
	r.revisions = append(r.revisions, revision{"change", whole})
	var readings atomic.Int64
	counted := transport(func(req *http.Request) (*http.Response, error) {
		readings.Add(1)
		return r.RoundTrip(req)
	})
	resp, body := get(t, siteOn(t, counted, newFound()), "/en/assets/"+id)
	if resp.StatusCode != http.StatusOK || readings.Load() > 25 {
		t.Errorf("got %d after %d readings, want 200 after 25 at most", resp.StatusCode, readings.Load())
	}
	mustHave(t, html.UnescapeString(body), "Older changes are too large for a page.")
}

// TestAChangeListsSoManyDifferences compares a record with one that has many more items. The list of differences
// must be cut off.
func TestAChangeListsSoManyDifferences(t *testing.T) {
	items := &strings.Builder{}
	for n := range 200 {
		fmt.Fprintf(items, `{"id":"%032x","description":"%s","quantity":1},`, n, strings.Repeat("довго ", 30))
	}
	more := with(t, `"items":[`, `"items":[`+items.String())
	_, body := get(t, newSite(t, newRegistry(whole, more), newFound(), logKey), "/en/assets/"+id+"/changes?from=2")
	mustHave(t, html.UnescapeString(body), "and 360\u00a0differences")
	expect.ErrorIf(t, len(body) > 60_000, "got %d bytes, want less", len(body))
}

// TestALongSearchIsNotRepeatedInEachLink sends 14 KB of filters to pages that have a link for each value. The
// pages must stay small.
func TestALongSearchIsNotRepeatedInEachLink(t *testing.T) {
	f := newFound()
	f.result.Facets = nil
	for _, p := range search.Properties {
		facet := search.Facet{Name: p.Name}
		for n := range 30 {
			facet.Values = append(facet.Values, search.Count{Value: fmt.Sprintf("20%02d-01", n), Count: 5, Area: 5e6, Pieces: 2})
		}
		f.result.Facets = append(f.result.Facets, facet)
	}
	for range 19 {
		f.result.Hits = append(f.result.Hits, f.result.Hits[0])
	}
	f.result.Next = &search.Cursor{Sort: search.NewestFirst, At: 1}
	f.result.Prev, f.result.Before = &search.Cursor{Sort: search.NewestFirst, At: 9, Back: true}, 40
	long := url.Values{}
	for n := range 10 {
		long.Add("owner", fmt.Sprint(n, strings.Repeat("ж", 190)))
		long.Add("type", fmt.Sprint(n))
		long.Add("region", fmt.Sprint(n))
	}
	long.Add("locality", strings.Repeat("ж", 200))
	short := url.Values{"owner": long["owner"][:1], "type": long["type"]}
	if n := len(long.Encode()); n < 12_000 || n > 14_000 {
		t.Fatalf("got a query of %d bytes, want about 14,000", n)
	}
	for _, page := range []string{"/uk/", "/uk/statistics", "/uk/statistics.csv", "/uk/feed.atom", "/uk/assets/" + id, "/uk/assets/" + id + "/changes/1"} {
		s := newSite(t, newRegistry(whole), f, logKey)
		for _, sent := range []url.Values{long, {"back": {long.Encode()}}} {
			resp, body := get(t, s, page+"?"+sent.Encode())
			if resp.StatusCode != http.StatusOK || len(body) > 300_000 {
				t.Errorf("%s: got %d with %d bytes, want 200 and at most 300,000", page, resp.StatusCode, len(body))
			}
		}
		if strings.Contains(page, "asset") || strings.Contains(page, "feed") || strings.Contains(page, "csv") {
			continue
		}
		for _, c := range []struct {
			sent   url.Values
			linked bool
		}{{long, false}, {short, true}} {
			_, body := get(t, s, page+"?"+c.sent.Encode())
			if has := strings.Contains(body, `Прибрати фільтр`); has != c.linked {
				t.Errorf("%s: got links of %d bytes without a filter: %t, want %t", page, len(c.sent.Encode()), has, c.linked)
			}
			mustHave(t, body, `<span class="chip-name">`)
		}
	}
}
