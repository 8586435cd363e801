package httpapi

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestAMirrorServesWhatItMay asks a mirror for a file that it is not allowed to serve, and for a file that it may
// serve. A mirror must have no route that writes, or that needs a key.
func TestAMirrorServesWhatItMay(t *testing.T) {
	refused := fault.New(fault.Unavailable, fault.URL, "mirror", "not yet")
	var f file.File
	r := newRig(t, expect.Get(dirstore.Open(t.TempDir()))(t), func(c *Config) {
		c.MayServe = func(context.Context, file.File) error {
			if refused != nil {
				return refused
			}
			return nil
		}
		c.Documents = func(context.Context, string, string) ([]byte, error) {
			const document = `[{"id":"1","title":"t","url":"https://elsewhere.example/get/%s","sha256":%q}]`
			return fmt.Appendf(nil, document, f.ID, f.SHA256), nil
		}
	})
	broker := identity.Identity{Broker: "b1", KeyID: "k1", Role: identity.Broker}
	f = expect.Get(r.files.Add(t.Context(), broker, file.Upload{Body: strings.NewReader("content"), Title: "a.txt"}))(t)
	expect.OK(t, r.files.Name(t.Context(), f.ID, false))
	answers := func(what string, by identity.Identity, method, path, says string, codes ...int) {
		t.Helper()
		q, w := httptest.NewRequestWithContext(t.Context(), method, path, nil), httptest.NewRecorder()
		r.sign(t, q, by)
		r.handler.ServeHTTP(w, q)
		if !slices.Contains(codes, w.Code) || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: got %d %q, want one of %v and %q", what, w.Code, w.Body, codes, says)
		}
	}
	nobody, at := identity.Identity{}, "/get/"+f.ID
	archive := strings.Replace(routes.Archive, ":file", f.ID, 1)
	answers("a file that may not be served", nobody, "GET", at, "not yet", 503)
	answers("an archive with a file that may not be served", nobody, "GET", archive, "not yet", 503)
	refused = nil
	answers("a file that may be served", nobody, "GET", at, "content", 200)
	answers("an archive", nobody, "GET", archive, "content", 200)
	r.files.Hold()
	answers("before the removals are known", nobody, "GET", at, "does not know yet", 503)
	answers("removals", nobody, "GET", "/get/removed", "", 200)
	for _, route := range []string{"POST /register", "POST /upload", "POST /upload/" + f.ID, "GET /get", "DELETE " + at,
		"POST /claims/" + f.ID, "POST /forms"} {
		method, path, _ := strings.Cut(route, " ")
		answers(route, identity.Identity{Broker: "o", KeyID: "k9", Role: identity.Administrator}, method, path, "", 404, 405)
	}
}

// TestANameIsNoHeader has names with characters that end a header or the quoted text in it.
func TestANameIsNoHeader(t *testing.T) {
	const want = `inline; filename="a__b~_____.txt"; filename*=UTF-8''a%0D%0Ab~%22%5C%25%7F%D0%BA.txt`
	expect.Equal(t, disposition("inline", "a\r\nb~\"\\%\x7fк.txt"), want, "")
}
