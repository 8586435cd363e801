package docspage

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/gateway/internal/openapi"
)

// TestRapiDocIsAsPublished compares the file's checksum with that of the file in
// the npm package rapidoc 9.3.8.
func TestRapiDocIsAsPublished(t *testing.T) {
	const want = "affbd173a65e870e18f392cca963113bcdafb6e50e88cd2f6a834a65b22db94d"
	text, err := embedded.ReadFile("rapidoc/rapidoc-min.js")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got SHA-256 %s, want %s", got, want)
	}
	note, err := os.ReadFile("rapidoc/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(note), want) {
		t.Errorf("got no %s in rapidoc/README.md, want it there", want)
	}
}

// served returns a page that is made from the real OpenAPI documents.
func served(t *testing.T, o Options, path string, sandbox bool) string {
	t.Helper()
	o.Document = openapi.JSON
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := s.ServePage(w, httptest.NewRequest("GET", path, nil), sandbox); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}

func TestAPageHoldsNothingThatItsPolicyForbids(t *testing.T) {
	for _, path := range []string{"/docs", "/docs/2.4"} {
		page := served(t, Options{}, path, true)
		for _, forbidden := range []string{`<script(?:\s+defer)?>`, `<style`, `\sstyle=`, `\son[a-z]+=`, `javascript:`} {
			if got := regexp.MustCompile(forbidden).FindString(page); got != "" {
				t.Errorf("%s: got %q, want none", path, got)
			}
		}
		for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(link[1], "#") && !strings.HasPrefix(link[1], ".") {
				t.Errorf("%s: got a link to %s, want relative ones only", path, link[1])
			}
		}
	}
}

func TestLinksWithinAPageLeadSomewhere(t *testing.T) {
	for _, path := range []string{"/docs", "/docs/2.4"} {
		page := served(t, Options{}, path, false)
		var ids []string
		for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if slices.Contains(ids, id[1]) {
				t.Errorf("%s: got the id %s twice, want it once", path, id[1])
			}
			ids = append(ids, id[1])
		}
		links := regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1)
		for _, link := range links {
			if !slices.Contains(ids, link[1]) {
				t.Errorf("%s: got a link to #%s, want one to an id", path, link[1])
			}
		}
		if len(links) < 50 {
			t.Errorf("%s: got %d links, want at least 50", path, len(links))
		}
	}
}

func TestAPageShows(t *testing.T) {
	limits := []Limit{{Name: "address-read", Counts: "1 a read", Windows: []string{"7 a second", "90 a minute"}}}
	old := func(version string) (string, string) {
		if version == "2.4" {
			return "2027-01-31", "2027-12-31"
		}
		return "", ""
	}
	for _, c := range []struct {
		name    string
		options Options
		path    string
		sandbox bool
		want    []string
		not     []string
	}{
		{"all guides", Options{}, "/docs", false, []string{`id="first-asset"`, `id="tokens"`, `id="states"`, `id="feed"`,
			`id="errors"`, `id="limits"`, `id="versions"`, `id="reference"`}, nil},
		{"all routes with their fields", Options{}, "/docs", false, []string{`id="post-/assets"`, `id="get-/me"`,
			`id="patch-/assets/-id-/items/-part-"`, `id="type-AssetInput"`, `<code>quantity</code>`}, nil},
		{"a sandbox", Options{}, "/docs", true, []string{`data-try="true"`, "Sandbox keys are on"}, nil},
		{"no sandbox", Options{}, "/docs", false, []string{`data-try="false"`}, []string{"Sandbox keys are on"}},
		{"the default address without a base URL", Options{}, "/docs", false,
			[]string{`API=<span class="origin">http://127.0.0.1:8080</span>/api/2.5`}, nil},
		{"the base URL", Options{BaseURL: "https://assets.example/r"}, "/docs", false,
			[]string{`API=https://assets.example/r/api/2.5`}, []string{"127.0.0.1"}},
		{"the limits", Options{Limits: limits}, "/docs", false,
			[]string{"7 a second, 90 a minute"}, []string{"no rate limits"}},
		{"no limits", Options{}, "/docs", false, []string{"This registry has no rate limits."}, nil},
		{"the dates of a deprecated version", Options{Lifecycle: old}, "/docs", false,
			[]string{"deprecated since 2027-01-31, ends on 2027-12-31"}, nil},
		{"an older version", Options{}, "/docs/2.4", false, []string{`href="../api/2.4/openapi.json"`, `/api/2.4`,
			"Version 2.4 leaves it out."}, []string{"OTHER=broker3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := served(t, c.options, c.path, c.sandbox)
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("got a page without %q, want it in the page", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(page, not) {
					t.Errorf("got a page with %q, want it left out", not)
				}
			}
		})
	}
}

func TestHeadingsAreInOrder(t *testing.T) {
	level := 0
	for _, h := range regexp.MustCompile(`<h([1-6])[ >]`).FindAllStringSubmatch(served(t, Options{}, "/docs", false), -1) {
		next := int(h[1][0] - '0')
		if next == 1 && level > 2 || next > level+1 && level > 0 {
			t.Errorf("got h%d after h%d, want no level skipped", next, level)
		}
		level = next
	}
}

func TestFaultyDocumentsAreErrors(t *testing.T) {
	for name, text := range map[string]string{"malformed JSON": "{", "no operation": `{"openapi": "3.1.1"}`} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Options{Document: func(string) []byte { return []byte(text) }})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.ServePage(httptest.NewRecorder(), httptest.NewRequest("GET", "/docs", nil), false); err == nil {
				t.Error("got no error, want one")
			}
		})
	}
}
