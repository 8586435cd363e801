package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// testErasure erases a revision. Its content must disappear from the record, and everything else must stay
// (docs/contract.md, "Revisions").
// Promises: erased-alone
func testErasure(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	a.patch(t, c, fields{"description": "таємниця"}).must(t, 200)
	c.answer = a.patch(t, c, fields{"description": "відкрито"}).must(t, 200)
	erase := func(revision any, key string) answer {
		path := fmt.Sprint("/assets/", c.id, "/revisions/", revision)
		return a.do(t, call{method: "DELETE", path: path, key: key, token: c.token})
	}
	erase(3, "").fails(t, 401, "header/Authorization")
	erase(3, "broker").fails(t, 403, "url/permission")
	erase(4, "administrator").fails(t, 400, "url/revision")
	for _, none := range []any{5, 0, "x", "03"} {
		erase(none, "administrator").fails(t, 404, "url/revision")
	}
	before := a.record(t, c.id, "broker", c.token)
	leaf, _ := a.proof(t, c.id, "?revision=3")
	erased := erase(3, "administrator").must(t, 200)
	equal(t, "author of the erasure", at(erased.json, "data.erased.author.role"), any("administrator"))
	again := erase(3, "administrator").must(t, 200)
	equal(t, "answer to the second erasure", again.text, erased.text)
	after := a.record(t, c.id, "broker", c.token)
	if text := fmt.Sprint(after); strings.Contains(text, "таємниця") {
		t.Errorf("got %s, want no content of the erased revision", text)
	}
	equal(t, "number of revisions", len(after), len(before))
	for i := range before {
		isErased := i == 1
		if (at(after[i], "erased") != nil) != isErased {
			t.Errorf("revision %v: got %v, want it erased: %t", at(after[i], "revision"), after[i], isErased)
		}
		if !isErased {
			equal(t, fmt.Sprint("revision ", at(after[i], "revision")), fmt.Sprint(after[i]), fmt.Sprint(before[i]))
		}
	}
	left, asset := a.proof(t, c.id, "?revision=3")
	equal(t, "leaf of the erased revision", left, leaf)
	equal(t, "asset of the erased revision", asset, "")
	for _, revision := range []string{"2", "4"} {
		if _, asset := a.proof(t, c.id, "?revision="+revision); asset == "" {
			t.Errorf("revision %s: got no asset in its proof, want one", revision)
		}
	}
	equal(t, "the asset itself", at(a.read(t, c.id).must(t, 200).json, "data.description"), any("відкрито"))
}

// testErasuresAtOnce erases each revision of an asset except the newest. It sends all requests at the same time,
// and each of them twice. All must succeed.
func testErasuresAtOnce(t *testing.T, a api) {
	const last = 8
	c := a.publish(t, validAsset())
	for i := range last - 2 {
		a.patch(t, c, fields{"description": fmt.Sprint("таємниця ", i)}).must(t, 200)
	}
	var erasing sync.WaitGroup
	for i := range 2 * (last - 1) {
		erasing.Go(func() {
			path := fmt.Sprint("/assets/", c.id, "/revisions/", i/2+1)
			if got := a.do(t, call{method: "DELETE", path: path, key: "administrator"}); got.status != 200 {
				t.Errorf("DELETE %s: got %d %s, want 200", path, got.status, got.text)
			}
		})
	}
	erasing.Wait()
	for i, revision := range a.record(t, c.id, "broker", c.token) {
		if (at(revision, "erased") != nil) != (i > 0) {
			t.Errorf("got the revision %v, want it erased: %t", revision, i > 0)
		}
	}
}
