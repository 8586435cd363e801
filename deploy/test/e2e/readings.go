package e2e

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/routes"
)

// ofRequest has headers that differ from request to request.
var ofRequest = []string{"Date", "Age", "X-Request-Id", "X-Trace-Id", "Ratelimit", "X-Ratelimit-Remaining",
	"X-Ratelimit-Reset", "X-Ratelimit-Limit"}

// readings returns an address of every route that can be read, beside those with files, and the addresses of some
// refusals.
func (a api) readings(t *testing.T) (all []string) {
	t.Helper()
	c := a.publish(t, validAsset())
	transfer := a.makeTransfer(t, "broker").id
	hook := strings.Trim(a.makeHook(t, "broker", fields{"url": unreachable}), "/")
	asset := a.read(t, c.id).must(t, 200).data()
	fill := func(pattern string) string {
		part := ""
		for _, p := range routes.Parts() {
			if strings.Contains(pattern, "/"+p.Name+"/") {
				field := strings.Replace(p.Name, "related_processes", "relatedProcesses", 1)
				part = text(at(asset, field+".0.id"))
			}
		}
		return strings.NewReplacer(":id", c.id, ":transfer", transfer, ":webhook", hook, ":part", part, ":file", "0",
			":side", "320", "*path", "assets/"+c.id, "*file", "0").Replace(pattern)
	}
	for _, r := range routes.All() {
		if r.Method == http.MethodGet {
			all = append(all, "/api/2.5"+fill(r.Pattern))
		}
	}
	for _, r := range slices.Concat(routes.Site(), routes.Files()) {
		if r.Method == http.MethodGet {
			all = append(all, fill(r.Pattern))
		}
	}
	return append(all, "/", "/docs", "/docs/uk", "/docs/files/x", "/log/checkpoint", "/log/key", "/data/manifest.json",
		"/data/catalog.jsonld", "/data/assets.csv", "/data/assets.schema.json", "/uk/", "/uk/feed.atom", "/en/statistics",
		"/assets/0", "/api/2.5/assets/0", "/api/2.5/search?x=1", "/api/2.5/search.csv?q=0", "/api/2.5/assets?opt_fields=*",
		"/api/2.5/nothing")
}

// testHeads compares the answer to HEAD with the answer to GET on every route that can be read.
// Promises: head
func testHeads(t *testing.T, a api) {
	for _, address := range a.readings(t) {
		for _, coding := range []string{"", "gzip", "zstd"} {
			get, head := a.asks(t, http.MethodGet, address, coding), a.asks(t, http.MethodHead, address, coding)
			for _, name := range slices.Sorted(maps.Keys(joined(get.header, head.header))) {
				got, want := head.header.Values(name), get.header.Values(name)
				isFree := strings.HasPrefix(name, "Content-") && isMadeForGet(address, get.status) ||
					name == "Content-Length" && get.header.Get("Content-Encoding") != ""
				if slices.Equal(got, want) || slices.Contains(ofRequest, name) || got == nil && isFree {
					continue
				}
				t.Errorf("HEAD %s for %q: got %s: %q, want %q", address, coding, name, got, want)
			}
			if head.status != get.status {
				t.Errorf("HEAD %s for %q: got %d, want %d", address, coding, head.status, get.status)
			}
		}
	}
}

// isMadeForGet reports whether an answer is made for GET only: a list with fields, or an export.
func isMadeForGet(address string, status int) bool {
	return status == http.StatusOK && (strings.Contains(address, "opt_fields") || strings.Contains(address, "/search."))
}

func joined(a, b http.Header) http.Header {
	all := a.Clone()
	maps.Copy(all, b)
	return all
}

// testFormsOfAnswers asks for each answer indented, and as a call of a function. Only the answers that the contract
// names may have these forms (docs/contract.md, "Requests and answers").
// Promises: json, pretty, jsonp
func testFormsOfAnswers(t *testing.T, a api) {
	withForms := []string{"/assets", "/me/assets", "/search", "/snapshot", "/transfers", "/webhooks"}
	for _, address := range a.readings(t) {
		path, isOfAPI := strings.CutPrefix(address, "/api/2.5")
		path, _, _ = strings.Cut(path, "?")
		hasForms := isOfAPI && slices.ContainsFunc(withForms, func(of string) bool {
			return path == of || strings.HasPrefix(path, of+"/")
		})
		with := "?"
		if strings.Contains(address, "?") {
			with = "&"
		}
		plain := a.asks(t, http.MethodGet, address, "")
		isJSON := plain.status == http.StatusOK && plain.header.Get("Content-Type") == "application/json"
		pretty := a.asks(t, http.MethodGet, address+with+"opt_pretty=1", "")
		script := a.asks(t, http.MethodGet, address+with+"opt_jsonp=f", "")
		if got, want := strings.HasPrefix(pretty.text, "{\n    \""), hasForms && isJSON; got != want {
			t.Errorf("%s with opt_pretty: got %d, indented %t, want %t", address, pretty.status, got, want)
		}
		if got, want := strings.HasPrefix(script.text, "f({"), hasForms && isJSON; got != want {
			t.Errorf("%s with opt_jsonp: got %d, a call %t, want %t", address, script.status, got, want)
		}
		broken := a.asks(t, http.MethodGet, address+with+"x=%zz", "")
		if hasForms && isJSON && broken.status != http.StatusBadRequest {
			t.Errorf("%s with a malformed query: got %d, want 400", address, broken.status)
		}
		cut, _, _ := strings.Cut(plain.header.Get("Content-Type"), ";")
		if isOfAPI && cut != "application/json" && !strings.Contains(path, "/search.") && path != "/openapi.yaml" {
			t.Errorf("%s: got %s, want JSON", address, cut)
		}
	}
}

// asks sends a request for a page or an answer, with the key of a broker.
func (a api) asks(t *testing.T, method, address, coding string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.base+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	call{key: "broker"}.setHeader(req)
	if coding != "" {
		req.Header.Set("Accept-Encoding", coding)
	}
	resp, err := client.Transport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, text: string(text)}
}
