package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// validDocument returns a document whose type has no special rules.
func validDocument() fields {
	return fields{"documentType": "technicalSpecifications", "title": "Технічний паспорт",
		"url": "https://docs.example/get/1?KeyID=a&Signature=b%2Bc", "format": "application/pdf"}
}

func validItem() map[string]any { return object(at(map[string]any(validAsset()), "items.0")) }

func validProcess() fields {
	return fields{"type": "lot", "relatedProcessID": strings.Repeat("d", 32)}
}

// The method `of` returns the path of all parts of one kind.
func (c created) of(kind string) string { return "/assets/" + c.id + "/" + kind }

// The method `as` sends data with a key and the asset's token.
func (a api) as(t *testing.T, key string, c created, method, path string, f any) answer {
	t.Helper()
	return a.do(t, call{method: method, path: path, key: key, token: c.token, body: data(f)})
}

// add adds a part, and checks that the part can be read at its Location.
func (a api) add(t *testing.T, key string, c created, kind string, f any) (path string, part map[string]any) {
	t.Helper()
	got := a.as(t, key, c, "POST", c.of(kind), f).must(t, 201)
	path = c.of(kind) + "/" + text(got.data()["id"])
	if want := a.base + "/api/" + a.current() + path; got.header.Get("Location") != want {
		t.Errorf("got Location %q, want %q", got.header.Get("Location"), want)
	}
	if !idForm.MatchString(text(got.data()["id"])) || len(got.json) != 1 {
		t.Errorf("got %s, want a part with an id, and nothing else", got.text)
	}
	read := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	delete(read, "previousVersions")
	delete(read, "thumbnails")
	equal(t, "part at its Location", read, got.data())
	return path, got.data()
}

// partCase is a kind of part, with a part to send and a change of that part.
type partCase struct {
	kind    string
	key     string // API key that may write the part
	field   string // field of the asset that has the parts
	sent    fields
	patch   fields
	changed string // path of the value that the field `patch` changes
	before  int    // number of parts of this kind that the asset has already
}

// testParts adds, lists, reads and changes parts of each kind. The asset and the listings must have the same parts
// (docs/contract.md, "Parts").
// Promises: ids, part-moves
func testParts(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	for _, k := range []partCase{
		{"items", "broker", "items", fields(validItem()).set("description", "друге"),
			fields{"unit": map[string]any{"name": "м²"}}, "unit.name", 1},
		{"decisions", "broker", "decisions",
			fields{"decisionDate": "2026-11-21T12:00:00.000000+02:00", "decisionID": "1637-11"},
			fields{"title": "про приватизацію"}, "title", 1},
		{"documents", "broker", "documents", validDocument(), fields{"title_en": "passport"}, "title_en", 1},
		{"related_processes", "concierge", "relatedProcesses", validProcess(), fields{"identifier": "UA-LR-1"},
			"identifier", 0},
	} {
		t.Run(k.kind, func(t *testing.T) {
			path, part := testPartAdded(t, a, c, k)
			testPartChanged(t, a, c, k, path, part)
		})
	}
}

// testPartAdded adds a part and finds it in the asset and in the listing.
func testPartAdded(t *testing.T, a api, c created, k partCase) (path string, part map[string]any) {
	before := a.read(t, c.id).data()
	path, part = a.add(t, k.key, c, k.kind, k.sent)
	for name, value := range k.sent {
		if name != "id" {
			equal(t, name, plain(t, part[name]), plain(t, value))
		}
	}
	after := a.read(t, c.id).data()
	listed := a.do(t, call{method: "GET", path: c.of(k.kind)}).must(t, 200)
	for _, got := range [][]any{list(after[k.field]), list(listed.json["data"])} {
		if len(got) != k.before+1 {
			t.Fatalf("got %d parts, want %d: %v", len(got), k.before+1, got)
		}
		equal(t, "last part", got[k.before], any(part))
	}
	if got, old := text(after["dateModified"]), text(before["dateModified"]); got <= old {
		t.Errorf("got dateModified %s after a new part, want it later than %s", got, old)
	}
	equal(t, "date after a new part", after["date"], before["date"])
	return path, part
}

