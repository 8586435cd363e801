package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"asset-registry/shared/identity"
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
				if g, w := got.Header().Get(name), want.Get(name); g != w && name != "Content-Length" {
					t.Errorf("%s: got the header %s %q, want %q", c.name, name, g, w)
				}
			}
		}
	}
}

// turned records an answer, and how many turns are taken while its headers and its body are written.
type turned struct {
	*httptest.ResponseRecorder
	turns           *memory.Semaphore
	before, sending int64
}

func (w *turned) Header() http.Header {
	if w.Body.Len() == 0 {
		w.before = w.turns.Used()
	}
	return w.ResponseRecorder.Header()
}

func (w *turned) Write(p []byte) (int, error) {
	w.sending = max(w.sending, w.turns.Used())
	return w.ResponseRecorder.Write(p)
}

// TestLargeAssetsAreReadInTurn reads assets while all turns are taken: one for each processor. Readings of large assets
// wait for two seconds, and no longer than their context. Small ones, those that need no body, and requests that ask
// another service need no turn. No turn is taken while an answer is sent.
// Promises: asset-turns
func TestLargeAssetsAreReadInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 30)
		if got, want := m.Turns.Size(), int64(runtime.GOMAXPROCS(0)); got != want {
			t.Fatalf("got %d turns, want %d", got, want)
		}
		s, api, _ := newServiceParts(t, m)
		small, large := "/api/2.5/assets/"+s.publish(t, 10), "/api/2.5/assets/"+s.publish(t, 700_000)
		waiting := []exchange{
			{"GET", large, "", "", "", 200, ""},
			{"GET", strings.Replace(large, "2.5", "2.4", 1), "", "", "", 200, ""},
			{"GET", large + "/documents", "", "", "", 200, ""},
			{"GET", large + "/documents?all=1&opt_jsonp=f", "", "", "", 200, ""},
			{"GET", "/api/2.5/assets?opt_fields=*", "", "", "", 200, ""},
		}
		free := []exchange{
			{"GET", small, "", "", "", 200, ""},
			{"GET", small + "/documents?opt_pretty=1", "", "", "", 200, ""},
			{"GET", "/api/2.5/assets", "", "", "", 200, ""},
			{"HEAD", large + "?opt_jsonp=f", "", "", "", 200, ""},
			{"HEAD", "/api/2.5/assets?opt_fields=*", "", "", "", 200, ""},
			{"GET", large + "/revisions", identity.Administrator, "", "", 200, ""},
			{"PATCH", large, identity.Broker, "token", `{"data":{"title":"y"}}`, 200, ""},
		}
		for n, list := range [][]exchange{waiting, free} {
			for _, e := range list {
				w := &turned{ResponseRecorder: httptest.NewRecorder(), turns: m.Turns}
				s.answer(t, w, nil, e)
				if want := int64(1 - n); w.Code != e.status || w.before != want || w.sending != 0 {
					t.Errorf("%s %s: got %d with %d turns, %d while it was sent; want %d, %d, none",
						e.method, e.path, w.Code, w.before, w.sending, e.status, want)
				}
			}
		}
		end, err := m.Turns.Acquire(t.Context(), m.Turns.Size())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range free {
			s.do(t, e)
		}
		for _, e := range waiting {
			e.status, e.says = 503, "too many large requests"
			s.do(t, e)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := api.turn(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("with a client that left: got %v, want %v", err, context.Canceled)
		}
		end()
		for _, e := range waiting {
			s.do(t, e)
		}
		if m.Turns.Used() != 0 || m.Work.Used() != 0 {
			t.Errorf("got %d turns and %d bytes held at the end, want none", m.Turns.Used(), m.Work.Used())
		}
	})
}
