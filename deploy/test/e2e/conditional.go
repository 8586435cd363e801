package e2e

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
)

// testConditionalReads reads resources with If-None-Match before and after a change. The known ETag must get 304
// until the resource changes (docs/contract.md, "Conditional requests").
func testConditionalReads(t *testing.T, a api) {
	c := a.create(t, validAsset())
	path := "/assets/" + c.id
	for _, p := range []string{path, path + "?opt_pretty=1", path + "/items/" + text(at(c.data(), "items.0.id"))} {
		get := call{method: "GET", path: p}
		tag := a.do(t, get).must(t, 200).header.Get("ETag")
		got := a.do(t, get.with("If-None-Match", tag))
		if got.status != 304 || got.text != "" || got.header.Get("ETag") != tag {
			t.Errorf("%s: got %d %v %s, want 304, the ETag %s and no body", p, got.status, got.header, got.text, tag)
		}
		a.patch(t, c, fields{"title": rand.Text()}).must(t, 200)
		if after := a.do(t, get.with("If-None-Match", tag)).must(t, 200).header.Get("ETag"); after == tag {
			t.Errorf("%s: got ETag %s after a change, want another one", p, after)
		}
	}
}

// testConditionalWrites writes with the current ETag, which must work, and again with it, which must be refused.
func testConditionalWrites(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	tag := c.header.Get("ETag")
	change := call{method: "PATCH", path: "/assets/" + c.id, key: "broker", token: c.token,
		body: data(fields{"title": "перша"})}
	// A proxy that compresses answers makes a weak tag.
	got := a.do(t, change.with("If-Match", `"other", W/`+tag)).must(t, 200)
	a.do(t, change.with("If-Match", tag)).fails(t, 412, "url/precondition")
	equal(t, "asset after a refused write", a.read(t, c.id).text, got.text)
	equal(t, "ETag of the asset", a.read(t, c.id).header.Get("ETag"), got.header.Get("ETag"))
}

// testConditionalRace starts fifty clients that change one asset with the same If-Match. Exactly one of them must
// succeed, and the others must get 412, or 503 from a database that is slow.
func testConditionalRace(t *testing.T, a api) {
	const clients = 50
	c := a.create(t, validAsset())
	var wg sync.WaitGroup
	statuses := make([]int, clients)
	for i := range clients {
		wg.Go(func() {
			statuses[i] = a.do(t, call{
				method: "PATCH", path: "/assets/" + c.id, key: "broker", token: c.token,
				body:   data(fields{"title": fmt.Sprint("client ", i)}),
				header: map[string]string{"If-Match": c.header.Get("ETag")},
			}).status
		})
	}
	wg.Wait()
	won := -1
	for i, status := range statuses {
		switch {
		case status == 200 && won < 0:
			won = i
		case status != 412 && status != 503:
			t.Errorf("client %d: got %d, want 412 for all but one client (%d)", i, status, won)
		}
	}
	if title := a.read(t, c.id).data()["title"]; won < 0 || title != fmt.Sprint("client ", won) {
		t.Errorf("got the title %v, want the title of client %d, which won", title, won)
	}
}

// testRepeatedCreation repeats creations with an Idempotency-Key. The same request of the same broker must get the
// first answer again (docs/contract.md, "Idempotency").
func testRepeatedCreation(t *testing.T, a api) {
	create := call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
		with("Idempotency-Key", rand.Text())
	first := a.do(t, create).must(t, 201)
	c := created{first, text(first.data()["id"]), text(at(first.json["access"], "token"))}
	a.patch(t, c, fields{"title": "змінена", "status": "pending", "items": []any{fields{"quantity": 7}}}).must(t, 200)
	again := a.do(t, create).must(t, 201)
	for _, name := range []string{"Location", "ETag"} {
		equal(t, name+" of a repeat", again.header.Get(name), first.header.Get(name))
	}
	equal(t, "answer to a repeat", again.text, first.text)
	equal(t, "title after a repeat", a.read(t, c.id).data()["title"], any("змінена"))
	create.key = "broker3"
	if got := a.do(t, create).must(t, 201); got.data()["id"] == c.id {
		t.Error("another broker: got the first asset again, want a new one")
	}
}

// testRepeatsAtOnce starts twenty clients that send the same creation at the same time. All of them must get the
// same answer.
func testRepeatsAtOnce(t *testing.T, a api) {
	create := call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
		with("Idempotency-Key", rand.Text())
	answers := make([]answer, 20)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = a.do(t, create) })
	}
	wg.Wait()
	for _, got := range answers {
		if got.status != 201 || got.text != answers[0].text ||
			got.header.Get("Location") != answers[0].header.Get("Location") {
			t.Errorf("got %d %s\nwant %s", got.status, got.text, answers[0].text)
		}
	}
}

// testRevisions changes an asset and reads its revisions, each of which must have its author. Only the owner and the
// administrator may read them (docs/contract.md, "Revisions").
// Promises: keys-needed
func testRevisions(t *testing.T, a api) {
	c := a.create(t, validAsset())
	path := "/assets/" + c.id + "/revisions"
	a.patch(t, c, fields{"title": "інша", "status": "pending"}).must(t, 200)
	a.as(t, "concierge", c, "POST", "/assets/"+c.id+"/related_processes", validProcess()).must(t, 201)
	got := a.do(t, call{method: "GET", path: path, key: "broker", token: c.token}).must(t, 200)
	var authors []string
	for _, r := range list(got.json["data"]) {
		authors = append(authors, text(at(r, "author.broker"))+" "+text(at(r, "author.role")))
	}
	equal(t, "authors", fmt.Sprint(authors), "[concierge concierge broker owner broker owner]")
	others := a.do(t, call{method: "GET", path: path, key: "administrator"})
	equal(t, "revisions for the administrator", others.text, got.text)
	a.do(t, call{method: "GET", path: path}).fails(t, 401, "header/Authorization")
	a.do(t, call{method: "GET", path: path, key: "broker3", token: c.token}).fails(t, 403, "url/permission")
}
