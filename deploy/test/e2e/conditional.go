package e2e

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// testConditionalReads reads resources with If-None-Match and If-Match, before and after a change. A known ETag
// must get 304, and a wrong If-Match 412 (docs/contract.md, "Conditional requests").
func testConditionalReads(t *testing.T, a api) {
	c := a.create(t, validAsset())
	path := "/assets/" + c.id
	for _, p := range []string{path, path + "?opt_pretty=1", path + "/items",
		path + "/items/" + text(at(c.data(), "items.0.id")), path + "/documents?all=1"} {
		get := call{method: "GET", path: p}
		tag := a.do(t, get).must(t, 200).header.Get("ETag")
		if tag == "" || strings.HasPrefix(tag, "W/") {
			t.Fatalf("%s: got ETag %q, want a strong one", p, tag)
		}
		for _, has := range []string{tag, `"other", W/` + tag, "*"} {
			got := a.do(t, get.with("If-None-Match", has))
			if got.status != 304 || got.text != "" || got.header.Get("ETag") != tag {
				t.Errorf("%s with If-None-Match %s: got %d %v %s, want 304, the ETag and no body", p, has, got.status,
					got.header, got.text)
			}
		}
		a.do(t, get.with("If-None-Match", `"other"`)).must(t, 200)
		a.do(t, get.with("If-Match", `"other"`)).fails(t, 412, "url/precondition")
		before := a.do(t, get).must(t, 200)
		a.patch(t, c, fields{"title": rand.Text()}).must(t, 200)
		after := a.do(t, get.with("If-None-Match", tag)).must(t, 200)
		if after.header.Get("ETag") == tag || !strings.Contains(p, "items") && !strings.Contains(p, "documents") &&
			after.text == before.text {
			t.Errorf("%s: got ETag %s after a change, want another one than %s", p, after.header.Get("ETag"), tag)
		}
	}
	if created := c.header.Get("ETag"); created == "" || created == a.read(t, c.id).header.Get("ETag") {
		t.Errorf("got ETag %q on the creation, want one that the changes have replaced", created)
	}
}

// testConditionalWrites writes with the current ETag, which must work, and with other ETags, which must be refused.
func testConditionalWrites(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	path := "/assets/" + c.id
	tag := c.header.Get("ETag")
	if read := a.read(t, c.id).header.Get("ETag"); read != tag {
		t.Errorf("got ETag %s on the asset, want %s as on the answer to its change", read, tag)
	}
	change := func(method, path string, body any) call {
		return call{method: method, path: path, key: "broker", token: c.token, body: data(body)}
	}
	for _, w := range []call{
		change("PATCH", path, fields{"title": "перша"}),
		change("POST", path+"/decisions", fields{"decisionDate": "2026-11-21", "decisionID": "2"}),
		change("PATCH", path+"/items/"+text(at(c.data(), "items.0.id")), fields{"quantity": 3}),
		change("PUT", path, validAsset().set("title", "друга")),
	} {
		before := a.read(t, c.id)
		for _, stale := range []string{c.answer.header.Get("ETag") + "x", `"other"`, `W/"other"`, ""} {
			if got := a.do(t, w.with("If-Match", stale)); got.status != 412 && got.status != 400 {
				t.Errorf("%s %s with If-Match %q: got %d %s, want 412 or 400", w.method, w.path, stale, got.status,
					got.text)
			}
		}
		a.do(t, w.with("If-None-Match", "*")).fails(t, 412, "url/precondition")
		equal(t, "asset after refused writes", a.read(t, c.id).text, before.text)
		got := a.do(t, w.with("If-Match", `"other", W/`+tag)) // a weak tag, as a proxy that compresses answers makes it
		if got.status != 200 && got.status != 201 {
			t.Fatalf("%s %s: got %d %s, want 200 or 201", w.method, w.path, got.status, got.text)
		}
		a.do(t, w.with("If-Match", tag)).fails(t, 412, "url/precondition")
		tag = got.header.Get("ETag")
		if read := a.read(t, c.id).header.Get("ETag"); read != tag {
			t.Errorf("%s %s: got ETag %s on the asset, want %s as on the answer", w.method, w.path, read, tag)
		}
	}
	a.do(t, change("PATCH", path, fields{"title": "будь-яка"}).with("If-Match", "*")).must(t, 200)
	a.do(t, change("PATCH", "/assets/"+strings.Repeat("0", 32), fields{}).with("If-Match", tag)).
		fails(t, 404, "url/asset_id")
	wrong := change("PATCH", path, fields{"title": "чужа"})
	wrong.token = strings.Repeat("0", 32)
	a.do(t, wrong.with("If-Match", tag)).fails(t, 403, "body/data")
}

// testConditionalRace starts fifty clients that change one asset with the same If-Match. Exactly one of them must
// succeed, and the others must get 412.
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
		case status != 412:
			t.Errorf("client %d: got %d, want 412 for all but one client (%d)", i, status, won)
		}
	}
	if title := a.read(t, c.id).data()["title"]; won < 0 || title != fmt.Sprint("client ", won) {
		t.Errorf("got the title %v, want the title of client %d, which won", title, won)
	}
}

