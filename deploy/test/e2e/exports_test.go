package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// export returns the exported file of a search for a word, in the given form.
func (a api) export(t *testing.T, form, word, key string) answer {
	t.Helper()
	got := a.do(t, call{method: "GET", path: "/api/2.5/search." + form + "?" + url.Values{"q": {word}}.Encode(), key: key})
	if kind := got.header.Get("Content-Type"); got.status != http.StatusOK || strings.Contains(kind, "application/json") {
		t.Fatalf("%s: got %d %s, want a file", got.call.path, got.status, got.text)
	}
	return got
}
