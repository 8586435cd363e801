package e2e

import (
	"strings"
	"testing"
)

// testCluster does what clients of the family do with the server's cookie.
func testCluster(t *testing.T, a api) {
	first := a.do(t, call{method: "HEAD", path: "/api/0/spore"}).must(t, 200)
	cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(cookie, "SERVER_ID=") {
		t.Fatalf("the first answer sets %q", first.header.Get("Set-Cookie"))
	}
	with := func(cookie string) map[string]string { return map[string]string{"Cookie": cookie} }
	if again := a.do(t, call{method: "GET", path: "/assets", header: with(cookie)}).
		must(t, 200); again.header.Get("Set-Cookie") != "" {
		t.Errorf("a client with the cookie is given %q", again.header.Get("Set-Cookie"))
	}
	create := call{method: "POST", path: "/assets", key: "broker", body: data(validAsset()),
		header: with("SERVER_ID=gone")}
	refused := a.do(t, create).fails(t, 412, "url/precondition")
	fresh, _, _ := strings.Cut(refused.header.Get("Set-Cookie"), ";")
	if fresh != cookie {
		t.Errorf("the fresh cookie is %q, the first was %q", fresh, cookie)
	}
	create.header = with(fresh)
	c := a.do(t, create).must(t, 201)
	path := "/assets/" + text(c.data()["id"])
	token := text(at(c.json["access"], "token"))
	change := call{method: "PATCH", path: path, key: "broker", token: token, body: data(fields{"title": "інша"}),
		header: with("SERVER_ID=gone")}
	a.do(t, change).fails(t, 412, "url/precondition")
	if now := a.do(t, call{method: "GET", path: path}).
		must(t, 200); now.data()["dateModified"] != c.data()["dateModified"] {
		t.Error("a change that was refused was made")
	}
	change.header = with(fresh)
	a.do(t, change).must(t, 200)
	a.startOver(t, cookie)

	if got := a.do(t, call{method: "GET", path: "/api/" + a.version + "/health"}).
		must(t, 200); got.json["status"] != "ok" {
		t.Errorf("health: %s", got.text)
	}
	spore := a.do(t, call{method: "GET", path: "/api/" + a.version + "/spore"}).must(t, 200)
	if spore.json["base_url"] != a.base+"/api/"+a.current() || spore.json["methods"] == nil {
		t.Errorf("spore: %s", spore.text)
	}
}

// startOver follows the feed with the cookie of other data, as a synchroniser
// does whose registry was restored from a backup.
func (a api) startOver(t *testing.T, cookie string) {
	t.Helper()
	gone := map[string]string{"Cookie": "SERVER_ID=gone"}
	a.publish(t, validAsset()) // an empty registry has no offset
	next := text(a.page(t, "?limit=1").next["path"])
	if got := a.do(t, call{method: "GET", path: next}).must(t, 200); !strings.HasPrefix(got.header.Get("Set-Cookie"),
		cookie) {
		t.Errorf("a page without a cookie sets %q, want %q", got.header.Get("Set-Cookie"), cookie)
	}
	if got := a.do(t, call{method: "GET", path: "/assets/" + strings.Repeat("0", 32), header: gone}).
		must(t, 404); got.header.Get("Set-Cookie") != "" {
		t.Errorf("an asset sets %q before the next page is refused, want no cookie", got.header.Get("Set-Cookie"))
	}
	refused := a.do(t, call{method: "GET", path: next, header: gone}).fails(t, 404, "querystring/offset")
	if got, _, _ := strings.Cut(refused.header.Get("Set-Cookie"), ";"); got != cookie {
		t.Errorf("a page after an offset of other data sets %q, want %q", got, cookie)
	}
	a.do(t, call{method: "GET", path: next, header: map[string]string{"Cookie": cookie}}).must(t, 200)
	if got := a.do(t, call{method: "GET", path: "/assets?limit=1", header: gone}).
		must(t, 200); !strings.HasPrefix(got.header.Get("Set-Cookie"), cookie) {
		t.Errorf("a listing from the start sets %q, want %q", got.header.Get("Set-Cookie"), cookie)
	}
}
