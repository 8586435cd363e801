package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

func TestParseTags(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`"a"`, `"a" |`},
		{`"a", "b"`, `"a" "b" |`},
		{` ,"a",, W/"b" , "" ,`, `"a" "" | "b"`},
		{`"a,b","c"`, `"a,b" "c" |`},
		{`W/"a"`, `| "a"`},
		{`*`, `*`},
		{` * `, `*`},
		{``, `|`},
		{`"!#$%&'()*+-./:;<=>?@"`, `"!#$%&'()*+-./:;<=>?@" |`},
		{`a`, "refused"},
		{`"a`, "refused"},
		{`a"`, "refused"},
		{`"`, "refused"},
		{`"a" "b"`, "refused"},
		{`"a"b`, "refused"},
		{`"a b"`, "refused"},
		{"\"a\x7fb\"", "refused"},
		{`w/"a"`, "refused"},
		{`*, "a"`, "refused"},
		{`W/`, "refused"},
		{`W/a"b"`, "refused"},
	} {
		got := "refused"
		parsed, err := parseTags(http.Header{"If-Match": {c.text}}, "If-Match")
		switch {
		case err == nil && parsed.any:
			got = "*"
		case err == nil:
			got = strings.TrimSpace(strings.Join(append(append(slices.Clone(parsed.strong), "|"), parsed.weak...), " "))
		case fault.KindOf(err) != fault.Invalid:
			t.Errorf("%s: got %v, want kind Invalid", c.text, err)
		}
		expect.Equal(t, got, c.want, "%s", c.text)
	}
	if none, err := parseTags(http.Header{}, "If-Match"); none != nil || err != nil {
		t.Errorf("no header: got %v, %v; want nil", none, err)
	}
	if both, err := parseTags(http.Header{"If-Match": {`"a"`, `"b"`}}, "If-Match"); err != nil ||
		len(both.strong) != 2 {
		t.Errorf("two headers: got %v, %v; want two strong tags", both, err)
	}
}

var tagForm = regexp.MustCompile(`^"[0-9]+-2\.[45](-pretty)?(-f)?"$`)

func TestEachRepresentationHasItsOwnTag(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	seen := map[string]string{}
	for range 2 { // a repeated read gets the same tag
		for _, path := range []string{at, at + "?opt_pretty=1", at + "?opt_jsonp=f", at + "?opt_pretty=1&opt_jsonp=f",
			strings.Replace(at, "2.5", "2.4", 1)} {
			for _, method := range []string{"GET", "HEAD"} {
				got := s.do(t, exchange{method, path, "", "", "", 200, ""}).Header().Get("ETag")
				if !tagForm.MatchString(got) || seen[path] != "" && seen[path] != got {
					t.Errorf("%s %s: got tag %s, want a valid tag, and %q again", method, path, got, seen[path])
				}
				for other, tag := range seen {
					if other != path && tag == got {
						t.Errorf("%s and %s: got tag %s for both, want different tags", path, other, tag)
					}
				}
				seen[path] = got
			}
		}
	}
}

