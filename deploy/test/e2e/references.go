package e2e

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"
)

// refer creates an asset under a reference with a broker's key.
func (a api) refer(t *testing.T, key, reference string, f fields) answer {
	t.Helper()
	return a.do(t, call{method: "POST", path: "/assets", key: key, body: data(f)}.with("Registry-Reference", reference))
}

// referenced returns the ids of the broker's own assets that have the reference.
func (a api) referenced(t *testing.T, key, reference string) (ids []string) {
	t.Helper()
	for path := "/me/assets?limit=1000&opt_fields=reference"; ; {
		got := a.do(t, call{method: "GET", path: path, key: key}).must(t, 200)
		entries := list(got.json["data"])
		if len(entries) == 0 {
			return ids
		}
		for _, e := range entries {
			if text(at(e, "reference")) == reference {
				ids = append(ids, text(at(e, "id")))
			}
		}
		next := text(at(got.json, "next_page.path"))
		path = next[strings.Index(next, "/me/assets"):]
	}
}

// testReferences creates assets under references (docs/contract.md, "Own references").
// Promises: reference-once, reference-tokens, reference-owner, reference-removed
func testReferences(t *testing.T, a api) {
	reference := "lot/" + rand.Text()
	first := a.refer(t, "broker", reference, validAsset()).must(t, 201)
	c := created{answer: first, id: text(first.data()["id"]), token: text(at(first.json["access"], "token"))}
	for range 2 {
		again := a.refer(t, "broker", reference, validAsset()).must(t, 200)
		equal(t, "the asset", text(again.data()["id"]), c.id)
		if again.json["access"] != nil || again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("a repeat: got %s with %v, want the asset without tokens", again.text, again.header)
		}
	}
	a.refer(t, "broker", reference, validAsset().set("title", "інша")).
		fails(t, 409, "header/Registry-Reference").says(t, c.id)
	if got := a.read(t, c.id); strings.Contains(got.text, reference) {
		t.Errorf("got %s, want no reference in a reading", got.text)
	}
	equal(t, "own assets", strings.Join(a.referenced(t, "broker", reference), " "), c.id)
	for _, wrong := range []string{" x y ", "ї", strings.Repeat("x", 201)} {
		a.refer(t, "broker", wrong, validAsset()).fails(t, 400, "header/Registry-Reference")
	}

	transfer := text(at(first.json["access"], "transfer"))
	a.takeOver(t, "broker3", c.id, a.makeTransfer(t, "broker3").id, transfer).must(t, 200)
	equal(t, "own assets of the new owner", strings.Join(a.referenced(t, "broker3", reference), " "), "")
	again := a.refer(t, "broker", reference, validAsset()).must(t, 200)
	equal(t, "a repeat by the former owner", text(again.data()["id"]), c.id)
	other := a.refer(t, "broker3", reference, validAsset()).must(t, 201)
	d := created{answer: other, id: text(other.data()["id"]), token: text(at(other.json["access"], "token"))}
	a.remove(t, "broker3", d.id, d.token).must(t, 204)
	a.refer(t, "broker3", reference, validAsset()).fails(t, 410, "header/Registry-Reference").says(t, d.id)
}

// testReferenceRaces creates an asset under the same reference many times at the same time. Only one asset may be
// created. A creation with both a reference and an Idempotency-Key is then sent twice. Both answers must be equal.
// Promises: reference-once, reference-tokens
func testReferenceRaces(t *testing.T, a api) {
	reference, key := rand.Text(), rand.Text()
	got := make([]answer, 6)
	var racing sync.WaitGroup
	for i := range got {
		racing.Go(func() { got[i] = a.refer(t, "broker", reference, validAsset()) })
	}
	racing.Wait()
	made := 0
	for _, g := range got {
		equal(t, "the asset", text(g.data()["id"]), text(got[0].data()["id"]))
		if g.status == 201 {
			made++
		}
	}
	if made != 1 {
		t.Errorf("got tokens in %d answers, want 1", made)
	}
	both := func() answer {
		return a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
			with("Registry-Reference", key).with("Idempotency-Key", key)).must(t, 201)
	}
	equal(t, "the answer under the same key", both().text, both().text)
}
