package e2e

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// validDocument is a document of any type but those with rules of their own.
func validDocument() fields {
	return fields{"documentType": "technicalSpecifications", "title": "Технічний паспорт",
		"url": "https://docs.example/get/1?KeyID=a&Signature=b%2Bc", "format": "application/pdf"}
}

func validProcess() fields {
	return fields{"type": "lot", "relatedProcessID": strings.Repeat("d", 32)}
}

// of is the path of the parts of an asset.
func (c created) of(kind string) string { return "/assets/" + c.id + "/" + kind }

// as sends data with the asset's token.
func (a api) as(t *testing.T, key string, c created, method, path string, f any) answer {
	t.Helper()
	return a.do(t, call{method: method, path: path, key: key, token: c.token, body: data(f)})
}

// add adds a part, and checks that it has an address where it is.
func (a api) add(t *testing.T, key string, c created, kind string, f any) (path string, part map[string]any) {
	t.Helper()
	got := a.as(t, key, c, "POST", c.of(kind), f).must(t, 201)
	path = c.of(kind) + "/" + text(got.data()["id"])
	if want := a.base + "/api/" + a.current() + path; got.header.Get("Location") != want {
		t.Errorf("Location is %q, want %q", got.header.Get("Location"), want)
	}
	if !idForm.MatchString(text(got.data()["id"])) || len(got.json) != 1 {
		t.Errorf("added %s", got.text)
	}
	read := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	delete(read, "previousVersions")
	if !reflect.DeepEqual(read, got.data()) {
		t.Errorf("read  %v\nadded %v", read, got.data())
	}
	return path, got.data()
}

// testParts adds, lists, reads and changes parts of each kind.
func testParts(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	for _, k := range []struct {
		kind     string
		key      string
		field    string
		sent     fields
		patch    fields
		changed  string // path of what the patch has changed
		previous int    // how many there are without it
	}{
		{"items", "broker", "items", fields(object(at(map[string]any(validAsset()), "items.0"))).set("description",
			"друге"), fields{"unit": map[string]any{"name": "м²"}}, "unit.name", 1},
		{"decisions", "broker", "decisions", fields{"decisionDate": "2026-11-21T12:00:00.000000+02:00",
			"decisionID": "1637-11"}, fields{"title": "про приватизацію"}, "title", 1},
		{"documents", "broker", "documents", validDocument(), fields{"title_en": "passport"}, "title_en", 1},
		{"related_processes", "concierge", "relatedProcesses", validProcess(), fields{"identifier": "UA-LR-1"},
			"identifier", 0},
	} {
		t.Run(k.kind, func(t *testing.T) {
			before := a.read(t, c.id).data()
			path, part := a.add(t, k.key, c, k.kind, k.sent)
			for name, value := range k.sent {
				if !reflect.DeepEqual(plain(t, part[name]), plain(t, value)) && name != "id" {
					t.Errorf("%s is %v, sent %v", name, part[name], value)
				}
			}
			after := a.read(t, c.id).data()
			if got := list(after[k.field]); len(got) != k.previous+1 || !reflect.DeepEqual(got[k.previous], any(part)) {
				t.Errorf("the asset has %v", got)
			}
			if text(after["dateModified"]) <= text(before["dateModified"]) {
				t.Error("dateModified has not moved")
			}
			listed := list(a.do(t, call{method: "GET", path: c.of(k.kind)}).must(t, 200).json["data"])
			if len(listed) != k.previous+1 || !reflect.DeepEqual(listed[k.previous], any(part)) {
				t.Errorf("listed: %v", listed)
			}
			for _, nothing := range []fields{{}, {"id": "x"}} {
				if got := a.as(t, k.key, c, "PATCH", path, nothing).must(t, 200).data(); !reflect.DeepEqual(got, part) {
					t.Errorf("unchanged: %v, want %v", got, part)
				}
			}
			if again := a.read(t, c.id).data(); !reflect.DeepEqual(again, after) {
				t.Errorf("a change that changes nothing: %v", again)
			}
			got := a.as(t, k.key, c, "PATCH", path, k.patch).must(t, 200).data()
			if at(got, k.changed) != at(map[string]any(k.patch), k.changed) || got["id"] != part["id"] {
				t.Errorf("changed: %v", got)
			}
			if now := a.read(t, c.id).data(); text(now["dateModified"]) <= text(after["dateModified"]) ||
				now["date"] != before["date"] {
				t.Errorf("after the change: %v", now)
			}
			a.as(t, k.key, c, "PATCH", path, fields{"colour": 1}).fails(t, 400, "body/colour")
			a.as(t, k.key, c, "POST", c.of(k.kind), fields{"colour": 1, "id": []any{}}).must(t, 400)
			if got := a.do(t, call{method: "HEAD", path: path}).must(t, 200); got.text != "" {
				t.Errorf("HEAD: %q", got.text)
			}
		})
	}
}