// TestReadsAreConditional has a case for each condition on a read, with the status that the read must have
// (docs/contract.md, "Conditional requests").
func TestReadsAreConditional(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	for _, path := range []string{at, at + "/documents", at + "/items?opt_pretty=1",
		strings.Replace(at, "2.5", "2.4", 1) + "/decisions"} {
		tag := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Header().Get("ETag")
		for _, c := range []struct {
			name, header, value string
			status              int
		}{
			{"If-None-Match with the tag", "If-None-Match", tag, 304},
			{"If-None-Match with the weak tag", "If-None-Match", "W/" + tag, 304},
			{"If-None-Match with any tag", "If-None-Match", "*", 304},
			{"If-None-Match with another tag", "If-None-Match", `"x"`, 200},
			{"an empty If-None-Match", "If-None-Match", "", 200},
			{"If-None-Match with a tag without quotes", "If-None-Match", strings.Trim(tag, `"`), 400},
			{"If-Match with the tag", "If-Match", tag, 200},
			{"If-Match with another tag", "If-Match", `"x"`, 412},
			{"If-Match with the weak tag", "If-Match", "W/" + tag, 412},
			{"If-Match with any tag", "If-Match", "*", 200},
			{"an empty If-Match", "If-Match", "", 412},
			{"If-Unmodified-Since is ignored", "If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT", 200},
		} {
			t.Run(path+" "+c.name, func(t *testing.T) {
				for _, method := range []string{"GET", "HEAD"} {
					got := s.doWith(t, http.Header{c.header: {c.value}},
						exchange{method, path, "", "", "", c.status, ""})
					if c.status == 304 && (got.Body.Len() != 0 || got.Header().Get("Content-Type") != "") ||
						c.status < 400 && got.Header().Get("ETag") != tag {
						t.Errorf("got %v %s, want tag %s, and no body with 304", got.Header(), got.Body, tag)
					}
				}
			})
		}
	}
	s.doWith(t, http.Header{"If-None-Match": {"*"}}, exchange{"GET", at + "x", "", "", "", 404, "asset_id"})
	s.doWith(t, http.Header{"If-None-Match": {"*"}}, exchange{"GET", at + "/items/x", "", "", "", 404, "item_id"})
}

// TestWritesAreConditional has a case for each condition on a write, with the status that the write must have
// (docs/contract.md, "Conditional requests").
// Promises: if-match
func TestWritesAreConditional(t *testing.T) {
	s := newService(t)
	const refused = `{"location":"url","name":"precondition","description":"Precondition Failed: the resource is not as If-Match or another condition says; read it, and repeat with its ETag."}`
	decision := `{"data":{"decisionDate":"2026-11-21","decisionID":"y"}}`
	for _, c := range []struct {
		name          string
		header, value string // %s is replaced by the tag
		status        int    // 0: the write succeeds
	}{
		{"If-Match with the tag", "If-Match", "%s", 0},
		{"If-Match with any tag", "If-Match", "*", 0},
		{"If-Match with another tag", "If-Match", `"1-2.5"`, 412},
		{"If-Match with the tag that a proxy made weak", "If-Match", "W/%s", 0},
		{"If-Match with such a tag in a list", "If-Match", `"x", W/"1-2.5" ,W/%s`, 0},
		{"If-Match with another weak tag", "If-Match", `W/"1-2.5"`, 412},
		{"an empty If-Match", "If-Match", "", 412},
		{"If-Match with a tag without quotes", "If-Match", "x", 400},
		{"If-None-Match with the tag", "If-None-Match", "%s", 412},
		{"If-None-Match with the weak tag", "If-None-Match", "W/%s", 412},
		{"If-None-Match with any tag", "If-None-Match", "*", 412},
		{"If-None-Match with another tag", "If-None-Match", `"1-2.5"`, 0},
		{"If-Match with a tag that has no version", "If-Match", `"1"`, 412},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := s.published(t)
			for _, e := range []exchange{
				{"PATCH", at, identity.Broker, "token", `{"data":{"title":"y"}}`, 200, `"y"`},
				{"PATCH", at, identity.Broker, "token", `{"data":{}}`, 200, ""},
				{"PUT", at + "?opt_pretty=1", identity.Broker, "token", validAsset, 200, ""},
				{"POST", at + "/decisions", identity.Broker, "token", decision, 201, `"y"`},
				{"POST", at + "/related_processes", identity.Concierge, "",
					`{"data":{"type":"lot","relatedProcessID":"dddddddddddddddddddddddddddddddd"}}`, 201, ""},
			} {
				for _, view := range []string{at, strings.Replace(at, "2.5", "2.4", 1), at + "?opt_pretty=1",
					at + "/items"} { // the tag of any of these views is accepted
					tag := s.do(t, exchange{"GET", view, "", "", "", 200, ""}).Header().Get("ETag")
					before := s.do(t, exchange{"GET", at, "", "", "", 200, ""}).Body.String()
					headers := http.Header{c.header: {strings.ReplaceAll(c.value, "%s", tag)}}
					if c.status != 0 {
						e.status, e.says = c.status, map[int]string{412: refused, 400: c.header}[c.status]
					}
					got := s.doWith(t, headers, e)
					after := s.do(t, exchange{"GET", at, "", "", "", 200, ""})
					if c.status != 0 && after.Body.String() != before {
						t.Errorf("after the refused %s %s: got %s, want %s", e.method, e.path, after.Body, before)
					}
					if c.status != 0 || e.path == at+"/related_processes" {
						break
					}
					position, _, _ := strings.Cut(after.Header().Get("ETag"), "-")
					if tag := got.Header().Get("ETag"); !tagForm.MatchString(tag) ||
						!strings.HasPrefix(tag, position+"-") {
						t.Errorf("%s %s: got tag %s, want it to start with %s as the asset's", e.method, e.path, tag,
							position)
					}
				}
			}
		})
	}
}

