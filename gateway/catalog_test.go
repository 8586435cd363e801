package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestTheCatalogueIsMadeOfTheManifest asks for the catalogue. It must contain the files of a good manifest. If the
// manifest is bad or missing, the answer must be an error.
func TestTheCatalogueIsMadeOfTheManifest(t *testing.T) {
	manifest, status := `{"data":{"date":"2026-11-22T15:00:00.000000+00:00","files":[{"name":"assets.csv","bytes":7,"rows":1}]}}`, 200
	s := start(t, func(c *Config) {
		c.BaseURL = "https://registry.example"
		c.Settings.Data.DataLicence = "https://licence.example/"
		c.Assets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			expect.Equal(t, r.URL.Path, "/data/manifest.json", "a request for")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(manifest))
		})
	})
	got := fetch(t, s, "GET", "/data/catalog.jsonld")
	if got.Code != 200 || got.Header().Get("Content-Type") != "application/ld+json" || !json.Valid(got.Body.Bytes()) ||
		!strings.Contains(got.Body.String(), `"https://registry.example/data/assets.csv"`) ||
		!strings.Contains(got.Body.String(), `"https://licence.example/"`) {
		t.Errorf("got %d %s, want a catalogue with the file and the licence", got.Code, got.Body)
	}
	for _, c := range []struct {
		manifest     string
		status, want int
	}{
		{`{"status":"error","errors":[{"location":"url","name":"copy","description":"There is no whole copy."}]}`, 404, 404},
		{`{`, 200, 500},
		{`{"data":"` + strings.Repeat("x", 64<<10) + `"}`, 200, 500},
	} {
		manifest, status = c.manifest, c.status
		if got := fetch(t, s, "GET", "/data/catalog.jsonld"); got.Code != c.want {
			t.Errorf("manifest %.40s, status %d: got %d, want %d", c.manifest, c.status, got.Code, c.want)
		}
	}
	if got := fetch(t, s, "GET", "/data"); got.Code != http.StatusFound || got.Header().Get("Location") != "/data/catalog.jsonld" {
		t.Errorf("got %d to %q, want 302 to the catalogue, as there is no site", got.Code, got.Header().Get("Location"))
	}
	if got := fetch(t, s, "GET", "/data/items.csv-metadata.json"); got.Code != 200 || !strings.Contains(got.Body.String(), `"asset.id"`) {
		t.Errorf("got %d %.200s, want the columns of items", got.Code, got.Body)
	}
}
