package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ownIDs reads the whole list of a key's own assets, page by page, and returns their ids in the order of the list.
func (a api) ownIDs(t *testing.T, key, query string) (ids []string) {
	t.Helper()
	for path := "/me/assets?" + query; ; {
		got := a.do(t, call{method: "GET", path: path, key: key}).must(t, 200)
		if got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("got Cache-Control %q, want no-store", got.header.Get("Cache-Control"))
		}
		entries := list(got.json["data"])
		if len(entries) == 0 {
			return ids
		}
		for _, e := range entries {
			ids = append(ids, text(at(e, "id")))
		}
		next := text(at(got.json, "next_page.path"))
		path = next[strings.Index(next, "/me/assets"):]
	}
}

// testOwn lists the assets that brokers own (docs/contract.md, "Own assets").
// Promises: own-assets, own-order, own-owner
func testOwn(t *testing.T, a api) {
	draft := a.create(t, validAsset())
	published := a.publish(t, validAsset())
	test := a.create(t, validAsset().set("mode", "test"))
	// Other scenarios create assets of the same broker. The function `mine` returns only the assets of this scenario.
	mine := func(key, query string) (found []string) {
		for _, id := range a.ownIDs(t, key, query) {
			if slices.Contains([]string{draft.id, published.id, test.id}, id) {
				found = append(found, id)
			}
		}
		return found
	}
	check := func(doing string, got []string, want ...string) {
		t.Helper()
		equal(t, doing, fmt.Sprint(got), fmt.Sprint(want))
	}
	check("all", mine("broker", "limit=1000"), draft.id, published.id, test.id)
	check("the newest first", mine("broker", "limit=1000&descending=1"), test.id, published.id, draft.id)
	check("another broker", mine("broker3", "limit=1000"))
	draft.answer = a.patch(t, draft, fields{"description": "інший"}).must(t, 200)
	check("after a change", mine("broker", "limit=1000"), published.id, test.id, draft.id)
	made := a.makeTransfer(t, "broker3")
	token := text(at(test.json["access"], "transfer"))
	a.takeOver(t, "broker3", test.id, made.id, token).must(t, 200)
	check("the former owner", mine("broker", "limit=1000"), published.id, draft.id)
	check("the new owner", mine("broker3", "limit=1000"), test.id)

	a.do(t, call{method: "GET", path: "/me/assets"}).fails(t, 401, "header/Authorization")
}
