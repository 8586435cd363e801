package httpapi

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
)

// TestASmallAnswerAboutALargeAssetIsCheap asks for parts, headers, conditions and refusals of assets of several sizes,
// and counts the bytes that are allocated. An answer that decodes or copies the asset allocates more than the asset has.
// The headers of a HEAD are those of the GET, without the length of a body that nobody makes.
// Promises: head-length
func TestASmallAnswerAboutALargeAssetIsCheap(t *testing.T) {
	const most = 200 << 10
	s := newService(t)
	for _, size := range []int{memory.Small, 600_000, 3_700_000} {
		at := "/api/2.5/assets/" + s.publish(t, size)
		whole := s.do(t, exchange{"GET", at, "", "", "", 200, ""})
		item := regexp.MustCompile(`"items":\[\{"id":"([0-9a-f]{32})"`).FindStringSubmatch(whole.Body.String())
		if item == nil || whole.Body.Len() < size {
			t.Fatalf("got %d bytes and no item, want an item and %d bytes", whole.Body.Len(), size)
		}
		tag := whole.Header().Get("ETag")
		known, other := http.Header{"If-None-Match": {tag}}, http.Header{"If-Match": {`"1-2.5"`}}
		for _, c := range []struct {
			name    string
			headers http.Header
			e       exchange
		}{
			{"a part", nil, exchange{"GET", at + "/items/" + item[1], "", "", "", 200, item[1]}},
			{"parts of another kind", nil, exchange{"GET", at + "/decisions", "", "", "", 200, ""}},
			{"an unknown part", nil, exchange{"GET", at + "/documents/x", "", "", "", 404, "document_id"}},
			{"an unknown download", nil, exchange{"GET", at + "/documents/x?download=x", "", "", "", 404, ""}},
			{"a known part", known, exchange{"GET", at + "/items/" + item[1], "", "", "", 304, ""}},
			{"known parts", known, exchange{"GET", at + "/documents", "", "", "", 304, ""}},
			{"an unknown part with the tag of the asset", known, exchange{"GET", at + "/items/x", "", "", "", 404, "item_id"}},
			{"the known asset", known, exchange{"GET", at, "", "", "", 304, ""}},
			{"any asset", http.Header{"If-None-Match": {"*"}}, exchange{"GET", at, "", "", "", 304, ""}},
			{"another asset", other, exchange{"GET", at, "", "", "", 412, "precondition"}},
			{"a bad condition", http.Header{"If-Match": {"x"}}, exchange{"GET", at, "", "", "", 400, "If-Match"}},
			{"headers", nil, exchange{"HEAD", at, "", "", "", 200, ""}},
			{"headers of a script", nil, exchange{"HEAD", at + "?opt_pretty=1&opt_jsonp=f", "", "", "", 200, ""}},
			{"headers in version 2.4", nil, exchange{"HEAD", strings.Replace(at, "2.5", "2.4", 1), "", "", "", 200, ""}},
			{"headers of parts", nil, exchange{"HEAD", at + "/documents?opt_pretty=1", "", "", "", 200, ""}},
			{"headers of a part", nil, exchange{"HEAD", at + "/items/" + item[1], "", "", "", 200, ""}},
			{"headers of a page", nil, exchange{"HEAD", "/api/2.5/assets?opt_fields=*&limit=1000", "", "", "", 200, ""}},
			{"refused revisions", nil, exchange{"GET", at + "/revisions", "", "", "", 403, ""}},
			{"a refused change", nil, exchange{"PATCH", at + "/items/" + item[1], "", "", "x", 403, ""}},
		} {
			least := uint64(1 << 62)
			var got *httptest.ResponseRecorder
			for range 3 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got = s.doWith(t, c.headers, c.e)
				runtime.ReadMemStats(&after)
				least = min(least, after.TotalAlloc-before.TotalAlloc)
			}
			if least > most && size > memory.Small {
				t.Errorf("%s of an asset of %d bytes: got %d allocated bytes, want at most %d", c.name, size, least, most)
			}
			if c.e.method != "HEAD" || got.Header().Get("Content-Length") != "" {
				continue
			}
			get := c.e
			get.method = "GET"
			want := s.do(t, get).Header()
			for name := range want {
				if g, w := got.Header().Get(name), want.Get(name); g != w && name != "Content-Length" && name != httpserver.WorkHeader {
					t.Errorf("%s: got the header %s %q, want %q", c.name, name, g, w)
				}
			}
		}
	}
}

// TestReadingsTellTheirWork reads small parts of large assets. The gateway must hear of the bytes that were read for
// them, and of none for an asset that is small.
func TestReadingsTellTheirWork(t *testing.T) {
	s := newService(t)
	small, large := "/api/2.5/assets/"+s.publish(t, 10), "/api/2.5/assets/"+s.publish(t, 600_000)
	for _, c := range []struct {
		path          string
		status, least int
	}{
		{small + "/items/x", 404, 0},
		{"/api/2.5/assets", 200, 0},
		{large, 200, medium},
		{large + "/items/x", 404, medium},
		{large + "/documents?all=1", 200, medium},
		{"/api/2.5/assets?opt_fields=status", 200, 600_000},
	} {
		got := s.do(t, exchange{"GET", c.path, "", "", "", c.status, ""})
		work, _ := strconv.Atoi(got.Header().Get(httpserver.WorkHeader))
		if work < c.least || c.least == 0 && work > 0 {
			t.Errorf("%s: got %d bytes of work, want %d at least, or none", c.path, work, c.least)
		}
	}
}
