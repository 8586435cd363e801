package docspage

import (
	"fmt"
	"html"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/gateway/internal/openapi"
	"asset-registry/shared/testing/expect"
)

// served returns a page that is made from the real OpenAPI documents.
func served(t *testing.T, o Options, path string, sandbox bool) string {
	t.Helper()
	o.Document = openapi.JSON
	s, err := New(o)
	expect.OK(t, err)
	w := httptest.NewRecorder()
	expect.OK(t, s.ServePage(w, httptest.NewRequest("GET", path, nil), sandbox))
	return w.Body.String()
}

// forbidden returns the parts of a page that its policy forbids, and the number of links in the page.
func forbidden(page string) (found []string, links int) {
	for _, form := range []string{`<script(?:\s+defer)?>`, `<style`, `\sstyle=`, `\son[a-z]+=`, `javascript:`} {
		found = append(found, regexp.MustCompile(form).FindAllString(page, -1)...)
	}
	for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		links++
		if !strings.HasPrefix(link[1], "#") && !strings.HasPrefix(link[1], ".") {
			found = append(found, link[1])
		}
	}
	return found, links
}

func TestAPageHoldsNothingThatItsPolicyForbids(t *testing.T) {
	for _, path := range []string{"/docs", "/docs/2.4", "/docs/uk", "/docs/uk/2.4"} {
		page := served(t, Options{}, path, true)
		found, links := forbidden(page)
		expect.ErrorIf(t, len(found) > 0, "%s: got %q, want none", path, found)
		if scripts := strings.Count(page, "<script"); links < 50 || scripts == 0 {
			t.Errorf("%s: got %d links and %d scripts, want at least 50 and 1", path, links, scripts)
		}
	}
}

// TestForbiddenPartsAreFound puts forbidden parts into a page. The function `forbidden` must find all of them.
func TestForbiddenPartsAreFound(t *testing.T) {
	for _, c := range []struct {
		page  string
		want  []string
		links int
	}{
		{`<script src="./a.js"></script><a href="#x">on = style</a>`, nil, 2},
		{`<script>x()</script>`, []string{"<script>"}, 0},
		{`<script defer>x()</script>`, []string{"<script defer>"}, 0},
		{`<style>p {}</style><p style="x">`, []string{"<style", " style="}, 0},
		{`<p onclick="x()">`, []string{" onclick="}, 0},
		{`<a href="javascript:x">`, []string{"javascript:", "javascript:x"}, 1},
		{`<a href="https://a.example"><img src="//b.example"><a href="/c">`,
			[]string{"https://a.example", "//b.example", "/c"}, 3},
	} {
		if found, links := forbidden(c.page); !slices.Equal(found, c.want) || links != c.links {
			t.Errorf("%s: got %q among %d links, want %q among %d", c.page, found, links, c.want, c.links)
		}
	}
}

// strayed returns the ids that a page has twice, the links within the page that lead to no id, and the number of all
// links within the page.
func strayed(page string) (twice, lost []string, links int) {
	var ids []string
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if slices.Contains(ids, id[1]) {
			twice = append(twice, id[1])
		}
		ids = append(ids, id[1])
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		links++
		if !slices.Contains(ids, link[1]) {
			lost = append(lost, link[1])
		}
	}
	return twice, lost, links
}

func TestLinksWithinAPageLeadSomewhere(t *testing.T) {
	for _, path := range []string{"/docs", "/docs/2.4", "/docs/uk", "/docs/uk/2.4"} {
		twice, lost, links := strayed(served(t, Options{}, path, false))
		if len(twice) > 0 || len(lost) > 0 || links < 50 {
			t.Errorf("%s: got the ids %q twice, and links to %q among %d; want each id once, and at least 50 links to ids",
				path, twice, lost, links)
		}
	}
}

