package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// post creates an asset with the key "broker". A string is sent unchanged as the body.
func (a api) post(t *testing.T, body any) answer {
	t.Helper()
	return a.do(t, call{method: "POST", path: "/assets", key: "broker", body: body})
}

// testBadFields checks that the answer names each bad field (docs/contract.md, "Field rules").
// Promises: all-faults, rogue, part-ids
func testBadFields(t *testing.T, a api) {
	valid := validAsset()
	for _, c := range []struct {
		name   string
		sent   fields
		places []string
	}{
		{"no field at all", fields{}, []string{"body/assetType", "body/title", "body/description",
			"body/assetCustodian"}},
		{"another type", valid.set("assetType", "castle"), []string{"body/assetType"}},
		{"no title", valid.without("title"), []string{"body/title"}},
		{"a title of null", valid.set("title", nil), []string{"body/title"}},
		{"an empty title", valid.set("title", ""), []string{"body/title"}},
		{"a title in a list", valid.set("title", []any{"x"}), []string{"body/title"}},
		{"a title in an object", valid.set("title", fields{}), []string{"body/title"}},
		{"an unknown field", valid.set("colour", "blue"), []string{"body/colour"}},
		{"an unknown field below", valid.set("items.0.unit.colour", "blue"), []string{"body/items.0.unit.colour"}},
		{"no unit", valid.without("items.0.unit"), []string{"body/items.0.unit"}},
		{"no code of the unit", valid.set("items.0.unit", fields{"name": "x"}), []string{"body/items.0.unit.code"}},
		{"no quantity", valid.without("items.0.quantity"), []string{"body/items.0.quantity"}},
		{"an unknown scheme", valid.set("items.0.classification.scheme", "X"),
			[]string{"body/items.0.classification.scheme"}},
		{"an unknown code", valid.set("items.0.classification.id", "00000000-0"),
			[]string{"body/items.0.classification.id"}},
		{"a code too coarse", valid.set("items.0.classification.id", "06100000-3"),
			[]string{"body/items.0.classification.id"}},
		{"a date that is none", valid.set("decisions.0.decisionDate", "yesterday"),
			[]string{"body/decisions.0.decisionDate"}},
		{"a custodian that is a text", valid.set("assetCustodian", "x"), []string{"body/assetCustodian"}},
		{"an unknown register", valid.set("assetCustodian.identifier.scheme", "X"),
			[]string{"body/assetCustodian.identifier.scheme"}},
		{"neither telephone nor mail", valid.without("assetCustodian.contactPoint.telephone"),
			[]string{"body/assetCustodian.contactPoint.email"}},
		{"a mail that is none", valid.set("assetCustodian.contactPoint.email", "x"),
			[]string{"body/assetCustodian.contactPoint.email"}},
		{"a URI with a script", valid.set("assetCustodian.identifier.uri", "javascript:alert(1)"),
			[]string{"body/assetCustodian.identifier.uri"}},
		{"an unknown mode", valid.set("mode", "fast"), []string{"body/mode"}},
		{"an unknown status", valid.set("status", "foo"), []string{"body/status"}},
		{"several bad fields",
			valid.without("title").set("colour", 1).set("items.0.quantity", "x").set("items.0.unit", fields{}).
				set("assetCustodian.contactPoint", fields{"name": "x"}),
			[]string{"body/title", "body/colour", "body/items.0.quantity", "body/items.0.unit.code",
				"body/assetCustodian.contactPoint.email"},
		},
		{"the same id twice",
			valid.set("items", []any{
				valid.set("items.0.id", strings.Repeat("a", 32))["items"].([]any)[0],
				valid.set("items.0.id", strings.Repeat("a", 32))["items"].([]any)[0],
			}),
			[]string{"body/items"},
		},
		{"the same id of two decisions", valid.set("decisions", []any{
			fields{"id": strings.Repeat("a", 32), "decisionDate": "2026-11-21", "decisionID": "1"},
			fields{"id": strings.Repeat("a", 32), "decisionDate": "2026-11-21", "decisionID": "2"},
		}), []string{"body/decisions"}},
	} {
		t.Run(c.name, func(t *testing.T) { a.post(t, data(c.sent)).fails(t, 400, c.places...) })
	}
}

// testBadBodies sends bodies that are no JSON, compressed or too large. The registry must refuse them
// (docs/contract.md, "Requests and answers" and "Limits").
func testBadBodies(t *testing.T, a api) {
	c := a.create(t, validAsset())
	for _, body := range []string{"", "title=x", `{"data":{"title":"` + "\xff\xfe" + `"}}`, `{"data":[]}`} {
		a.post(t, body).fails(t, 400, "body/data")
		for _, method := range []string{"PATCH", "PUT"} {
			a.do(t, call{method: method, path: "/assets/" + c.id, key: "broker", token: c.token, body: body}).
				fails(t, 400, "body/data")
		}
	}
	compressed := call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
		with("Content-Encoding", "gzip")
	refused := a.do(t, compressed).fails(t, 415, "header/Content-Encoding")
	equal(t, "Accept-Encoding for a compressed body", refused.header.Get("Accept-Encoding"), "identity")
	for _, size := range []int{10_000_000, 1<<20 + 1} {
		a.post(t, strings.Repeat(" ", size)).fails(t, 413, "body/data")
		a.chunked(t, size)
	}
	equal(t, "dateModified after bad bodies", a.read(t, c.id).must(t, 200).data()["dateModified"],
		c.data()["dateModified"])
}

