package e2e

import (
	"strings"
	"testing"
)

// testCluster sends the cookie SERVER_ID back, as the synchroniser of a platform does. A write with the cookie of a
// different data set must be refused (docs/contract.md, "Server cookie").
func testCluster(t *testing.T, a api) {
	first := a.do(t, call{method: "HEAD", path: "/api/0/spore"}).must(t, 200)
	cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(cookie, "SERVER_ID=") {
		t.Fatalf("got Set-Cookie %q on the first answer, want SERVER_ID", first.header.Get("Set-Cookie"))
	}
	with := func(cookie string) map[string]string { return map[string]string{"Cookie": cookie} }
	again := a.do(t, call{method: "GET", path: "/assets", header: with(cookie)}).must(t, 200)
	if got := again.header.Get("Set-Cookie"); got != "" {
		t.Errorf("got Set-Cookie %q for a client with the cookie, want none", got)
	}
	create := call{method: "POST", path: "/assets", key: "broker", body: data(validAsset()),
		header: with("SERVER_ID=gone")}
	refused := a.do(t, create).fails(t, 412, "url/precondition")
	fresh, _, _ := strings.Cut(refused.header.Get("Set-Cookie"), ";")
	if fresh != cookie {
		t.Errorf("got the cookie %q on the refusal, want the first one, %q", fresh, cookie)
	}
	create.header = with(fresh)
	c := a.do(t, create).must(t, 201)
	path := "/assets/" + text(c.data()["id"])
	token := text(at(c.json["access"], "token"))
	change := call{method: "PATCH", path: path, key: "broker", token: token, body: data(fields{"title": "інша"}),
		header: with("SERVER_ID=gone")}
	a.do(t, change).fails(t, 412, "url/precondition")
	now := a.do(t, call{method: "GET", path: path}).must(t, 200)
	equal(t, "dateModified after a refused change", now.data()["dateModified"], c.data()["dateModified"])
	change.header = with(fresh)
	a.do(t, change).must(t, 200)
	a.startOver(t, cookie)

	health := a.do(t, call{method: "GET", path: "/api/" + a.version + "/health"}).must(t, 200)
	equal(t, "status of /health", health.json["status"], any("ok"))
	spore := a.do(t, call{method: "GET", path: "/api/" + a.version + "/spore"}).must(t, 200)
	if spore.json["base_url"] != a.base+"/api/"+a.current() || spore.json["methods"] == nil {
		t.Errorf("got /spore %s, want base_url and methods", spore.text)
	}
}

// startOver reads the feed with the cookie of another data set. A synchroniser sends such a cookie after the
// registry was restored from a backup. The registry must refuse a later page, and set a new cookie in this answer.
// It must send the first page.
func (a api) startOver(t *testing.T, cookie string) {
	t.Helper()
	gone := map[string]string{"Cookie": "SERVER_ID=gone"}
	setsCookie := func(got answer) string { return got.header.Get("Set-Cookie") }
	a.publish(t, validAsset()) // without an asset, a page of the feed would have no offset
	next := text(a.page(t, "?limit=1").next["path"])
	if got := setsCookie(a.do(t, call{method: "GET", path: next}).must(t, 200)); !strings.HasPrefix(got, cookie) {
		t.Errorf("got Set-Cookie %q for a page without a cookie, want %q", got, cookie)
	}
	asset := call{method: "GET", path: "/assets/" + strings.Repeat("0", 32), header: gone}
	if got := setsCookie(a.do(t, asset).must(t, 404)); got != "" {
		t.Errorf("got Set-Cookie %q for an asset before the next page is refused, want none", got)
	}
	refused := a.do(t, call{method: "GET", path: next, header: gone}).fails(t, 404, "querystring/offset")
	if got, _, _ := strings.Cut(setsCookie(refused), ";"); got != cookie {
		t.Errorf("got Set-Cookie %q for an offset of other data, want %q", got, cookie)
	}
	a.do(t, call{method: "GET", path: next, header: map[string]string{"Cookie": cookie}}).must(t, 200)
	start := a.do(t, call{method: "GET", path: "/assets?limit=1", header: gone}).must(t, 200)
	if got := setsCookie(start); !strings.HasPrefix(got, cookie) {
		t.Errorf("got Set-Cookie %q for a listing from the start, want %q", got, cookie)
	}
}
