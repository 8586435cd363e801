package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestFilesWithoutTheirService has a gateway that an upgrade has started before the first file service, so
// nobody listens at the address of the file service yet. Each route of files, and a form of a document, must
// answer with a 503 that says when to come again. So no client believes that a file does not exist
// (docs/versions.md).
// Promises: files-later
func TestFilesWithoutTheirService(t *testing.T) {
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	address := "http://" + unused.Addr().String()
	expect.OK(t, unused.Close())
	s := start(t, func(c *Config) {
		c.Auth = httpserver.InProcess(http.HandlerFunc(twoKeys))
		c.FilesURLs = []string{address}
	})
	asked := 0
	ask := func(method, path string) {
		t.Helper()
		asked++
		r := httptest.NewRequest(method, path, strings.NewReader("--b\r\n"))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.SetBasicAuth("key", "")
		got := httptest.NewRecorder()
		s.Handler().ServeHTTP(got, r)
		if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: got %d, Retry-After %q, want 503 with it", method, path, got.Code, got.Header().Get("Retry-After"))
		}
	}
	id := strings.NewReplacer(":file", strings.Repeat("0", 32), ":side", "320")
	for _, r := range routes.Files() {
		ask(r.Method, id.Replace(r.Pattern))
	}
	ask(http.MethodPost, "/api/2.5/assets/"+strings.Repeat("0", 32)+"/documents")
	expect.ErrorIf(t, asked != len(routes.Files())+1 || asked < 10, "got %d requests, want one for each route", asked)
}

// TestAFormWhoseAssetServiceIsAway sends the form of a document to a gateway that reaches its file service only. The
// client waits, so it must get an answer that says when to come again.
func TestAFormWhoseAssetServiceIsAway(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Assets, c.AssetsURLs = nil, []string{"http://127.0.0.1:1"}
		c.Files = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			io.WriteString(w, `{"data":{"title":"a.pdf"}}`)
		})
	})
	for _, method := range []string{"POST", "PUT"} {
		path := map[string]string{"POST": "", "PUT": "/1"}[method]
		r := httptest.NewRequest(method, "/api/2.5/assets/1/documents"+path, strings.NewReader("--b\r\n"))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.SetBasicAuth("key", "")
		got := httptest.NewRecorder()
		s.Handler().ServeHTTP(got, r)
		if got.Code != 503 || got.Header().Get("Retry-After") == "" || !strings.Contains(got.Body.String(), `"url"`) {
			t.Errorf("%s: got %d %q, Retry-After %q; want 503, an error body and a time",
				method, got.Code, got.Body, got.Header().Get("Retry-After"))
		}
	}
}

// TestABackEndThatHangsTakesOnlyItsOwn sends 4,000 requests of each kind to a back end that answers none, each from an
// address of its own. Then every route of the others, and the gateway's own, must answer readers without a key.
// Promises: back-end-places
func TestABackEndThatHangsTakesOnlyItsOwn(t *testing.T) {
	back := map[string]string{ // a route of each back end
		"assets": "/api/2.5/assets/1", "search": "/api/2.5/search", "files": "/get/1", "": "/api/2.5/openapi.json",
	}
	for hung, path := range back {
		if hung == "" {
			continue
		}
		held, leave := make(chan struct{}), make(chan struct{})
		of := func(name string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if name == hung {
					held <- struct{}{}
					<-leave
				}
			})
		}
		s := start(t, func(c *Config) { c.Assets, c.Search, c.Files = of("assets"), of("search"), of("files") })
		ask := func(n int, path, key string) int {
			r := httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = fmt.Sprintf("10.1.%d.%d:1", n/256, n%256)
			if key != "" {
				r.SetBasicAuth(key, "")
			}
			got := httptest.NewRecorder()
			s.Handler().ServeHTTP(got, r)
			return got.Code
		}
		refused, under := make(chan int), 0
		for n := range 2 * DefaultMaxConcurrent {
			go func() { refused <- ask(n, path, []string{"", "key"}[n/DefaultMaxConcurrent]) }()
			select {
			case <-held:
				under++
			case got := <-refused:
				if got != http.StatusServiceUnavailable && got != http.StatusTooManyRequests {
					t.Fatalf("%s hangs: got %d for a request too many, want 503 or 429", hung, got)
				}
			}
		}
		for name, path := range back {
			if name == hung {
				continue
			}
			if got := ask(9999, path, ""); got != http.StatusOK {
				t.Errorf("%s hangs under %d requests: got %d from %q, want 200", hung, under, got, name)
			}
		}
		close(leave)
		for range under {
			<-refused
		}
		expect.Equal(t, s.current.Current(), 0, "after the end of %s: places taken", hung)
	}
}

// TestAReaderOfFilesHasAShare reads more files at once than one client may.
func TestAReaderOfFilesHasAShare(t *testing.T) {
	held, leave := make(chan struct{}), make(chan struct{})
	s := start(t, func(c *Config) {
		c.Settings.MaxConcurrent = 40 // 8 for files, 2 of them for one client
		c.Files = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			held <- struct{}{}
			<-leave
		})
	})
	defer close(leave)
	for range 2 {
		go fetch(t, s, "GET", "/get/1")
		<-held
	}
	got := fetch(t, s, "GET", "/get/1")
	if got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body.String(), "You have 2 readings of files") {
		t.Errorf("got %d %s, want 429 that names the share", got.Code, got.Body)
	}
	other := httptest.NewRequest("GET", "/get/1", nil)
	other.RemoteAddr = "198.51.100.1:1"
	go s.Handler().ServeHTTP(httptest.NewRecorder(), other)
	<-held
}