// testPartChanged sends changes of a part. Empty changes must leave the asset as it is. A valid change must change
// only the fields that it names. A change with an unknown field must be refused.
func testPartChanged(t *testing.T, a api, c created, k partCase, path string, part map[string]any) {
	before := a.read(t, c.id).data()
	for _, nothing := range []fields{{}, {"id": "x"}} {
		equal(t, "part after an empty change", a.as(t, k.key, c, "PATCH", path, nothing).must(t, 200).data(), part)
	}
	equal(t, "asset after an empty change", a.read(t, c.id).data(), before)
	got := a.as(t, k.key, c, "PATCH", path, k.patch).must(t, 200).data()
	equal(t, k.changed, at(got, k.changed), at(map[string]any(k.patch), k.changed))
	equal(t, "id of the changed part", got["id"], part["id"])
	now := a.read(t, c.id).data()
	if got, old := text(now["dateModified"]), text(before["dateModified"]); got <= old {
		t.Errorf("got dateModified %s after a change, want it later than %s", got, old)
	}
	equal(t, "date after a change", now["date"], before["date"])
	a.as(t, k.key, c, "PATCH", path, fields{"colour": 1}).fails(t, 400, "body/colour")
	a.as(t, k.key, c, "POST", c.of(k.kind), fields{"colour": 1, "id": []any{}}).must(t, 400)
	if got := a.do(t, call{method: "HEAD", path: path}).must(t, 200); got.text != "" {
		t.Errorf("got the body %q for HEAD, want none", got.text)
	}
}

