package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestOwnAssetsAreListed lists the assets of a broker with each kind of query, and compares the listed ids
// (docs/contract.md, "Own assets").
func TestOwnAssetsAreListed(t *testing.T) {
	s := newService(t)
	var ids []string
	create := func(body string) string {
		t.Helper()
		at := s.created(t, body)
		ids = append(ids, at[strings.LastIndex(at, "/")+1:])
		return at
	}
	create(validAsset)
	published := create(validAsset)
	create(strings.Replace(validAsset, `{"data":{`, `{"data":{"mode":"test",`, 1))
	s.do(t, exchange{"PATCH", published, identity.Broker, "token", `{"data":{"status":"pending"}}`, 200, ""})
	draft, real, test := ids[0], ids[1], ids[2]
	const path = "/api/2.5/me/assets"
	for _, c := range []struct {
		name, query string
		want        []string
	}{
		{"all", "", []string{draft, test, real}},
		{"the newest first", "?descending=1", []string{real, test, draft}},
		{"drafts", "?status=draft", []string{draft, test}},
		{"those that are published", "?status=pending", []string{real}},
		{"those in another state", "?status=deleted", []string{}},
		{"test assets", "?mode=test", []string{test}},
		{"another mode", "?mode=_all_", []string{draft, test, real}},
		{"the first", "?limit=1", []string{draft}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.do(t, exchange{"GET", path + c.query, identity.Broker, "", "", 200, ""})
			if header := got.Header(); header.Get("Cache-Control") != "no-store" || header.Get("ETag") != "" {
				t.Errorf("got the headers %v, want no-store and no tag", header)
			}
			var page struct {
				Data []struct{ ID string }
				Next struct{ Path string } `json:"next_page"`
			}
			expect.OK(t, json.Unmarshal(got.Body.Bytes(), &page))
			found := []string{}
			for _, a := range page.Data {
				found = append(found, a.ID)
			}
			expect.NoDiff(t, cmp.Diff(c.want, found), "the page differs")
			if !strings.HasPrefix(page.Next.Path, path+"?") ||
				strings.Contains(c.query, "status") != strings.Contains(page.Next.Path, "status=") {
				t.Errorf("got the next page %s, want one of the same list", page.Next.Path)
			}
		})
	}
	full := s.do(t, exchange{"GET", path + "?opt_fields=status,title&limit=1", identity.Broker, "", "", 200, `"draft"`})
	if strings.Contains(full.Body.String(), "description") {
		t.Errorf("got %s, want the named fields only", full.Body)
	}
	for _, c := range []exchange{
		{"GET", path, identity.Administrator, "", "", 200, `"data":[]`},
		{"GET", path, identity.Anonymous, "", "", 403, "permission"},
		{"GET", path + "?status=x", identity.Broker, "", "", 400, `"name":"status"`},
		{"GET", path + "?limit=0", identity.Broker, "", "", 400, `"name":"limit"`},
		{"GET", path + "?limit=0&status=x", identity.Broker, "", "", 400, `"name":"limit"`},
		{"GET", path + "?offset=x", identity.Broker, "", "", 404, `"name":"offset"`},
	} {
		s.do(t, c)
	}
	feed := s.do(t, exchange{"GET", "/api/2.5/assets?status=draft", identity.Broker, "", "", 200, real})
	if strings.Contains(feed.Body.String(), "status=") || strings.Contains(feed.Body.String(), draft) {
		t.Errorf("got the feed %s, want no draft and no status in its links", feed.Body)
	}
}