// chunked sends a body of the given size without a Content-Length. The registry must answer with 413.
func (a api) chunked(t *testing.T, size int) {
	t.Helper()
	req, err := http.NewRequest("POST", a.base+"/api/2.5/assets", io.LimitReader(zeros{}, int64(size)))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("broker", "")
	req.Header.Set("Content-Type", "application/json")
	// Use a new connection: the registry may be closing the connection on which it refused a body.
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	resp, err := own.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("got %d for a body without a Content-Length, want 413", resp.StatusCode)
	}
}

// zeros is a reader that never ends and returns only the character 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// testBadQueries sends bad query parameters of the feed (docs/contract.md, "Pages" and "Offsets").
func testBadQueries(t *testing.T, a api) {
	a.do(t, call{method: "GET", path: "/assets?limit=0"}).fails(t, 400, "querystring/limit")
	a.do(t, call{method: "GET", path: "/assets?offset=2026-13-01"}).fails(t, 404, "querystring/offset")
	a.do(t, call{method: "GET", path: "/assets?opt_jsonp=alert(1)"}).fails(t, 400, "querystring/opt_jsonp")
	a.do(t, call{method: "GET", path: "/assets?offset=%zz"}).fails(t, 400, "querystring/query")
	a.do(t, call{method: "GET", path: "/assets?opt_fields=%ff"}).fails(t, 400, "querystring/query")
}

// testNothingChanges sends bad changes. Some of them have valid parts, too. The registry must refuse each change
// completely.
func testNothingChanges(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	before := a.read(t, c.id).must(t, 200)
	for _, bad := range []fields{
		{"title": nil}, {"title": ""}, {"colour": 1}, {"title": "x", "colour": 1},
		{"items": []any{fields{"quantity": "x"}}}, {"items": []any{}},
		{"status": "foo", "title": "x"}, {"status": "draft"}, {"status": "active"},
		{"assetCustodian": "x", "title": "x"}, {"description": []any{}},
	} {
		if got := a.patch(t, c, bad); got.status != 400 && got.status != 403 || got.json["status"] != "error" {
			t.Errorf("%v: got %d %s, want 400 or 403", bad, got.status, got.text)
		}
	}
	equal(t, "asset after refused changes", a.read(t, c.id).must(t, 200).text, before.text)
}

// testOrder sends requests with several faults. The answer must name the fault that is checked first
// (docs/contract.md, "Order of checks").
func testOrder(t *testing.T, a api) {
	c, missing := a.create(t, validAsset()), strings.Repeat("0", 32)
	text := map[string]string{"Content-Type": "text/plain"}
	for _, step := range []struct {
		name   string
		call   call
		status int
		place  string
	}{
		{"the asset comes before the type", call{method: "PATCH", path: "/assets/" + missing, body: "x", header: text},
			404,
			"url/asset_id"},
		{"the asset comes before the key", call{method: "PATCH", path: "/assets/" + missing, body: "x"}, 404,
			"url/asset_id"},
		{"the asset comes before the body", call{method: "PATCH", path: "/assets/" + missing, key: "broker", body: "x"},
			404, "url/asset_id"},
		{"the type comes before the key", call{method: "PATCH", path: "/assets/" + c.id, body: "x", header: text}, 415,
			"header/Content-Type"},
		{"the key comes before the body", call{method: "PATCH", path: "/assets/" + c.id, body: "x"}, 401,
			"header/Authorization"},
		{"the type comes before the part", call{method: "PATCH", path: "/assets/" + c.id + "/items/" + missing, body: "x",
			header: text}, 415, "header/Content-Type"},
		{"the key comes before the part", call{method: "PUT", path: "/assets/" + c.id + "/documents/" + missing, body: "x"},
			401, "header/Authorization"},
		{"the body comes before the token", call{method: "PATCH", path: "/assets/" + c.id, key: "broker", body: "x"},
			400, "body/data"},
		{"the token comes before the fields", call{method: "PATCH", path: "/assets/" + c.id, key: "broker",
			body: data(fields{"colour": 1})}, 403, "body/data"},
		{"creation: the type comes first", call{method: "POST", path: "/assets", body: "x", header: text}, 415,
			"header/Content-Type"},
		{"creation: then the key", call{method: "POST", path: "/assets", body: "x"}, 401, "header/Authorization"},
		{"creation: then the body", call{method: "POST", path: "/assets", key: "broker1", body: "x"}, 400, "body/data"},
		{"creation: then the asset type", call{method: "POST", path: "/assets", key: "broker1",
			body: data(validAsset().set("assetType", "x"))}, 400, "body/assetType"},
		{"creation: then the accreditation", call{method: "POST", path: "/assets", key: "broker1",
			body: data(validAsset().without("title"))}, 403, "body/accreditation"},
		{"creation: then the fields", call{method: "POST", path: "/assets", key: "broker3t",
			body: data(validAsset().without("title"))}, 400, "body/title"},
		{"creation: then the test mode", call{method: "POST", path: "/assets", key: "broker3t",
			body: data(validAsset())}, 403,
			"body/mode"},
	} {
		t.Run(step.name, func(t *testing.T) { a.do(t, step.call).fails(t, step.status, step.place) })
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp",
		"application/json, text/plain", "application/merge-patch+json", "/"} {
		got := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset()),
			header: map[string]string{"Content-Type": kind}}).fails(t, 415, "header/Content-Type")
		if !strings.Contains(got.text, "Content-Type header should be one of ['application/json']") {
			t.Errorf("Content-Type %q: got %s, want it to name the accepted type", kind, got.text)
		}
	}
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON"} {
		a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset()),
			header: map[string]string{"Content-Type": kind}}).must(t, 201)
	}
}