func TestARemovalIsConditional(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	created := s.do(t, exchange{"POST", at + "/related_processes", identity.Concierge, "",
		`{"data":{"type":"lot","relatedProcessID":"dddddddddddddddddddddddddddddddd"}}`, 201, ""})
	one := strings.TrimPrefix(created.Header().Get("Location"), "https://registry.example")
	s.doWith(t, http.Header{"If-Match": {`"1-2.5"`}},
		exchange{"DELETE", one, identity.Concierge, "", "", 412, "precondition"})
	s.doWith(t, http.Header{"If-Match": {"x"}}, exchange{"DELETE", one, identity.Concierge, "", "", 400, "If-Match"})
	s.doWith(t, http.Header{"If-Match": {`"1-2.5"`}},
		exchange{"DELETE", one + "x", identity.Concierge, "", "", 404, "relatedProcess_id"})
	s.doWith(t, http.Header{"If-Match": {`"1-2.5"`}},
		exchange{"DELETE", one, identity.Broker, "token", "", 403, "permission"})
	got := s.doWith(t, http.Header{"If-Match": {created.Header().Get("ETag")}},
		exchange{"DELETE", one, identity.Concierge, "", "", 200, "null"})
	expect.Equal(t, got.Header().Get("ETag"), "", "after the removal, tag")
}

// TestRevisions reads the revisions of an asset in both versions and in pages, and sends requests that are refused.
func TestRevisions(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	s.do(t, exchange{"PATCH", at, identity.Broker, "token",
		`{"data":{"title":"y","assetCustodian":{"additionalContactPoints":[{"name":"x","telephone":"1"}]}}}`, 200, ""})
	large := strings.Repeat("x", 40_000)
	s.do(t, exchange{"PATCH", at, identity.Broker, "token", `{"data":{"description":"` + large + `"}}`, 200, ""})
	type page struct {
		Data []struct {
			Revision    int
			Date        string
			Author      map[string]string
			Changes     []struct{ Op, Path string }
			ChangesSize int
		}
		NextPage struct{ Offset, Path, URI string } `json:"next_page"`
	}
	get := func(path string) (p page, shown string) {
		t.Helper()
		got := s.do(t, exchange{"GET", path, identity.Administrator, "", "", 200, ""})
		if err := json.Unmarshal(got.Body.Bytes(), &p); err != nil || got.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("got %v %s, %v; want a page with Cache-Control no-store", got.Header(), got.Body, err)
		}
		for _, r := range p.Data {
			var paths []string
			for _, c := range r.Changes {
				paths = append(paths, c.Op+" "+c.Path)
			}
			shown += fmt.Sprintf("%d %s %s; ", r.Revision, r.Author["role"], strings.Join(paths, ", "))
		}
		return p, shown
	}
	all := at + "/revisions"
	p, shown := get(all)
	_, old := get(strings.Replace(all, "2.5", "2.4", 1))
	if diff := cmp.Diff([]string{
		"4 owner ; 3 owner replace /title, add /assetCustodian/additionalContactPoints; " +
			"2 owner replace /status, add /rectificationPeriod, replace /date; 1 owner add ; ",
		"4 owner ; 3 owner replace /title; 2 owner replace /status, replace /date; 1 owner add ; ",
	}, []string{shown, old}); diff != "" {
		t.Fatalf("the revisions in versions 2.5 and 2.4 differ (-want +got):\n%s", diff)
	}
	if p.Data[0].ChangesSize < len(large) || p.Data[0].Changes != nil || p.Data[1].ChangesSize != 0 {
		t.Errorf("a large change: got size %d and changes %v, want at least %d and none",
			p.Data[0].ChangesSize, p.Data[0].Changes, len(large))
	}
	s.do(t, exchange{"GET", at, "", "", "", 200, `"dateModified":"` + p.Data[0].Date})
	first, _ := get(all + "?limit=3")
	last, _ := get(first.NextPage.Path)
	end, _ := get(last.NextPage.Path)
	if len(first.Data) != 3 || len(last.Data) != 1 || last.Data[0].Revision != 1 || len(end.Data) > 0 ||
		end.NextPage.Path != last.NextPage.Path {
		t.Errorf("got pages of %v, %v and %v, want 3 revisions, the last one and none", first, last, end)
	}
	if next := first.NextPage; next.URI != "https://registry.example"+next.Path || next.Offset != p.Data[2].Date {
		t.Errorf("got next_page %+v, want the full URI and the date of the last revision", next)
	}
	for _, e := range []exchange{
		{"GET", all, identity.Broker, "token", "", 200, `"revision":4`},
		{"GET", all + "?opt_pretty=1&limit=1", identity.Administrator, "", "", 200, "\n    \"data\": ["},
		{"GET", all + "?limit=0", identity.Administrator, "", "", 400, "limit"},
		{"GET", all + "?offset=x", identity.Administrator, "", "", 404, "offset"},
		{"GET", all + "?limit=x", identity.Concierge, "", "", 403, "permission"},
	} {
		s.do(t, e)
	}
}

