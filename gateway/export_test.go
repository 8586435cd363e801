package gateway

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/testing/expect"
)

// library is a search service and an asset service.
type library struct {
	assets int
	size   int                                              // additional bytes in each asset
	get    func(w http.ResponseWriter, n int) (isDone bool) // answers for asset n, or returns false; nil: always false
	reads  atomic.Int64
}

// search answers with a page of ids. A page begins with the last id of the page before.
func (l *library) search(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("q") == "bad" {
		faulthttp.Write(w, fault.New(fault.Invalid, fault.Query, "q", "This is no question."))
		return
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("search_after"))
	var page struct {
		Data  []map[string]string `json:"data"`
		Total int                 `json:"total"`
		Next  map[string]string   `json:"next_page,omitempty"`
		Said  map[string][]string `json:"interpreted,omitempty"`
	}
	if q := r.URL.Query().Get("q"); q != "" {
		page.Said = map[string][]string{"steps": strings.Fields(q)}
	}
	page.Total = l.assets
	for n := max(from-1, 0); n < min(from+limit, l.assets); n++ {
		page.Data = append(page.Data, map[string]string{"id": fmt.Sprint(n)})
	}
	if from+limit < l.assets {
		page.Next = map[string]string{"search_after": fmt.Sprint(from + limit)}
	}
	_ = json.NewEncoder(w).Encode(page)
}

func (l *library) read(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/api/2.5/assets/"))
	if err != nil {
		return
	}
	l.reads.Add(1)
	if l.get != nil && l.get(w, n) {
		return
	}
	fmt.Fprintf(w, `{"data":{"id":"%d","status":"active","x":"%s"}}`, n, strings.Repeat("x", l.size))
}

// serve starts a gateway in front of the library. It returns the beginning of the addresses of the library's
// exports.
func (l *library) serve(t *testing.T) string {
	t.Helper()
	s := start(t, func(c *Config) {
		c.Assets, c.Search = http.HandlerFunc(l.read), http.HandlerFunc(l.search)
	})
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL + "/api/2.5/search."
}

// rowsAt reads a CSV file from an address. It returns the ids in the file, and the answer.
func rowsAt(t *testing.T, at string) (ids []string, resp *http.Response, err error) {
	t.Helper()
	resp, err = http.Get(at)
	expect.OK(t, err)
	defer resp.Body.Close()
	rows, err := csv.NewReader(resp.Body).ReadAll()
	for _, row := range rows[min(1, len(rows)):] {
		ids = append(ids, row[0])
	}
	return ids, resp, err
}

// TestAnExportHasEachAssetOnce exports three pages. One asset does not exist any more, and the first read of a
// different asset fails. Each existing asset must be in the file once.
func TestAnExportHasEachAssetOnce(t *testing.T) {
	var busy atomic.Bool
	l := &library{assets: 250, get: func(w http.ResponseWriter, n int) bool {
		switch {
		case n == 7:
			faulthttp.Write(w, fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found"))
		case n == 8 && busy.CompareAndSwap(false, true):
			faulthttp.Write(w, fault.New(fault.Unavailable, fault.URL, "registry", "Busy."))
		default:
			return false
		}
		return true
	}}
	ids, resp, err := rowsAt(t, l.serve(t)+"csv?status=active")
	if err != nil || resp.StatusCode != http.StatusOK || len(ids) != 249 || ids[7] != "8" || ids[248] != "249" {
		t.Errorf("got %d, %d rows %v and %v, want all but one", resp.StatusCode, len(ids), ids, err)
	}
	expect.Equal(t, resp.Header.Get("Registry-Total"), "250", "the total")
	for name, want := range map[string]string{"Content-Disposition": `attachment; filename="assets.csv"`,
		"Content-Type": "text/csv; charset=utf-8; header=present", "Cache-Control": "no-store"} {
		expect.Equal(t, resp.Header.Get(name), want, "%s", name)
	}
}

// TestAnExportSaysHowItsWordsWereRead exports searches with words that were read in another way.
func TestAnExportSaysHowItsWordsWereRead(t *testing.T) {
	for q, want := range map[string]string{"stopped": "stopped", "layout+nearest": "layout, nearest"} {
		_, resp, err := rowsAt(t, (&library{}).serve(t)+"csv?q="+q)
		expect.OK(t, err)
		expect.Equal(t, resp.Header.Get("Registry-Interpreted"), want, "%s", q)
	}
}

// TestAnExportHasAtMost10000Rows exports 12,345 assets. The file must have the first 10,000, and its name must have
// both numbers.
// Promises: export-rows
func TestAnExportHasAtMost10000Rows(t *testing.T) {
	l := &library{assets: 12_345}
	ids, resp, err := rowsAt(t, l.serve(t)+"csv")
	if err != nil || len(ids) != 10_000 || ids[9_999] != "9999" {
		t.Errorf("got %d rows and %v, want 10000", len(ids), err)
	}
	expect.Equal(t, resp.Header.Get("Content-Disposition"), `attachment; filename="assets-first-10000-of-12345.csv"`,
		"")
	expect.Equal(t, resp.Header.Get("Registry-Total"), "12345", "the total")
	expect.Equal(t, resp.Header.Get("Registry-Interpreted"), "", "the steps of a search without words")
	expect.Equal(t, l.reads.Load(), 10_000, "readings")
}

// TestACallerHasOneExport uses clients that do not read their exports, or archives of documents. One more of the same
// caller must be refused, but searches must work.
// Promises: archive-turns, export-turns
func TestACallerHasOneExport(t *testing.T) {
	for _, path := range []string{"/api/2.5/search.csv", "/get/" + strings.Repeat("0", 32) + "/documents.zip"} {
		t.Run(path, func(t *testing.T) { testTurns(t, path) })
	}
}

func testTurns(t *testing.T, path string) {
	begun, release := make(chan struct{}, 10), make(chan struct{})
	wait := func() {
		begun <- struct{}{}
		<-release
	}
	l := &library{assets: 1, get: func(http.ResponseWriter, int) bool {
		wait()
		return false
	}}
	s := start(t, func(c *Config) {
		c.Assets, c.Search = http.HandlerFunc(l.read), http.HandlerFunc(l.search)
		c.Files = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				wait()
			}
		})
	})
	done := make(chan int)
	ask := func(addr, key string) { done <- askFor(s, path, addr, key).Code }
	for n := range 3 {
		go ask(fmt.Sprintf("192.0.2.%d:1", n), "")
		<-begun
	}
	if got := askFor(s, path, "192.0.2.1:2", ""); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("one more of an address: got %d, want 429 with Retry-After", got.Code)
	}
	go ask("192.0.2.1:2", "key")
	<-begun
	if got := askFor(s, path, "192.0.2.9:1", ""); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("a fifth export: got %d, want 503 with Retry-After", got.Code)
	}
	expect.Equal(t, askFor(s, "/api/2.5/search", "192.0.2.1:3", "").Code, http.StatusOK, "a search beside exports")
	close(release)
	for range 4 {
		expect.Equal(t, <-done, http.StatusOK, "an export")
	}
	expect.Equal(t, askFor(s, path, "192.0.2.1:4", "").Code, http.StatusOK, "after the others")
}