// TestStrayedLinksAreFound checks a page with a link to no id, and with an id that is there twice.
func TestStrayedLinksAreFound(t *testing.T) {
	twice, lost, links := strayed(`<h2 id="a"><p id="a"><a href="#a">x</a><a href="#b">x</a><a href="./c#d">x</a>`)
	if !slices.Equal(twice, []string{"a"}) || !slices.Equal(lost, []string{"b"}) || links != 2 {
		t.Errorf("got the ids %q twice, and links to %q among %d; want a, b and 2", twice, lost, links)
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
		name      string
		options   Options
		path      string
		sandbox   bool
		want, not []string
	}{
		{"all guides", Options{}, "/docs", false, []string{`id="first-asset"`, `id="documents"`, `id="tokens"`, `id="recovery"`, `id="states"`, `id="feed"`,
			`id="errors"`, `id="limits"`, `id="versions"`, `id="reference"`}, nil},
		{"all routes with their fields", Options{}, "/docs", false, []string{`id="post-/assets"`, `id="get-/me"`,
			`id="patch-/assets/-id-/items/-part-"`, `id="type-AssetInput"`, `<code>quantity</code>`}, nil},
		{"a sandbox", Options{}, "/docs", true, []string{`data-try="true"`, "Sandbox keys are on"}, nil},
		{"no sandbox", Options{}, "/docs", false, []string{`data-try="false"`}, []string{"Sandbox keys are on"}},
		{"the default address without any other", Options{}, "/docs", false,
			[]string{`API=<span class="origin">http://127.0.0.1:8080</span>/api/2.5`}, nil},
		{"the address of the listener without a base URL", Options{OwnURL: "https://192.0.2.1:8443"}, "/docs", false,
			[]string{`API=<span class="origin">https://192.0.2.1:8443</span>/api/2.5`}, []string{"127.0.0.1:8080"}},
		{"the base URL", Options{BaseURL: "https://assets.example/r", OwnURL: "http://192.0.2.1"}, "/docs", false,
			[]string{`API=https://assets.example/r/api/2.5`}, []string{"127.0.0.1:8080", "192.0.2.1"}},
		{"the limits", Options{Limits: limits}, "/docs", false,
			[]string{"7 a second, 90 a minute"}, []string{"no rate limits"}},
		{"no limits", Options{}, "/docs", false, []string{"This registry has no rate limits."}, nil},
		{"the dates of a deprecated version", Options{Lifecycle: old}, "/docs", false,
			[]string{"deprecated since 2027-01-31, ends on 2027-12-31"}, nil},
		{"an older version", Options{}, "/docs/2.4", false, []string{`href="../api/2.4/openapi.json"`, `/api/2.4`,
			"Version 2.4 leaves it out."}, []string{"OTHER=broker3"}},
		{"Ukrainian", Options{}, "/docs/uk/2.4", false, []string{`<html lang="uk">`, `href="../../docs/2.4" hreflang="en" lang="en">English<`,
			`rel="alternate" hreflang="uk" href="../../docs/uk/2.4"`, `href="../../api/2.4/openapi.json"`, "Перший актив за п’ять хвилин",
			`<strong lang="en">Create an asset</strong>`}, nil},
		{"the way to Ukrainian", Options{}, "/docs", false, []string{`href="./docs/uk" hreflang="uk" lang="uk">Українською<`}, []string{`lang="en"> `}},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := served(t, c.options, c.path, c.sandbox)
			for _, want := range c.want {
				expect.ErrorIf(t, !strings.Contains(page, want), "got a page without %q, want it in the page", want)
			}
			for _, not := range c.not {
				expect.ErrorIf(t, strings.Contains(page, not), "got a page with %q, want it left out", not)
			}
		})
	}
}

// Promises: docs-commands, docs-sent
func TestEachOperationHasACommandAndEachGETIsSent(t *testing.T) {
	operation := regexp.MustCompile(`(?s)<div id="([a-z]+)-(/[^"]*)">(.*?)</details>`)
	for _, path := range []string{"/docs", "/docs/2.4"} {
		all := operation.FindAllStringSubmatch(served(t, Options{}, path, true), -1)
		expect.ErrorIf(t, len(all) < 40, "%s: got %d operations, want at least 40", path, len(all))
		for _, o := range all {
			expect.Equal(t, strings.Count(o[3], `<pre class="curl"`), 1, "%s: %s %s: commands", path, o[1], o[2])
			if sent := strings.Contains(o[3], ` data-send="GET /`); sent != (o[1] == "get") {
				t.Errorf("%s: %s %s: got a way to send it: %t, want one for GET only", path, o[1], o[2], sent)
			}
		}
	}
}

func TestCommandsOfOperations(t *testing.T) {
	for _, c := range []struct {
		name, path, id string
		sandbox        bool
		want           string
	}{
		{"a public one", "/docs", "get-/assets", false,
			"curl -s \\\n  \"http://127.0.0.1:8080/api/2.5/assets\""},
		{"a public one in a sandbox", "/docs", "get-/assets", true,
			"curl -s -u broker: \\\n  \"http://127.0.0.1:8080/api/2.5/assets\""},
		{"one with a key and an owner token", "/docs/2.4", "get-/assets/-id-/revisions", false,
			"curl -s -u $KEY: -H \"X-Access-Token: $TOKEN\" \\\n  \"http://127.0.0.1:8080/api/2.4/assets/$ID/revisions\""},
		{"one with a body", "/docs", "post-/transfers", true,
			"curl -s -X POST -u broker: -H 'Content-Type: application/json' \\\n" +
				"  \"http://127.0.0.1:8080/api/2.5/transfers\" --data @- <<'JSON'\n{\n  \"data\": {}\n}\nJSON"},
		{"one with a file, beside the versions", "/docs", "post-/upload", false,
			"curl -s -X POST -u $KEY: \\\n  \"http://127.0.0.1:8080/upload\" -F file=@document.pdf"},
		{"one with a body, beside the versions", "/docs/2.4", "post-/register", false,
			"curl -s -X POST -u $KEY: -H 'Content-Type: application/json' \\\n  \"http://127.0.0.1:8080/register\" --data @- <<'JSON'\n" +
				"{\n  \"data\": {\n    \"hash\": \"md5:d41d8cd98f00b204e9800998ecf8427e\"\n  }\n}\nJSON"},
		{"two variables", "/docs", "delete-/assets/-id-/revisions/-number-", false,
			"curl -s -X DELETE -u $KEY: \\\n  \"http://127.0.0.1:8080/api/2.5/assets/$ID/revisions/$NUMBER\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, rest, _ := strings.Cut(served(t, Options{}, c.path, c.sandbox), `<div id="`+c.id+`">`)
			_, rest, _ = strings.Cut(rest, `<pre class="curl"`)
			text := regexp.MustCompile(`(?s)<code>(.*?)</code>`).FindStringSubmatch(rest)
			expect.FatalIf(t, text == nil, "got no command, want one")
			got := html.UnescapeString(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(text[1], ""))
			expect.NoDiff(t, cmp.Diff(c.want, got), "the command")
		})
	}
}

