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

// testParts adds and changes parts of each kind. The asset and the listings must have the same parts
// (docs/contract.md, "Parts").
// Promises: ids, part-moves
func testParts(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	for _, k := range []struct {
		kind, key string // key: API key that may write the part
		field     string // field of the asset that has the parts
		sent      fields
		patch     fields
	}{
		{"items", "broker", "items", fields(validItem()).set("description", "друге"), fields{"quantity": json.Number("7")}},
		{"decisions", "broker", "decisions",
			fields{"decisionDate": "2026-11-21T12:00:00.000000+02:00", "decisionID": "1637-11"},
			fields{"title": "про приватизацію"}},
		{"documents", "broker", "documents", validDocument(), fields{"title_en": "passport"}},
		{"related_processes", "concierge", "relatedProcesses", validProcess(), fields{"identifier": "UA-LR-1"}},
	} {
		t.Run(k.kind, func(t *testing.T) {
			moved := text(a.read(t, c.id).data()["dateModified"])
			check := func(part map[string]any, has fields) {
				for name, value := range has {
					if name != "id" {
						equal(t, name, plain(t, part[name]), plain(t, value))
					}
				}
				now := a.read(t, c.id).data()
				listed := a.do(t, call{method: "GET", path: c.of(k.kind)}).must(t, 200)
				for _, all := range [][]any{list(now[k.field]), list(listed.json["data"])} {
					equal(t, "last part", all[len(all)-1], any(part))
				}
				if got := text(now["dateModified"]); got <= moved {
					t.Errorf("got dateModified %s, want it later than %s", got, moved)
				}
				moved = text(now["dateModified"])
			}
			path, part := a.add(t, k.key, c, k.kind, k.sent)
			check(part, k.sent)
			changed := a.as(t, k.key, c, "PATCH", path, k.patch).must(t, 200).data()
			equal(t, "id of the changed part", changed["id"], part["id"])
			check(changed, k.patch)
			a.as(t, "broker3", c, "PATCH", path, k.patch).fails(t, 403, "url/permission")
			a.as(t, "", c, "PATCH", path, k.patch).fails(t, 401, "header/Authorization")
			a.do(t, call{method: "BREW", path: path, key: k.key}).fails(t, 404, "url/method_not_allowed")
		})
	}
	for _, id := range []string{"%00", "..%2fx", "..", "%ff", strings.Repeat("0", 5000)} {
		a.do(t, call{method: "GET", path: c.of("items") + "/" + id}).must(t, 404)
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

// testDocuments adds a document, and replaces it by a new version. The asset must have both versions, and each
// listing must have the versions that its query asks for.
// Promises: document-versions
func testDocuments(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	path, first := a.add(t, "broker", c, "documents", validDocument())
	newer := validDocument().set("title", "Новий паспорт").set("url", "http://127.0.0.1:8081/get/2?KeyID=%D1%97")
	second := a.as(t, "broker", c, "PUT", path, newer).must(t, 200).data()
	if second["id"] != first["id"] || second["datePublished"] != first["datePublished"] ||
		text(second["dateModified"]) <= text(first["dateModified"]) || second["url"] != newer["url"] {
		t.Errorf("got the new version %v, want the id and datePublished of %v and a later dateModified", second, first)
	}
	equal(t, "documents", list(a.read(t, c.id).data()["documents"]), append(list(c.data()["documents"]), first, second))
	for query, want := range map[string]int{"": 2, "?all=1": 3} {
		listed := a.do(t, call{method: "GET", path: c.of("documents") + query}).must(t, 200)
		equal(t, "number of documents "+query, len(list(listed.json["data"])), want)
	}
	read := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	equal(t, "previousVersions", list(read["previousVersions"]), []any{first})
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
