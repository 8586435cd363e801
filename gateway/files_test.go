package gateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// TestFilesWithoutTheirService has a gateway that an upgrade has started before the first file service, so
// nobody listens at the address of the file service yet. Each route of files, and a form of a document, must
// answer with a 503 that says when to come again. So no client believes that a file does not exist
// (docs/versions.md).
// Promises: files-later
func TestFilesWithoutTheirService(t *testing.T) {
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + unused.Addr().String()
	if err := unused.Close(); err != nil {
		t.Fatal(err)
	}
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
	if asked != len(routes.Files())+1 || asked < 10 {
		t.Errorf("got %d requests, want one for each route", asked)
	}
}