// Promises: docs-languages
func TestEachGuideWithCommandsHasItsExamplesInEachLanguage(t *testing.T) {
	guide := regexp.MustCompile(`(?s)<section class="guide" aria-labelledby="([^"]+)">(.*?)</section>`)
	for _, path := range []string{"/docs", "/docs/2.4", "/docs/uk", "/docs/uk/2.4"} {
		found := 0
		for _, g := range guide.FindAllStringSubmatch(served(t, Options{}, path, false), -1) {
			commands := strings.Count(g[2], `<pre class="sh"`) + strings.Count(g[2], `<pre class="refused"`)
			for _, language := range []string{"python", "ts", "go"} {
				examples := strings.Count(g[2], `<pre class="`+language+`">`)
				// Our clients use the current version, so the pages of 2.4 have no examples of them.
				if has := examples > 0; has != (commands > 0 && !strings.HasSuffix(path, "2.4")) {
					t.Errorf("%s: %s has %d commands and %d examples in %s", path, g[1], commands, examples, language)
				}
				found += examples
			}
		}
		if !strings.HasSuffix(path, "2.4") && found < 27 {
			t.Errorf("%s: got %d examples, want at least 27", path, found)
		}
	}
}

// TestAnswersHaveTheTypeOfTheirJSON reads an answer that may also be JavaScript. The type on the page must be
// the type of the JSON.
func TestAnswersHaveTheTypeOfTheirJSON(t *testing.T) {
	_, rest, _ := strings.Cut(served(t, Options{}, "/docs", false), `<div id="get-/assets/-id-">`)
	row := regexp.MustCompile(`<code>200</code></th><td>.*?</td><td>(.*?)</td>`).FindStringSubmatch(
		strings.ReplaceAll(rest, "\n", " "))
	const want = `<a href="#type-AssetAnswer">AssetAnswer</a>`
	expect.ErrorIf(t, row == nil || row[1] != want, "got the type %q, want %s", row, want)
}

// disordered returns the headings of a page that do not fit the heading before, and the number of all headings.
func disordered(page string) (found []string, all int) {
	level := 0
	for _, h := range regexp.MustCompile(`<h([1-6])[ >]`).FindAllStringSubmatch(page, -1) {
		all++
		next := int(h[1][0] - '0')
		if next == 1 && level > 2 || next > level+1 && level > 0 {
			found = append(found, fmt.Sprintf("h%d after h%d", next, level))
		}
		level = next
	}
	return found, all
}

func TestHeadingsAreInOrder(t *testing.T) {
	for _, path := range []string{"/docs", "/docs/2.4", "/docs/uk", "/docs/uk/2.4"} {
		found, all := disordered(served(t, Options{}, path, false))
		if len(found) > 0 || all < 20 {
			t.Errorf("%s: got %q among %d headings, want no level skipped among at least 20", path, found, all)
		}
	}
}

// TestDisorderedHeadingsAreFound checks a page with headings that skip a level. Each of these headings must be
// found.
func TestDisorderedHeadingsAreFound(t *testing.T) {
	found, all := disordered(`<h1 id="a">x</h1><h2>x</h2><h4 id="b">x</h4><h1>x</h1><h2>x</h2><header>`)
	if want := []string{"h4 after h2", "h1 after h4"}; !slices.Equal(found, want) || all != 5 {
		t.Errorf("got %q among %d headings, want %q among 5", found, all, want)
	}
}

func TestFaultyDocumentsAreErrors(t *testing.T) {
	for name, text := range map[string]string{"malformed JSON": "{", "no operation": `{"openapi": "3.1.1"}`} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Options{Document: func(string) []byte { return []byte(text) }})
			expect.OK(t, err)
			expect.Fails(t, s.ServePage(httptest.NewRecorder(), httptest.NewRequest("GET", "/docs", nil), false), "")
		})
	}
}
