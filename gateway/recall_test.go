package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"asset-registry/shared/testing/expect"
)

// counted is an asset service with one asset. It counts its requests.
type counted struct {
	asked atomic.Int64
	shown func(w http.ResponseWriter, r *http.Request)
}

func (s *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.shown(w, r)
}

// The function `whole` is the handler of an asset service. It answers each request with the same asset.
func whole(w http.ResponseWriter, _ *http.Request) {
	const body = `{"data":{"id":"a"}}`
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"1-2.5"`)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	fmt.Fprint(w, body)
}

// readAsset sends a request for the asset, with headers as "Name: value".
func readAsset(s *Server, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/api/2.5/assets/"+path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// remembering starts a gateway with a memory for answers.
func remembering(t *testing.T, service *counted) *Server {
	return start(t, func(c *Config) { c.Assets, c.Answers = service, NewAnswers(1<<30) })
}

func TestPlainReadingsAreAnsweredFromMemory(t *testing.T) {
	tests := []struct {
		name, method, path string
		headers            []string
		fromMemory         bool
		status             int
	}{
		{"GET", "GET", "a", nil, true, 200},
		{"HEAD", "HEAD", "a", nil, true, 200},
		{"the client has it", "GET", "a", []string{`If-None-Match: "1-2.5"`}, true, 304},
		{"the client has an older one", "GET", "a", []string{`If-None-Match: "0-2.5"`}, false, 200},
		{"any tag", "GET", "a", []string{`If-None-Match: *`}, false, 200},
		{"two tags", "GET", "a", []string{`If-None-Match: "0-2.5", "1-2.5"`}, false, 200},
		{"If-Match", "GET", "a", []string{`If-Match: "1-2.5"`}, false, 200},
		{"with a parameter", "GET", "a?opt_pretty=1", nil, false, 200},
		{"another asset", "GET", "b", nil, false, 200},
		{"with an API key", "GET", "a", []string{"Authorization: Basic a2V5Og=="}, false, 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			service := &counted{shown: whole}
			s := remembering(t, service)
			readAsset(s, "GET", "a")
			readAsset(s, "GET", "a")
			before := service.asked.Load()
			got := readAsset(s, test.method, test.path, test.headers...)
			if fromMemory := service.asked.Load() == before; fromMemory != test.fromMemory || got.Code != test.status {
				t.Errorf("got %d, from memory: %t; want %d, %t", got.Code, fromMemory, test.status, test.fromMemory)
			}
			if hasBody := got.Body.Len() > 0; hasBody != (test.method == "GET" && test.status == 200) {
				t.Errorf("got %d bytes in the answer to %s with %d", got.Body.Len(), test.method, got.Code)
			}
		})
	}
}

func TestOnlyWholeAnswersAreKept(t *testing.T) {
	for name, shown := range map[string]func(http.ResponseWriter, *http.Request){
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", "1")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "x")
		},
		"no tag": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1")
			fmt.Fprint(w, "x")
		},
		"no length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			fmt.Fprint(w, "x")
		},
		"less than its length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", "2")
			fmt.Fprint(w, "x")
		},
		"more than its length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", "2")
			fmt.Fprint(w, "xyz")
		},
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", "100000")
			fmt.Fprint(w, strings.Repeat("x", 100_000))
		},
		"a panic": func(w http.ResponseWriter, r *http.Request) {
			whole(w, r)
			panic("defect")
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := &counted{shown: shown}
			s := remembering(t, service)
			for range 4 {
				readAsset(s, "GET", "a")
			}
			expect.Equal(t, service.asked.Load(), 4, "readings by the asset service")
		})
	}
}

func BenchmarkReadFromMemory(b *testing.B) {
	service := &counted{shown: whole}
	s := start(b, func(c *Config) {
		c.Assets, c.Answers, c.Limits = service, NewAnswers(1<<30), Limits{AddressRead: new(int64(1 << 40))}
	})
	for range 2 {
		readAsset(s, "GET", "a")
	}
	b.ReportAllocs()
	for b.Loop() {
		readAsset(s, "GET", "a")
	}
	expect.Equal(b, service.asked.Load(), 2, "readings by the asset service")
}
