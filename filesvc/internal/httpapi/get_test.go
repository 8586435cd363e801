package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestAMirrorServesWhatItMay asks a mirror for a file that it is not allowed to serve, and for a file that it may
// serve. A mirror must have no route that writes, or that needs a key.
func TestAMirrorServesWhatItMay(t *testing.T) {
	dir := t.TempDir()
	metadata, err := boltstore.Open(filepath.Join(dir, "files.db"), nil, nil)
	expect.OK(t, err)
	defer metadata.Close()
	store, err := dirstore.Open(dir)
	expect.OK(t, err)
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte{7}, keyring.MinLength)}, time.Now)
	expect.OK(t, err)
	files := file.NewService(metadata, metadata, store, file.Limits{FileBytes: 100, BrokerBytes: 100, Waiting: 1}, time.Now)
	broker := identity.Identity{Broker: "b1", KeyID: "k1", Role: identity.Broker}
	f, err := files.Add(t.Context(), broker, file.Upload{Body: strings.NewReader("content"), Title: "a.txt"})
	expect.OK(t, err)
	expect.OK(t, files.Name(t.Context(), f.ID, false))
	log := slog.New(slog.DiscardHandler)
	refused := fault.New(fault.Unavailable, fault.URL, "mirror", "not yet")
	engine := httpserver.NewEngine(httpserver.Options{Name: "mirror", Log: log, Timeout: time.Minute})
	New(Config{Files: files, Now: time.Now, Log: log, MayServe: func(context.Context, file.File) error {
		if refused != nil {
			return refused
		}
		return nil
	}, Documents: func(context.Context, string, string) ([]byte, error) {
		return fmt.Appendf(nil, `[{"id":"1","title":"t","url":"https://elsewhere.example/get/%s","sha256":%q}]`, f.ID, f.SHA256), nil
	}}).Route(engine, signer)
	status := func(by identity.Identity, method, path string) (int, string) {
		q := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		signed, err := signer.Sign(by)
		expect.OK(t, err)
		q.Header.Set(identity.Header, signed)
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, q)
		return w.Code, w.Body.String()
	}
	if code, text := status(identity.Identity{}, http.MethodGet, "/get/"+f.ID); code != 503 || !strings.Contains(text, "not yet") {
		t.Errorf("a file that may not be served: got %d %q, want 503", code, text)
	}
	path := strings.Replace(routes.Archive, ":file", f.ID, 1)
	if code, text := status(identity.Identity{}, http.MethodGet, path); code != 503 || !strings.Contains(text, "not yet") {
		t.Errorf("an archive with a file that may not be served: got %d %q, want 503", code, text)
	}
	refused = nil
	if code, text := status(identity.Identity{}, http.MethodGet, "/get/"+f.ID); code != 200 || text != "content" {
		t.Errorf("a file that may be served: got %d %q, want its bytes", code, text)
	}
	if code, text := status(identity.Identity{}, http.MethodGet, path); code != 200 || !strings.Contains(text, "content") {
		t.Errorf("an archive: got %d %q, want the file in it", code, text)
	}
	files.Hold()
	code, text := status(identity.Identity{}, http.MethodGet, "/get/"+f.ID)
	if code != 503 || !strings.Contains(text, "does not know yet") {
		t.Errorf("before the removals are known: got %d %q, want 503", code, text)
	}
	if code, text := status(identity.Identity{}, http.MethodGet, "/get/removed"); code != 200 {
		t.Errorf("removals: got %d %q, want 200", code, text)
	}
	for _, route := range []string{"POST /register", "POST /upload", "POST /upload/" + f.ID, "GET /get", "DELETE /get/" + f.ID,
		"POST /claims/" + f.ID, "POST /forms"} {
		method, path, _ := strings.Cut(route, " ")
		admin := identity.Identity{Broker: "o", KeyID: "k9", Role: identity.Administrator}
		if code, text := status(admin, method, path); code != 404 && code != 405 {
			t.Errorf("%s: got %d %q, want no such route", route, code, text)
		}
	}
}

// TestANameIsNoHeader has names with characters that end a header or the quoted text in it.
func TestANameIsNoHeader(t *testing.T) {
	const want = `inline; filename="a__b~_____.txt"; filename*=UTF-8''a%0D%0Ab~%22%5C%25%7F%D0%BA.txt`
	expect.Equal(t, disposition("inline", "a\r\nb~\"\\%\x7fк.txt"), want, "")
}