// testRepeatedCreation repeats creations with an Idempotency-Key. The same request must get the first answer again
// (docs/contract.md, "Idempotency").
func testRepeatedCreation(t *testing.T, a api) {
	key := rand.Text()
	create := call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
		with("Idempotency-Key", key)
	first := a.do(t, create).must(t, 201)
	c := created{first, text(first.data()["id"]), text(at(first.json["access"], "token"))}
	if !uuid4Form.MatchString(c.id) || !idForm.MatchString(c.token) {
		t.Errorf("got id %q and a token of %d characters, want a UUID4 and 32", c.id, len(c.token))
	}
	same := func(when string) {
		t.Helper()
		again := a.do(t, create).must(t, 201)
		if again.text != first.text || again.header.Get("Location") != first.header.Get("Location") ||
			again.header.Get("ETag") != first.header.Get("ETag") {
			t.Errorf("%s: got %s %v\nwant %s %v", when, again.text, again.header, first.text, first.header)
		}
	}
	same("at once")
	a.patch(t, c, fields{"title": "змінена", "status": "pending", "items": []any{fields{"quantity": 7}}}).must(t, 200)
	same("after a change")
	if d := a.read(t, c.id).data(); d["title"] != "змінена" {
		t.Errorf("got %v after a repeat, want the changed title", d)
	}
	other := create
	other.body = data(validAsset().set("title", "інша"))
	a.do(t, other).fails(t, 400, "header/Idempotency-Key")
	for _, try := range []struct {
		name string
		call call
	}{
		{"another Idempotency-Key", create.with("Idempotency-Key", key+"2")},
		{"another broker", call{method: "POST", path: "/assets", key: "broker3", body: create.body,
			header: create.header}},
		{"no Idempotency-Key", call{method: "POST", path: "/assets", key: "broker", body: create.body}},
	} {
		got := a.do(t, try.call).must(t, 201)
		if got.data()["id"] == c.id || at(got.json["access"], "token") == c.token {
			t.Errorf("%s: got the first asset again, want a new one", try.name)
		}
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 256), "\u00fc"} {
		a.do(t, create.with("Idempotency-Key", bad)).fails(t, 400, "header/Idempotency-Key")
	}
	wrong := create.with("Idempotency-Key", key+"3")
	wrong.body = data(validAsset().without("title"))
	a.do(t, wrong).fails(t, 400, "body/title")
	wrong.body = create.body
	a.do(t, wrong).must(t, 201) // the refusal has not used up the key
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

// testRevisions changes an asset twice and reads its revisions. Each revision must have its author and its changes.
// Only the owner and the administrator may read them (docs/contract.md, "Revisions").
// Promises: revisions, keys-needed
func testRevisions(t *testing.T, a api) {
	c := a.create(t, validAsset())
	path := "/assets/" + c.id + "/revisions"
	a.patch(t, c, fields{"title": "інша", "status": "pending"}).must(t, 200)
	a.as(t, "concierge", c, "POST", "/assets/"+c.id+"/related_processes", validProcess()).must(t, 201)
	newest := a.read(t, c.id).data()
	revisions := a.do(t, call{method: "GET", path: path, key: "broker", token: c.token}).must(t, 200)
	d := list(revisions.json["data"])
	if len(d) != 3 {
		t.Fatalf("got %s, want three revisions", revisions.text)
	}
	for i, want := range []struct{ broker, role, says string }{
		{"concierge", "concierge", "/relatedProcesses"}, {"broker", "owner", "/title"}, {"broker", "owner", c.id},
	} {
		if at(d[i], "author.broker") != want.broker || at(d[i], "author.role") != want.role ||
			!strings.Contains(fmt.Sprint(at(d[i], "changes")), want.says) {
			t.Errorf("revision %v: got %v, want %v", at(d[i], "revision"), d[i], want)
		}
	}
	equal(t, "date of the newest revision", at(d[0], "date"), newest["dateModified"])
	equal(t, "date of the first revision", at(d[2], "date"), c.data()["dateModified"])
	whole := fields(c.data()).without("dateModified")
	creation := map[string]any{"op": "add", "path": "", "value": map[string]any(whole)}
	equal(t, "change of the first revision", object(at(d[2], "changes.0")), creation)
	if strings.Contains(revisions.text, c.token) {
		t.Error("got the owner token in a revision, want it left out")
	}
	page := a.do(t, call{method: "GET", path: path + "?limit=2", key: "administrator"}).must(t, 200)
	rest := a.do(t, call{method: "GET", path: text(at(page.json, "next_page.path")), key: "administrator"}).must(t, 200)
	equal(t, "revisions on two pages", append(list(page.json["data"]), list(rest.json["data"])...), d)
	a.do(t, call{method: "GET", path: path}).fails(t, 401, "header/Authorization")
	a.do(t, call{method: "GET", path: path, key: "broker"}).fails(t, 403, "url/permission")
	a.do(t, call{method: "GET", path: path, key: "broker3", token: c.token}).fails(t, 403, "url/permission")
	a.do(t, call{method: "GET", path: path, key: "concierge"}).fails(t, 403, "url/permission")
	a.do(t, call{method: "GET", path: "/assets/" + strings.Repeat("0", 32) + "/revisions"}).
		fails(t, 404, "url/asset_id")
}