// plain encodes a value as JSON and returns the decoded JSON.
func plain(t *testing.T, value any) any {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// partCall is a request for a part that the registry must refuse.
type partCall struct {
	name   string
	call   call
	status int
	places []string
}

// partPaths are an asset, a draft, and the paths of the parts that testPartRefusals asks for.
type partPaths struct {
	c, draft                          created
	item, decision, document, process string
}

func newPartPaths(t *testing.T, a api) partPaths {
	t.Helper()
	p := partPaths{c: a.publish(t, validAsset()), draft: a.create(t, validAsset())}
	p.process, _ = a.add(t, "concierge", p.c, "related_processes", validProcess())
	first := func(kind string) string { return p.c.of(kind) + "/" + text(at(p.c.data(), kind+".0.id")) }
	p.item, p.decision, p.document = first("items"), first("decisions"), first("documents")
	return p
}

// testPartRefusals sends requests that the registry must refuse, and checks that the asset did not change.
// Promises: one-process
func testPartRefusals(t *testing.T, a api) {
	p := newPartPaths(t, a)
	before := a.read(t, p.c.id).text
	for _, calls := range [][]partCall{p.inOrder(), p.forbidden(), p.malformed()} {
		for _, r := range calls {
			t.Run(r.name, func(t *testing.T) { a.do(t, r.call).fails(t, r.status, r.places...) })
		}
	}
	equal(t, "asset after the refusals", a.read(t, p.c.id).text, before)
}

// inOrder returns requests with two faults each. The answer must name the fault that is checked first
// (docs/contract.md, "Order of checks").
func (p partPaths) inOrder() []partCall {
	c, draft, item, process := p.c, p.draft, p.item, p.process
	missing, plainText := strings.Repeat("0", 32), map[string]string{"Content-Type": "text/plain"}
	return []partCall{
		{"no asset", call{method: "GET", path: "/assets/" + missing + "/items"}, 404, []string{"url/asset_id"}},
		{"no asset and no key", call{method: "POST", path: "/assets/" + missing + "/items", body: "x",
			header: plainText}, 404, []string{"url/asset_id"}},
		{"no item", call{method: "GET", path: c.of("items") + "/" + missing}, 404, []string{"url/item_id"}},
		{"no item, and another type", call{method: "PATCH", path: c.of("items") + "/x", body: "x", header: plainText}, 415,
			[]string{"header/Content-Type"}},
		{"no item, and a bad one", call{method: "PATCH", path: c.of("items") + "/x", key: "broker", body: "x"}, 404,
			[]string{"url/item_id"}},
		{"no decision", call{method: "PATCH", path: c.of("decisions") + "/" + missing, key: "broker", body: "x"}, 404,
			[]string{"url/decision_id"}},
		{"no document", call{method: "PUT", path: c.of("documents") + "/" + missing, key: "broker", body: "x"}, 404,
			[]string{"url/document_id"}},
		{"no process and no key", call{method: "DELETE", path: c.of("related_processes") + "/" + missing}, 401,
			[]string{"header/Authorization"}},
		{"no process", call{method: "DELETE", path: c.of("related_processes") + "/" + missing, key: "concierge"}, 404,
			[]string{"url/relatedProcess_id"}},
		{"an item of another asset",
			call{method: "GET", path: draft.of("items") + "/" + text(at(c.data(), "items.0.id"))}, 404,
			[]string{"url/item_id"}},
		{"another type", call{method: "PATCH", path: item, body: "x", header: plainText}, 415,
			[]string{"header/Content-Type"}},
		{"no key", call{method: "PATCH", path: item, body: "x"}, 401, []string{"header/Authorization"}},
		{"no key to remove", call{method: "DELETE", path: process}, 401, []string{"header/Authorization"}},
		{"permission comes before the body", call{method: "PATCH", path: item, key: "broker3", token: c.token,
			body: "x"}, 403, []string{"url/permission"}},
		{"the body comes before its fields", call{method: "PATCH", path: item, key: "broker", token: c.token,
			body: "x"}, 400, []string{"body/data"}},
	}
}

// forbidden returns requests by callers who are not allowed to write the part.
func (p partPaths) forbidden() []partCall {
	c, draft, item, decision, document, process := p.c, p.draft, p.item, p.decision, p.document, p.process
	return []partCall{
		{"an item without the token", call{method: "PATCH", path: item, key: "broker", body: data(fields{})}, 403,
			[]string{"url/permission"}},
		{"an item of somebody else's", call{method: "PATCH", path: item, key: "broker3", token: c.token,
			body: data(fields{})}, 403, []string{"url/permission"}},
		{"an item by the concierge", call{method: "PATCH", path: item, key: "concierge", body: data(fields{})}, 403,
			[]string{"url/permission"}},
		{"an item by the administrator", call{method: "POST", path: c.of("items"), key: "administrator",
			body: data(fields{})}, 403, []string{"url/permission"}},
		{"a decision by another broker", call{method: "POST", path: c.of("decisions"), key: "broker3",
			body: data(fields{})}, 403, []string{"url/permission"}},
		{"a decision with a wrong token", call{method: "PATCH", path: decision, key: "broker", token: draft.token,
			body: data(fields{})}, 403, []string{"url/permission"}},
		{"a document without the token", call{method: "PUT", path: document, key: "broker",
			body: data(validDocument())}, 403, []string{"url/permission"}},
		{"a process by the owner", call{method: "PATCH", path: process, key: "broker", token: c.token,
			body: data(fields{})}, 403, []string{"url/permission"}},
		{"a process removed by the owner", call{method: "DELETE", path: process, key: "broker", token: c.token}, 403,
			[]string{"url/permission"}},
		{"a process removed by an administrator", call{method: "DELETE", path: process, key: "administrator"}, 403,
			[]string{"url/permission"}},
	}
}

// malformed returns requests with invalid fields, and requests that the state of the asset forbids.
func (p partPaths) malformed() []partCall {
	c, draft, document := p.c, p.draft, p.document
	return []partCall{
		{"a second process", call{method: "POST", path: c.of("related_processes"), key: "concierge",
			body: data(validProcess())}, 400, []string{"body/relatedProcesses"}},
		{"an item of nothing", call{method: "POST", path: c.of("items"), key: "broker", token: c.token,
			body: data(fields{})}, 400, []string{"body/description", "body/classification", "body/unit",
			"body/quantity", "body/address", "body/registrationDetails"}},
		{"a decision of nothing", call{method: "POST", path: c.of("decisions"), key: "broker", token: c.token,
			body: data(fields{})}, 400, []string{"body/decisionDate", "body/decisionID"}},
		{"a document of nothing", call{method: "POST", path: c.of("documents"), key: "broker", token: c.token,
			body: data(fields{})}, 400, []string{"body/documentType", "body/title"}},
		{"a document without a url", call{method: "POST", path: c.of("documents"), key: "broker", token: c.token,
			body: data(validDocument().without("url"))}, 400, []string{"body/url"}},
		{"a version that is not complete", call{method: "PUT", path: document, key: "broker", token: c.token,
			body: data(fields{"title": "x"})}, 400, []string{"body/documentType"}},
		{"the first document of another type", call{method: "PATCH", path: document, key: "broker", token: c.token,
			body: data(fields{"documentType": "notice"})}, 400, []string{"body/documentType"}},
		{"an id that is taken", call{method: "POST", path: c.of("items"), key: "broker", token: c.token,
			body: data(object(at(c.data(), "items.0")))}, 400, []string{"body/id"}},
		{"a document of a draft", call{method: "POST", path: draft.of("documents"), key: "broker", token: draft.token,
			body: data(validDocument())}, 403, []string{"body/data"}},
		{"a bad document of a draft", call{method: "POST", path: draft.of("documents"), key: "broker",
			token: draft.token, body: data(validDocument().set("url", "x"))}, 400, []string{"body/url"}},
	}
}

// testPartPaths asks for parts with methods, ids and paths that do not exist. The answer must be a 404.
func testPartPaths(t *testing.T, a api) {
	p := newPartPaths(t, a)
	c := p.c
	for _, try := range []struct{ path, allow string }{
		{c.of("items"), "GET HEAD POST"}, {p.item, "GET HEAD PATCH"}, {p.document, "GET HEAD PATCH PUT"},
		{p.process, "GET HEAD PATCH DELETE"},
	} {
		got := a.do(t, call{method: "BREW", path: try.path, key: "broker"}).fails(t, 404, "url/method_not_allowed")
		for _, method := range strings.Fields(try.allow) {
			if allow := got.header.Get("Allow"); !strings.Contains(allow, method) {
				t.Errorf("%s: got Allow %q, want it with %s", try.path, allow, method)
			}
		}
	}
	for _, id := range []string{"%00", "..%2fx", "..", "%ff", strings.ToUpper(text(at(c.data(), "items.0.id"))),
		strings.Repeat("0", 5000)} {
		a.do(t, call{method: "GET", path: c.of("items") + "/" + id}).must(t, 404)
		a.do(t, call{method: "PATCH", path: c.of("items") + "/" + id, key: "broker", token: c.token,
			body: data(fields{})}).must(t, 404)
	}
	for _, path := range []string{p.item + "/", p.item + "/unit", c.of("items") + "/", c.of("relatedProcesses"),
		c.of("item")} {
		a.do(t, call{method: "GET", path: path}).fails(t, 404, "url/not_found")
	}
}

// testDocuments adds a document, and replaces it by a new version. The asset must have both versions, and each
// listing must have the versions that its query asks for.
// Promises: document-versions
func testDocuments(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	path, first := a.add(t, "broker", c, "documents", validDocument())
	if first["author"] != "asset_owner" || first["documentOf"] != "asset" ||
		!timeForm.MatchString(text(first["datePublished"])) || first["dateModified"] != first["datePublished"] {
		t.Errorf("got the new document %v, want an author, the asset and two equal times", first)
	}
	newer := validDocument().set("title", "Новий паспорт").set("url", "http://127.0.0.1:8081/get/2?KeyID=%D1%97")
	second := a.as(t, "broker", c, "PUT", path, newer).must(t, 200).data()
	if second["id"] != first["id"] || second["datePublished"] != first["datePublished"] ||
		text(second["dateModified"]) <= text(first["dateModified"]) || second["url"] != newer["url"] {
		t.Errorf("got the new version %v, want the id and datePublished of %v and a later dateModified", second, first)
	}
	after := a.read(t, c.id).data()
	equal(t, "documents", list(after["documents"]), append(list(c.data()["documents"]), first, second))
	a.as(t, "broker", c, "PUT", path, newer).must(t, 200)
	equal(t, "asset after the same version again", a.read(t, c.id).data(), after)
	read := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	equal(t, "previousVersions", list(read["previousVersions"]), []any{first})
	for _, try := range []struct {
		query string
		want  int
	}{{"", 2}, {"?all=", 2}, {"?all=yes", 3}} {
		if got := list(a.do(t, call{method: "GET", path: c.of("documents") + try.query}).must(t, 200).
			json["data"]); len(got) != try.want {
			t.Errorf("%q: got %d documents, want %d: %v", try.query, len(got), try.want, got)
		}
	}
	changed := a.as(t, "broker", c, "PATCH", path, fields{"title": "Паспорт", "url": "https://elsewhere.example/",
		"author": "me", "datePublished": "2020-01-01"}).must(t, 200).data()
	if changed["title"] != "Паспорт" || changed["url"] != second["url"] || changed["author"] != "asset_owner" ||
		changed["datePublished"] != first["datePublished"] {
		t.Errorf("got %v, want the new title and every generated field as it was", changed)
	}
	_, seen := a.add(t, "broker", c, "documents", fields{"documentType": "x_dgfAssetFamiliarization",
		"title": "Оглядини", "accessDetails": "щодня", "documentOf": "item", "relatedItem": at(c.data(), "items.0.id")})
	if seen["url"] != nil || seen["relatedItem"] != at(c.data(), "items.0.id") {
		t.Errorf("got the familiarisation document %v, want no url and the related item", seen)
	}
	a.do(t, call{method: "GET", path: path + "?download=nothing"}).fails(t, 404, "url/download")
}

// testConcurrentParts adds parts from many clients at the same time, and finds all of them. A client repeats a
// request that got 503. The registry may have carried out such a request, so its part may be there twice.
func testConcurrentParts(t *testing.T, a api) {
	const clients = 30
	c := a.publish(t, validAsset())
	var wg sync.WaitGroup
	unsure := make([]int, clients)
	title := func(client int) string { return fmt.Sprintf("part of client %d", client) }
	for client := range clients {
		wg.Go(func() {
			document := validDocument()
			document["title"] = title(client)
			for {
				got := a.as(t, "broker", c, "POST", c.of("documents"), document)
				switch got.status {
				case 409: // another write won
					continue
				case 503:
					unsure[client]++
					continue
				case 201:
				default:
					t.Errorf("got %d %s, want 201", got.status, got.text)
				}
				return
			}
		})
	}
	wg.Wait()
	found := map[string]int{}
	for _, document := range list(a.read(t, c.id).data()["documents"]) {
		found[text(object(document)["title"])]++
	}
	for client := range clients {
		if got, most := found[title(client)], 1+unsure[client]; got < 1 || got > most {
			t.Errorf("got %d documents of client %d, want 1 to %d", got, client, most)
		}
	}
}