// testUnknown sends unknown paths, methods and ids (docs/contract.md, "Routes").
// Promises: version-unknown
func testUnknown(t *testing.T, a api) {
	c := a.create(t, validAsset())
	for _, path := range []string{"/nowhere", "/api", "/api/2.5", "/api/2.6/assets", "/api/2/assets", "/api/2.5/asset",
		"/api/2.5/assets/", "/api/2.5/assets/" + c.id + "/", "/api/2.5/assets/" + c.id + "/nothing", "//api/2.5/assets",
		"/API/2.5/assets"} {
		for _, method := range []string{"GET", "POST", "PATCH"} {
			a.do(t, call{method: method, path: path}).fails(t, 404, "url/not_found")
		}
	}
	for _, try := range []struct{ method, path, allow string }{
		{"POST", "/assets/" + c.id, "DELETE, GET, HEAD, PATCH, PUT"},
		{"PATCH", "/assets", "GET, HEAD, POST"}, {"BREW", "/assets", "GET, HEAD, POST"},
	} {
		got := a.do(t, call{method: try.method, path: try.path, key: "broker"}).fails(t, 404, "url/method_not_allowed")
		for _, method := range strings.Split(try.allow, ", ") {
			if allow := got.header.Get("Allow"); !strings.Contains(allow, method) {
				t.Errorf("%s %s: got Allow %q, want it with %s", try.method, try.path, allow, method)
			}
		}
	}
	missing := strings.Repeat("0", 32)
	for _, try := range []struct{ method, path, place string }{
		{"BREW", "/assets/" + missing, "url/asset_id"}, {"POST", "/assets/" + missing, "url/asset_id"},
		{"GET", "/assets/" + missing + "/ownership", "url/asset_id"},
		{"GET", "/assets/" + missing + "/recovery", "url/asset_id"},
		{"DELETE", "/assets/" + missing + "/items/x", "url/asset_id"},
		{"DELETE", "/assets/" + c.id + "/items/" + missing, "url/method_not_allowed"},
		{"PATCH", "/transfers/" + missing, "url/transfer_id"}, {"DELETE", "/transfers/x", "url/transfer_id"},
		{"GET", "/transfers", "url/method_not_allowed"},
		{"GET", "/assets/" + c.id + "/ownership", "url/method_not_allowed"},
	} {
		for _, key := range []string{"", "broker"} {
			a.do(t, call{method: try.method, path: try.path, key: key}).fails(t, 404, try.place)
		}
	}
}

// testStates tries changes of an asset's state, by callers who are allowed to make them and by callers who are not
// (docs/contract.md, "States").
func testStates(t *testing.T, a api) {
	as := func(key string, c created, status string) answer {
		return a.do(t, call{method: "PATCH", path: "/assets/" + c.id, key: key, body: data(fields{"status": status})})
	}
	bare := a.create(t, validAsset().without("items").without("decisions"))
	got := a.patch(t, bare, fields{"status": "pending"}).fails(t, 400, "body/data")
	if !strings.Contains(got.text, "at least one item") {
		t.Errorf("got %s for an asset without items, want it to ask for one", got.text)
	}
	c := a.create(t, validAsset())
	as("concierge", c, "pending").fails(t, 403, "body/data")
	a.patch(t, c, fields{"status": "deleted"}).fails(t, 403, "body/data")
	a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	a.patch(t, c, fields{"status": "draft"}).fails(t, 403, "body/data")
	a.patch(t, c, fields{"status": "deleted"}).fails(t, 403, "body/mode")
	equal(t, "status", as("concierge", c, "verification").must(t, 200).data()["status"], any("verification"))
	a.patch(t, c, fields{"title": "too late"}).fails(t, 403, "body/data")
	as("concierge", c, "active").fails(t, 400, "body/relatedProcesses")
	equal(t, "status", as("administrator", c, "pending").must(t, 200).data()["status"], any("pending"))
	a.patch(t, c, fields{"title": "вчасно"}).must(t, 200)
}