// plain is a value as it comes back through JSON.
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

func testPartRefusals(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	draft := a.create(t, validAsset())
	process, _ := a.add(t, "concierge", c, "related_processes", validProcess())
	item, decision, document := c.of("items")+"/"+text(at(c.data(), "items.0.id")),
		c.of("decisions")+"/"+text(at(c.data(), "decisions.0.id")),
		c.of("documents")+"/"+text(at(c.data(), "documents.0.id"))
	before := a.read(t, c.id).text
	missing := strings.Repeat("0", 32)
	plainText := map[string]string{"Content-Type": "text/plain"}
	for _, r := range []struct {
		name   string
		call   call
		status int
		places []string
	}{
		{"no asset", call{method: "GET", path: "/assets/" + missing + "/items"}, 404, []string{"url/asset_id"}},
		{"no asset and no key", call{method: "POST", path: "/assets/" + missing + "/items", body: "x",
			header: plainText}, 404, []string{"url/asset_id"}},
		{"no item", call{method: "GET", path: c.of("items") + "/" + missing}, 404, []string{"url/item_id"}},
		{"no item, and a bad one", call{method: "PATCH", path: c.of("items") + "/x", body: "x", header: plainText}, 404,
			[]string{"url/item_id"}},
		{"no decision", call{method: "PATCH", path: c.of("decisions") + "/" + missing, key: "broker", body: "x"}, 404,
			[]string{"url/decision_id"}},
		{"no document", call{method: "PUT", path: c.of("documents") + "/" + missing, key: "broker", body: "x"}, 404,
			[]string{"url/document_id"}},
		{"no process", call{method: "DELETE", path: c.of("related_processes") + "/" + missing}, 404,
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
	} {
		t.Run(r.name, func(t *testing.T) { a.do(t, r.call).fails(t, r.status, r.places...) })
	}
	if after := a.read(t, c.id).text; after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	for _, try := range []struct {
		path  string
		allow string
	}{{c.of("items"), "GET HEAD POST"}, {item, "GET HEAD PATCH"}, {document, "GET HEAD PATCH PUT"},
		{process, "GET HEAD PATCH DELETE"}} {
		got := a.do(t, call{method: "BREW", path: try.path, key: "broker"}).fails(t, 404, "url/method_not_allowed")
		for _, method := range strings.Fields(try.allow) {
			if !strings.Contains(got.header.Get("Allow"), method) {
				t.Errorf("%s: Allow is %q", try.path, got.header.Get("Allow"))
			}
		}
	}
	for _, id := range []string{"%00", "..%2fx", "..", "%ff", strings.ToUpper(text(at(c.data(), "items.0.id"))),
		strings.Repeat("0", 5000)} {
		a.do(t, call{method: "GET", path: c.of("items") + "/" + id}).must(t, 404)
		a.do(t, call{method: "PATCH", path: c.of("items") + "/" + id, key: "broker", token: c.token,
			body: data(fields{})}).must(t, 404)
	}
	for _, path := range []string{item + "/", item + "/unit", c.of("items") + "/", c.of("relatedProcesses"),
		c.of("item")} {
		a.do(t, call{method: "GET", path: path}).fails(t, 404, "url/not_found")
	}
}

func testDocuments(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	path, first := a.add(t, "broker", c, "documents", validDocument())
	if first["author"] != "asset_owner" || first["documentOf"] != "asset" ||
		!timeForm.MatchString(text(first["datePublished"])) || first["dateModified"] != first["datePublished"] {
		t.Errorf("added %v", first)
	}
	newer := validDocument().set("title", "Новий паспорт").set("url", "http://127.0.0.1:8081/get/2?KeyID=%D1%97")
	second := a.as(t, "broker", c, "PUT", path, newer).must(t, 200).data()
	if second["id"] != first["id"] || second["datePublished"] != first["datePublished"] ||
		text(second["dateModified"]) <= text(first["dateModified"]) || second["url"] != newer["url"] {
		t.Errorf("the newer version is %v, the former %v", second, first)
	}
	after := a.read(t, c.id).data()
	if got := list(after["documents"]); len(got) != 3 || !reflect.DeepEqual(got[1:], []any{first, second}) {
		t.Errorf("the asset has %v", got)
	}
	a.as(t, "broker", c, "PUT", path, newer).must(t, 200)
	if again := a.read(t, c.id).data(); !reflect.DeepEqual(again, after) {
		t.Errorf("the same version once more: %v", again)
	}
	read := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	if !reflect.DeepEqual(list(read["previousVersions"]), []any{first}) {
		t.Errorf("previousVersions are %v", read["previousVersions"])
	}
	for _, try := range []struct {
		query string
		want  int
	}{{"", 2}, {"?all=", 2}, {"?all=yes", 3}} {
		if got := list(a.do(t, call{method: "GET", path: c.of("documents") + try.query}).must(t, 200).
			json["data"]); len(got) != try.want {
			t.Errorf("%q: %d documents, want %d: %v", try.query, len(got), try.want, got)
		}
	}
	changed := a.as(t, "broker", c, "PATCH", path, fields{"title": "Паспорт", "url": "https://elsewhere.example/",
		"author": "me", "datePublished": "2020-01-01"}).must(t, 200).data()
	if changed["title"] != "Паспорт" || changed["url"] != second["url"] || changed["author"] != "asset_owner" ||
		changed["datePublished"] != first["datePublished"] {
		t.Errorf("changed: %v", changed)
	}
	_, seen := a.add(t, "broker", c, "documents", fields{"documentType": "x_dgfAssetFamiliarization",
		"title": "Оглядини", "accessDetails": "щодня", "documentOf": "item", "relatedItem": at(c.data(), "items.0.id")})
	if seen["url"] != nil || seen["relatedItem"] != at(c.data(), "items.0.id") {
		t.Errorf("to be seen: %v", seen)
	}
	a.do(t, call{method: "GET", path: path + "?download=nothing"}).fails(t, 404, "url/download")
}

// testConcurrentParts adds parts from many clients at once: none is lost.
func testConcurrentParts(t *testing.T, a api) {
	const clients = 30
	c := a.publish(t, validAsset())
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				got := a.as(t, "broker", c, "POST", c.of("documents"), validDocument())
				if got.status == 409 || got.status == 503 { // others were faster for too long: the client repeats
					continue
				}
				if got.status != 201 {
					t.Errorf("answered %d: %s", got.status, got.text)
				}
				return
			}
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for _, document := range list(a.read(t, c.id).data()["documents"]) {
		ids[text(object(document)["id"])] = true
	}
	if len(ids) != clients+1 {
		t.Errorf("there are %d documents, want %d", len(ids), clients+1)
	}
}
