package site_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/testing/expect"
)

//go:embed testdata/asset.json
var whole []byte

const (
	id     = "0123456789abcdef0123456789abcdef"
	logKey = "registry.example/log+952bc5e7+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
)

// found is a searcher that always gives the same answer.
type found struct {
	mu     sync.Mutex
	result search.Result
	err    error
	asked  []search.Query
}

func (f *found) Search(_ context.Context, q search.Query) (search.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q)
	result := f.result
	result.Facets = nil
	for _, name := range q.Facets {
		for _, facet := range f.result.Facets {
			if facet.Name == name {
				result.Facets = append(result.Facets, facet)
			}
		}
	}
	if q.Limit == 0 {
		result.Hits = nil
	}
	return result, f.err
}

func (f *found) Turn(context.Context, string) (func(), error) { return func() {}, nil }

func (f *found) State() search.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return search.State{Position: f.result.Position, Assets: f.result.Total, Ready: true}
}

func (f *found) queries() []search.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// newFound returns a searcher whose searches all find one asset: the variable `whole`.
func newFound() *found {
	return &found{result: search.Result{
		Hits: []search.Hit{{ID: id, Asset: whole}}, Total: 1234,
		Position: client.Position{Offset: "2026-11-22T13:00:00.000001+00:00", ServerID: "s"},
		Facets: []search.Facet{
			{Name: search.ByStatus, Values: []search.Count{{Value: "active", Count: 1000}, {Value: "pending", Count: 234}}},
			{Name: search.ByRegion, Values: []search.Count{{Value: "київ", Name: "Київ", Count: 1200}}, More: true},
			{Name: search.ByClassification, Values: []search.Count{{Value: "04", Name: "Нерухоме майно", Count: 9}}},
			{Name: search.ByKyivMonth, Values: []search.Count{{Value: "2026-11", Count: 7}, {Value: "2026-09", Count: 5}}},
		},
	}}
}

// registry is a fake registry with one asset. It has a proof, without hashes, for each of the asset's revisions.
type registry struct {
	revisions []revision // revision 1 is the first
	hasLog    bool
	feed      int            // number of entries
	status    int            // status of every answer; 0: the usual one
	isPage    string         // path at which a proxy answers with a page
	pictures  map[string]int // maps paths below /get to the statuses of their answers
	catalogue string         // the catalogue of whole copies; "": the registry has none

	mu       sync.Mutex
	visitors []string // X-Forwarded-For of each request
	asked    []string // path of each request
}

// revision is a revision of the asset. A revision of the kind draft has no leaf in the log.
type revision struct {
	kind  string
	asset []byte // nil: the revision withdrew or erased the asset
}

func newRegistry(states ...[]byte) *registry {
	r := &registry{hasLog: true}
	for i, s := range states {
		kind := "change"
		if i == 0 {
			kind = "publish"
		}
		r.revisions = append(r.revisions, revision{kind, s})
	}
	return r
}

func (r *registry) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.visitors = append(r.visitors, req.Header.Get("X-Forwarded-For"))
	r.asked = append(r.asked, req.URL.Path)
	r.mu.Unlock()
	w := httptest.NewRecorder()
	r.answer(w, req)
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