// TestIdempotencyKeys has a case for each form of a key, with the status that the creation must have
// (docs/contract.md, "Idempotency").
func TestIdempotencyKeys(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		name   string
		keys   []string
		seed   string
		status int
		says   string
	}{
		{"a key", []string{"8e03978e-40d5-43e8-bc93-6894a57f9324"}, "aa", 201, "token"},
		{"a quoted key", []string{`"x"`}, "bb", 201, "token"},
		{"the longest key", []string{strings.Repeat("~", 255)}, "cc", 201, "token"},
		{"a key that is too long", []string{strings.Repeat("~", 256)}, "dd", 400, idempotencyHeader},
		{"an empty key", []string{""}, "", 400, idempotencyHeader},
		{"a key with a blank", []string{"a b"}, "ee", 400, idempotencyHeader},
		{"a key that is not ASCII", []string{"ключ"}, "ff", 400, idempotencyHeader},
		{"two keys", []string{"a", "b"}, "ab", 400, idempotencyHeader},
		{"a gateway that sends no seed", []string{"a"}, "", 500, "server"},
		{"a seed that is not hexadecimal", []string{"a"}, "aagg", 500, "server"},
		{"a seed for each secret", []string{"a"}, "ac" + strings.Repeat(",ad", keyring.Max-1), 201, "token"},
		{"more seeds than secrets", []string{"a"}, "ae" + strings.Repeat(",af", keyring.Max), 500, "server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := http.Header{idempotencyHeader: c.keys}
			if c.seed != "" {
				headers.Set(httpserver.SeedHeader, c.seed)
			}
			e := exchange{"POST", "/api/2.5/assets", identity.Broker, "", validAsset, c.status, c.says}
			first, second := s.doWith(t, headers, e), s.doWith(t, headers, e)
			if first.Body.String() != second.Body.String() ||
				first.Header().Get("Location") != second.Header().Get("Location") ||
				first.Header().Get("ETag") != second.Header().Get("ETag") {
				t.Errorf("repeat: got  %v %s\nwant %v %s", second.Header(), second.Body, first.Header(), first.Body)
			}
			if c.status == 201 {
				s.doWith(t, headers, exchange{"POST", "/api/2.5/assets", identity.Broker, "",
					strings.Replace(validAsset, `"title":"x"`, `"title":"y"`, 1), 400, idempotencyHeader})
				s.doWith(t, headers, exchange{"POST", "/api/2.4/assets", identity.Broker, "", validAsset, 400,
					idempotencyHeader})
			}
		})
	}
}