// TestAnExportEndsWithItsClient disconnects before an export of many assets ends. The gateway must then stop
// reading assets.
// Promises: export-bounds
func TestAnExportEndsWithItsClient(t *testing.T) {
	l := &library{assets: 1_000_000, size: 4 << 10}
	at := l.serve(t)
	resp, err := http.Get(at + "csv")
	expect.OK(t, err)
	_ = resp.Body.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, resp, _ := rowsAt(t, at+"csv?q=bad"); resp.StatusCode == http.StatusBadRequest { // no 429: the export has ended
			break
		}
		expect.FatalIf(t, time.Now().After(deadline), "the export goes on without its client")
	}
	if got := l.reads.Load(); got == 10_000 {
		t.Errorf("got %d readings, want fewer", got)
	}
}

// TestAnExportThatFailsIsNotWhole exports assets that are too large, and assets that cannot be read. The file
// must not look complete.
// Promises: export-bounds
func TestAnExportThatFailsIsNotWhole(t *testing.T) {
	failing := func(w http.ResponseWriter, n int) bool {
		if n == 150 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return n == 150
	}
	for name, l := range map[string]*library{
		"a failing reading": {assets: 1000, get: failing},
		"a large asset":     {assets: 1000, size: 9 << 20},
	} {
		at := l.serve(t)
		for _, form := range []string{"csv", "xlsx", "geojson"} {
			resp, err := http.Get(at + form)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			expect.ErrorIf(t, err == nil, "%s, %s: got a whole file, want one that breaks off", name, form)
		}
		if got := l.reads.Load(); got >= 3000 {
			t.Errorf("%s: got %d readings, want fewer", name, got)
		}
	}
}

func TestFaultsAreToldBeforeTheFile(t *testing.T) {
	l := &library{assets: 1}
	at := l.serve(t)
	for path, says := range map[string]string{
		"csv?q=bad": "This is no question.", "xlsx?limit=5": `"name":"limit"`, "geojson?search_after=x": `"name":"search_after"`,
		"csv?facets=region": `"name":"facets"`, "csv?opt_jsonp=x": `"name":"opt_jsonp"`, "csv?q=%zz": `"name":"q"`,
		"csv?opt_x=1&q=bad": "This is no question.", "csv?q=bad&opt_x=1": `"name":"opt_x"`,
	} {
		resp, err := http.Get(at + path)
		expect.OK(t, err)
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), says) {
			t.Errorf("%s: got %d %s, want 400 and %s", path, resp.StatusCode, text, says)
		}
	}
	resp, err := http.Head(at + "xlsx")
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Registry-Total") != "1" || l.reads.Load() != 0 {
		t.Errorf("HEAD: got %v, %v and %d readings, want the headers only", resp, err, l.reads.Load())
	}
}