func (r *registry) answer(w http.ResponseWriter, req *http.Request) {
	last := r.revisions[len(r.revisions)-1]
	w.Header().Set("Content-Type", "application/json")
	switch path := strings.TrimPrefix(req.URL.Path, "/api/2.5/assets"); {
	case r.status != 0:
		w.WriteHeader(r.status)
	case r.pictures[req.URL.Path] != 0 && req.Method == http.MethodHead:
		w.Header().Set("Content-Type", "image/jpeg")
		if r.isPage == req.URL.Path {
			w.Header().Set("Content-Type", "text/html")
		}
		w.Header().Set("Registry-Total", "12")
		w.Header().Set("Content-Length", "34567890")
		w.WriteHeader(r.pictures[req.URL.Path])
	case req.URL.Path == "/data/catalog.jsonld" && r.catalogue != "":
		io.WriteString(w, r.catalogue)
	case path == "":
		r.page(w, req)
	case path == "/"+id && last.asset != nil:
		fmt.Fprintf(w, `{"data":%s}`, last.asset)
	case path == "/"+id+"/proof" && r.hasLog:
		r.prove(w, req)
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"status":"error","errors":[{"location":"url","name":"asset_id","description":"Not Found"}]}`)
	}
}

func (r *registry) prove(w http.ResponseWriter, req *http.Request) {
	n := len(r.revisions)
	if text := req.URL.Query().Get("revision"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	if n < 1 || n > len(r.revisions) || r.revisions[n-1].kind == "draft" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	at := r.revisions[n-1]
	data := map[string]any{"index": n, "path": []string{}, "checkpoint": "",
		"leaf": map[string]any{"kind": at.kind, "position": 1795000000000000 + n*3600_000_000, "revision": n}}
	if at.asset != nil {
		data["salt"], data["asset"] = strings.Repeat("0", 64), json.RawMessage(at.asset)
	}
	json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// page answers with a page of the feed, in which the times of entries are a second apart.
func (r *registry) page(w http.ResponseWriter, req *http.Request) {
	const form = "2026-11-22T%02d:%02d:%02d.000000+00:00"
	stamp := func(n int) string { return fmt.Sprintf(form, n/3600, n/60%60, n%60) }
	from := 0
	if offset := req.URL.Query().Get("offset"); offset != "" {
		var h, m, s int
		fmt.Sscanf(offset, "2026-11-22T%02d:%02d:%02d", &h, &m, &s)
		from = h*3600 + m*60 + s
	}
	limit, _ := strconv.Atoi(req.URL.Query().Get("limit"))
	entries, next := []map[string]string{}, stamp(from)
	for n := from + 1; n <= min(from+limit, r.feed); n++ {
		status := "pending"
		if n%10 == 0 {
			status = "deleted"
		}
		entries = append(entries, map[string]string{"id": fmt.Sprintf("%032x", n), "dateModified": stamp(n), "status": status})
		next = stamp(n)
	}
	json.NewEncoder(w).Encode(map[string]any{"data": entries, "next_page": map[string]string{"offset": next}})
}

// The function `with` returns the asset of these tests (whole), in which some texts are replaced by others.
func with(t *testing.T, pairs ...string) []byte {
	t.Helper()
	text := string(whole)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("got no %q in the asset, want it there", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return []byte(text)
}

// links are templates for addresses on other sites.
var links = site.Links{
	Map:    "https://maps.example/?at={latitude},{longitude}#{latitude}",
	Search: "https://maps.example/search?query={address}",
	Sale:   "https://sales.example/{type}/{identifier}?id={id}",
}

func newSite(t *testing.T, r *registry, s search.Searcher, keys ...string) *site.Site {
	t.Helper()
	return newSiteWith(t, r, s, codenames.Lists{}, keys...)
}

func newSiteWith(t *testing.T, r *registry, s search.Searcher, names codenames.Lists, keys ...string) *site.Site {
	t.Helper()
	made, err := site.New(site.Config{Searcher: s, Registry: "http://registry.internal", Transport: r,
		Names: names, LogKeys: keys, Links: links, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	expect.OK(t, err)
	return made
}

// get requests a path, and returns the answer and its body.
func get(t *testing.T, h http.Handler, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Host = "registry.example"
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if strings.Contains(w.Body.String(), "ZgotmplZ") {
		t.Errorf("%s: got a link or a text that html/template has refused, want none", path)
	}
	return w.Result(), w.Body.String()
}

// mustHave checks that a text contains all of the given texts.
func mustHave(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		expect.ErrorIf(t, !strings.Contains(text, w), "got no %q, want it in: %s", w, text)
	}
}

// mustLack checks that a text contains none of the given texts.
func mustLack(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		expect.ErrorIf(t, strings.Contains(text, u), "got %q, want it left out of: %s", u, text)
	}
}
