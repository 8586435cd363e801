package e2e

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// remove removes a draft with a key and a token.
func (a api) remove(t *testing.T, key, id, token string) answer {
	t.Helper()
	return a.do(t, call{method: "DELETE", path: "/assets/" + id, key: key, token: token})
}

// isGone checks that an asset does not exist for anybody.
func (a api) isGone(t *testing.T, c created) {
	t.Helper()
	for _, path := range []string{"", "/items", "/documents", "/items/" + c.id, "/revisions", "/proof"} {
		for _, key := range []string{"broker", "administrator"} {
			a.do(t, call{method: "GET", path: "/assets/" + c.id + path, key: key, token: c.token}).fails(t, 404, "url/asset_id")
		}
	}
	a.patch(t, c, fields{"status": "pending"}).fails(t, 404, "url/asset_id")
	a.takeOver(t, "broker3", c.id, a.makeTransfer(t, "broker3").id, "x").fails(t, 404, "url/asset_id")
	a.do(t, call{method: "POST", path: "/assets/" + c.id + "/recovery", key: "administrator",
		body: data(fields{"reason": "x"})}).fails(t, 404, "url/asset_id")
	a.remove(t, "broker", c.id, c.token).fails(t, 404, "url/asset_id")
	if ids := a.ownIDs(t, "broker", "limit=1000"); strings.Contains(fmt.Sprint(ids), c.id) {
		t.Errorf("got %s in the list of own assets, want it gone", c.id)
	}
}

// testRemoval removes drafts. Only the owner may remove an asset, and only while it is a draft
// (docs/contract.md, "Removal of drafts").
// Promises: removed-gone, removed-number, removed-drafts-only
func testRemoval(t *testing.T, a api) {
	c := a.create(t, validAsset())
	a.remove(t, "", c.id, c.token).fails(t, 401, "header/Authorization")
	a.remove(t, "broker", c.id, "").fails(t, 403, "body/data").says(t, "owner token is missing")
	a.remove(t, "broker", c.id, "x").fails(t, 403, "body/data")
	a.remove(t, "broker3", c.id, c.token).fails(t, 403, "body/data")
	a.remove(t, "administrator", c.id, "").fails(t, 403, "body/data")
	a.remove(t, "broker", strings.Repeat("0", 32), c.token).fails(t, 404, "url/asset_id")
	a.do(t, call{method: "DELETE", path: "/assets/" + c.id, key: "broker", token: c.token}.with("If-Match", `"x"`)).
		fails(t, 412, "url/precondition")
	a.read(t, c.id).must(t, 200)
	got := a.remove(t, "broker", c.id, c.token).must(t, 204)
	equal(t, "body of the answer", got.text, "")
	a.isGone(t, c)
	for range 3 { // three, because each service gives out numbers of its own range
		if next := a.create(t, validAsset()).data()["assetID"]; next == c.data()["assetID"] {
			t.Errorf("got the number %v of the removed draft again, want another", next)
		}
	}
	a.inEachState(t, func(c created, state string) {
		if state != "draft" {
			a.remove(t, "broker", c.id, c.token).fails(t, 403, "body/data").says(t, "("+state+")")
		}
	})
}

// testRemovedRepeat repeats the creation of a draft that was removed. The answer must be a 410, and no asset may be
// created.
// Promises: removed-repeat
func testRemovedRepeat(t *testing.T, a api) {
	key := rand.Text()
	create := func(f fields) answer {
		return a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(f)}.with("Idempotency-Key", key))
	}
	first := create(validAsset()).must(t, 201)
	c := created{answer: first, id: text(first.data()["id"]), token: text(at(first.json["access"], "token"))}
	a.remove(t, "broker", c.id, c.token).must(t, 204)
	for range 2 {
		create(validAsset()).fails(t, 410, "header/Idempotency-Key").says(t, c.id)
	}
	create(validAsset().set("title", "інша")).fails(t, 400, "header/Idempotency-Key")
	a.isGone(t, c)
}

// testRemovalRaces sends two removals of a draft while its owner publishes it. Either the removal or the
// publication must succeed.
func testRemovalRaces(t *testing.T, a api) {
	for range 5 {
		c := a.create(t, validAsset())
		var published answer
		removed := make([]answer, 2)
		var racing sync.WaitGroup
		racing.Go(func() { published = a.patch(t, c, fields{"status": "pending"}) })
		for i := range removed {
			racing.Go(func() { removed[i] = a.remove(t, "broker", c.id, c.token) })
		}
		racing.Wait()
		gone := 0
		for _, r := range removed {
			if r.status == 204 {
				gone++
			}
		}
		switch {
		case published.status == 200 && gone == 0:
			a.read(t, c.id).must(t, 200)
		case published.status == 404 && gone == 1:
			a.isGone(t, c)
		default:
			t.Errorf("got %d %s for the publication and %d, %d for the removals, want one of both to happen",
				published.status, published.text, removed[0].status, removed[1].status)
		}
	}
}
