package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	idForm        = regexp.MustCompile(`^[0-9a-f]{32}$`)
	uuid4Form     = regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	timeForm      = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d$`)
	readableForm  = regexp.MustCompile(`^UA-AR-DGF-\d{4}-\d\d-\d\d-\d{6}$`)
	infoTitle     = "Інформація про оприлюднення інформаційного повідомлення"
	infoURL       = "https://prozorro.sale/info/ssp_details"
	generatedKeys = []string{"id", "assetID", "date", "dateModified", "owner", "status", "documents"}
)

// current returns the API version that appears in links: 2.5 if a.version is "0".
func (a api) current() string {
	if a.version == "0" {
		return "2.5"
	}
	return a.version
}

// testCreate checks each field that the registry generates, and that all other fields come back as they were sent
// (docs/contract.md, "Create").
// Promises: ids, placeholders
func testCreate(t *testing.T, a api) {
	sent := validAsset()
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(sent)}).must(t, 201)
	a.checkGenerated(t, got)
	a.checkAccess(t, got)
	checkInfoDocument(t, got.data())
	d := got.data()
	if item := text(at(d, "items.0.id")); !idForm.MatchString(item) {
		t.Errorf("got %q for the item's placeholder, want an id", item)
	}
	if decision := object(at(d, "decisions.0")); !idForm.MatchString(text(decision["id"])) ||
		decision["decisionOf"] != "asset" {
		t.Errorf("got the decision %v, want an id and decisionOf asset", decision)
	}
	rest := fields(d).set("items.0.id", "0").without("decisions.0.id").without("decisions.0.decisionOf")
	for _, name := range generatedKeys {
		rest = rest.without(name)
	}
	equal(t, "fields that were sent", map[string]any(rest), map[string]any(sent))
	second := a.create(t, sent)
	if second.id == d["id"] || second.token == text(at(got.json["access"], "token")) ||
		second.data()["assetID"] == d["assetID"] || text(second.data()["dateModified"]) <= text(d["dateModified"]) {
		t.Errorf("got %v after %v, want another id, token and assetID and a later dateModified", second.data(), d)
	}
}

// checkGenerated checks the generated fields of a new asset and its Location.
func (a api) checkGenerated(t *testing.T, got answer) {
	t.Helper()
	d := got.data()
	id := text(d["id"])
	if !uuid4Form.MatchString(id) {
		t.Errorf("got id %q, want a UUID4 as 32 hex characters", id)
	}
	equal(t, "Location", got.header.Get("Location"), a.base+"/api/"+a.current()+"/assets/"+id)
	if !readableForm.MatchString(text(d["assetID"])) {
		t.Errorf("got assetID %q, want UA-AR-DGF, a date and a number", d["assetID"])
	}
	if d["status"] != "draft" || d["owner"] != "broker" {
		t.Errorf("got status %v and owner %v, want draft and broker", d["status"], d["owner"])
	}
	for _, name := range []string{"date", "dateModified"} {
		if !timeForm.MatchString(text(d[name])) {
			t.Errorf("got %s %v, want a time with microseconds and a zone", name, d[name])
		}
	}
	if text(d["date"]) > text(d["dateModified"]) {
		t.Errorf("got date %v, want it at or before dateModified %v", d["date"], d["dateModified"])
	}
}

// checkAccess checks the tokens of a new asset. Version 2.4 has no transfer token.
func (a api) checkAccess(t *testing.T, got answer) {
	t.Helper()
	access := object(got.json["access"])
	if !idForm.MatchString(text(access["token"])) {
		t.Error("got another owner token than 32 hex characters")
	}
	if transfer := text(access["transfer"]); idForm.MatchString(transfer) != (a.version != "2.4") {
		t.Errorf("got a transfer token of %d characters in version %s, want 32, and none in 2.4", len(transfer), a.version)
	}
}

// checkInfoDocument checks the document that the registry itself adds to a new asset.
func checkInfoDocument(t *testing.T, d map[string]any) {
	t.Helper()
	if got := len(list(d["documents"])); got != 1 {
		t.Fatalf("got %d documents, want 1: %v", got, d["documents"])
	}
	document := object(at(d, "documents.0"))
	for _, field := range []struct{ name, want string }{
		{"documentType", "informationDetails"}, {"documentOf", "asset"}, {"title", infoTitle}, {"url", infoURL},
	} {
		equal(t, "documents.0."+field.name, document[field.name], any(field.want))
	}
	if !idForm.MatchString(text(document["id"])) || !timeForm.MatchString(text(document["datePublished"])) ||
		!timeForm.MatchString(text(document["dateModified"])) {
		t.Errorf("got the document %v, want an id and two times", document)
	}
}

// testRead reads an asset with and without a key, and asks for assets that do not exist.
// Promises: tokens-once
func testRead(t *testing.T, a api) {
	c := a.create(t, validAsset())
	got := a.read(t, c.id).must(t, 200)
	equal(t, "asset that was read", got.json, map[string]any{"data": c.data()})
	head := a.do(t, call{method: "HEAD", path: "/assets/" + c.id}).must(t, 200)
	if head.text != "" || head.header.Get("Content-Length") != fmt.Sprint(len(got.text)) {
		t.Errorf("got the body %q and Content-Length %s for HEAD, want none and %d", head.text,
			head.header.Get("Content-Length"), len(got.text))
	}
	for _, key := range []string{"broker", "nobody"} { // the key must make no difference to a read
		again := a.do(t, call{method: "GET", path: "/assets/" + c.id, key: key}).must(t, 200)
		equal(t, "asset read with the key "+key, again.text, got.text)
	}
	for _, id := range []string{strings.Repeat("0", 32), "x", strings.ToUpper(c.id), c.id[1:], c.id + "0", "%00",
		"..%2fx"} {
		a.read(t, id).must(t, 404)
	}
	a.read(t, strings.Repeat("0", 32)).fails(t, 404, "url/asset_id")
}

// testChange changes an asset by PATCH (docs/contract.md, "Change" and "Merge").
// Promises: tokens-once, merge
func testChange(t *testing.T, a api) {
	c := a.create(t, validAsset())
	got := a.patch(t, c, fields{"description": "новий опис"}).must(t, 200)
	want := fields(c.data()).set("description", "новий опис").set("dateModified", got.data()["dateModified"])
	equal(t, "answer to a change", got.json, map[string]any{"data": map[string]any(want)})
	if before, after := text(c.data()["dateModified"]), text(got.data()["dateModified"]); after <= before {
		t.Errorf("got dateModified %s, want it later than %s", after, before)
	}
	equal(t, "asset after a change", a.read(t, c.id).must(t, 200).text, got.text)
	for _, try := range []struct {
		name string
		same any
	}{
		{"no field", fields{}},
		{"the value that it has", fields{"description": "новий опис"}},
		{"fields that only the registry sets", fields{"owner": "me", "assetID": "x", "id": "x", "documents": []any{},
			"date": "2020-01-01T00:00:00+00:00"}},
	} {
		equal(t, "asset after a change of "+try.name, a.patch(t, c, try.same).must(t, 200).text, got.text)
	}
	a.checkMerge(t, c)
	pending := a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	if pending.data()["status"] != "pending" || text(pending.data()["date"]) <= text(c.data()["date"]) {
		t.Errorf("got %v, want the status pending and a later date", pending.data())
	}
	start := text(at(pending.data(), "rectificationPeriod.startDate"))
	if timeForm.MatchString(start) != (a.version != "2.4") {
		t.Errorf("got rectificationPeriod.startDate %q, want a time in all versions but 2.4", start)
	}
}

// checkMerge checks how a PATCH merges objects, nulls and lists.
func (a api) checkMerge(t *testing.T, c created) {
	t.Helper()
	contact := func(f fields) fields { return fields{"assetCustodian": fields{"contactPoint": f}} }
	nested := object(at(a.patch(t, c, contact(fields{"email": "a@example.com"})).must(t, 200).data(),
		"assetCustodian.contactPoint"))
	if nested["email"] != "a@example.com" || nested["telephone"] != "0440000000" {
		t.Errorf("got the contact %v, want the new mail and the old telephone", nested)
	}
	cleared := object(at(a.patch(t, c, contact(fields{"email": nil})).must(t, 200).data(),
		"assetCustodian.contactPoint"))
	if _, there := cleared["email"]; there {
		t.Errorf("got the contact %v after null, want no mail", cleared)
	}
	got := a.patch(t, c, fields{"items": []any{fields{"quantity": 2}}}).must(t, 200).data()
	equal(t, "changed quantity", at(got, "items.0.quantity"), any(json.Number("2")))
	equal(t, "id of the changed item", at(got, "items.0.id"), at(c.data(), "items.0.id"))
	equal(t, "unit of the changed item", at(got, "items.0.unit.code"), any("code"))
}

// testVersions checks that version 2.4 neither shows nor changes the fields that only version 2.5 has.
// Promises: versions
func testVersions(t *testing.T, a api) {
	points := []any{fields{"name": "другий", "email": "b@example.com"}}
	with := validAsset().set("assetCustodian.additionalContactPoints", points)
	old, recent := api{a.base, "2.4"}, api{a.base, "2.5"}
	c := recent.create(t, with)
	if a.version == "2.4" {
		a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(with)}).
			fails(t, 400, "body/assetCustodian.additionalContactPoints")
		a.patch(t, c, fields{"rectificationPeriod": fields{"startDate": "2026-01-01T00:00:00+00:00"}}).
			fails(t, 400, "body/rectificationPeriod")
		recent.patch(t, c, fields{"status": "pending"}).must(t, 200)
		got := a.patch(t, c, fields{"description": "через 2.4"}).must(t, 200)
		for _, d := range []map[string]any{got.data(), a.read(t, c.id).data()} {
			if at(d, "assetCustodian.additionalContactPoints") != nil || d["rectificationPeriod"] != nil {
				t.Errorf("got %v in 2.4, want no additionalContactPoints and no rectificationPeriod", d)
			}
		}
	} else {
		equal(t, "mail of the additional contact",
			at(a.create(t, with).data(), "assetCustodian.additionalContactPoints.0.email"), any("b@example.com"))
	}
	if d := recent.read(t, c.id).data(); at(d, "assetCustodian.additionalContactPoints.0.name") != "другий" {
		t.Errorf("got %v after a change in 2.4, want the contact points that 2.4 does not show", d)
	}
	if d := old.read(t, c.id).data(); at(d, "assetCustodian.name") != "Фонд" {
		t.Errorf("got %v in 2.4, want the custodian's name", d)
	}
}

// testDecimals sends quantities in many forms, and checks in which form they come back or that they are refused.
// Promises: quantity
func testDecimals(t *testing.T, a api) {
	for _, try := range []struct {
		sent string
		want string
	}{
		{"5.0001", "5.0001"}, {"0.1", "0.1"}, {"123456789012345678.5", "123456789012345678.5"}, {"1", "1"}, {"0", "0"},
		{"-3", "-3"},
		{"1.50", "1.5"}, {"2.00005", "2.0001"}, {"2.00004", "2"}, {"1e3", "1000"}, {"12.5e-1", "1.25"},
		{"0.30000000000000004", "0.3"},
		{"999999999999999999999999999999.9999", "999999999999999999999999999999.9999"}, {`"7.25"`, "7.25"},
	} {
		c := a.create(t, validAsset().set("items.0.quantity", json.RawMessage(try.sent)))
		for _, got := range []answer{c.answer, a.read(t, c.id)} {
			if at(got.data(), "items.0.quantity") != json.Number(try.want) {
				t.Errorf("quantity %s: got %v, want %s", try.sent, at(got.data(), "items.0.quantity"), try.want)
			}
		}
	}
	for _, sent := range []string{`"x"`, `""`, `true`, `[1]`, `{}`, `1e999999999`, `"NaN"`, `"Infinity"`,
		`12345678901234567890123456789012345`} {
		a.do(t, call{method: "POST", path: "/assets", key: "broker",
			body: data(validAsset().set("items.0.quantity", json.RawMessage(sent)))}).fails(t, 400,
			"body/items.0.quantity")
	}
}

func testText(t *testing.T, a api) {
	for _, title := range []string{"їжак 𐍈 👩‍👩‍👧 e\u0301", "<script>&\"'\\/", "\u2028\u2029\u0001\u0007\t\n",
		"\u202ertl", "  blanks  ", strings.Repeat("щ", 5_000)} {
		c := a.create(t, validAsset().set("title", title).set("description", strings.Repeat(title, 20)))
		data := a.read(t, c.id).data()
		if got := text(data["title"]); got != title {
			t.Errorf("got the title %.40q, want %.40q", got, title)
		}
		if got, want := text(data["description"]), strings.Repeat(title, 20); got != want {
			t.Errorf("got the description %.40q, want %.40q", got, want)
		}
	}
	a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset().set("title", "x\u0000"))}).
		fails(t, 400, "body/title").says(t, "U+0000")
}

// testTimes sends times in many forms, and checks in which form they come back.
// Promises: times
func testTimes(t *testing.T, a api) {
	for _, try := range []struct {
		sent string
		want string
	}{
		{"2026-11-20T12:00:00.123456+02:00", "2026-11-20T12:00:00.123456+02:00"},
		{"2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000000+00:00"},
		{"2026-11-20T12:00:00.5-03:30", "2026-11-20T12:00:00.500000-03:30"},
		{"2026-11-20T12:00:00", "2026-11-20T12:00:00.000000+00:00"},
		{"2026-11-20", "2026-11-20T00:00:00.000000+00:00"},
		{"2026-11-20T12:00:00.123456789+00:00", "2026-11-20T12:00:00.123456+00:00"},
	} {
		c := a.create(t, validAsset().set("decisions.0.decisionDate", try.sent))
		if got := at(c.data(), "decisions.0.decisionDate"); got != try.want {
			t.Errorf("decisionDate %s: got %v, want %s", try.sent, got, try.want)
		}
	}
	before := time.Now().Add(-time.Second)
	c := a.create(t, validAsset())
	for _, name := range []string{"date", "dateModified"} {
		got, err := time.Parse("2006-01-02T15:04:05.000000-07:00", text(c.data()[name]))
		if err != nil || got.Before(before) || got.After(time.Now().Add(time.Second)) {
			t.Errorf("got %s %v, %v, want the time of the creation", name, c.data()[name], err)
		}
	}
}

// testReplace replaces an asset with PUT. Fields that the request does not have must be gone.
// Promises: all-faults
func testReplace(t *testing.T, a api) {
	c := a.create(t, validAsset().set("title_en", "premises"))
	put := func(f any) answer {
		return a.do(t, call{method: "PUT", path: "/assets/" + c.id, key: "broker", token: c.token, body: data(f)})
	}
	got := put(validAsset().set("title", "інша назва")).must(t, 200)
	if got.data()["title"] != "інша назва" || got.data()["title_en"] != nil || got.data()["status"] != "draft" {
		t.Errorf("got %v, want the new title, no title_en and the status draft", got.data())
	}
	put(validAsset().without("title").without("description")).fails(t, 400, "body/title", "body/description")
}

// testConcurrentChanges starts fifty clients that change one asset at the same time, each a different item. Every
// change must be in the asset at the end.
func testConcurrentChanges(t *testing.T, a api) {
	const clients = 50
	items := make([]any, clients)
	for i := range items {
		items[i] = at(map[string]any(validAsset()), "items.0")
	}
	c := a.create(t, validAsset().set("items", items))
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			patch := make([]any, clients)
			for j := range patch {
				patch[j] = fields{}
			}
			patch[i] = fields{"description": fmt.Sprintf("changed by %d", i)}
			for {
				got := a.patch(t, c, fields{"items": patch})
				// Another write won: the client repeats its request.
				if got.status == 409 || got.status == 503 {
					continue
				}
				if got.status != 200 {
					t.Errorf("client %d: got %d %s, want 200", i, got.status, got.text)
				}
				return
			}
		})
	}
	wg.Wait()
	d := a.read(t, c.id).data()
	for i := range clients {
		equal(t, fmt.Sprintf("item of client %d", i), at(d, fmt.Sprintf("items.%d.description", i)),
			any(fmt.Sprintf("changed by %d", i)))
	}
}

// testPresentation checks pretty and JSONP answers, and the request id
// (docs/contract.md, "Requests and answers").
// Promises: pretty
func testPresentation(t *testing.T, a api) {
	c := a.create(t, validAsset())
	post := func(query string, body map[string]any) string {
		return a.do(t, call{method: "POST", path: "/assets" + query, key: "broker", body: body}).must(t, 201).text
	}
	withOptions := data(validAsset())
	withOptions["options"] = fields{"pretty": true}
	for _, pretty := range []struct{ name, got, want string }{
		{"GET with opt_pretty", a.do(t, call{method: "GET", path: "/assets/" + c.id + "?opt_pretty=1"}).must(t, 200).
			text,
			"{\n    \"data\": {\n        \""},
		{"GET with opt_pretty=0", a.do(t, call{method: "GET", path: "/assets/" + c.id + "?opt_pretty=0"}).must(t, 200).text,
			"{\n    \"data\": {\n        \""},
		{"POST with opt_pretty", post("?opt_pretty=no", data(validAsset())), "{\n    "},
		{"POST with options.pretty", post("", withOptions), "{\n    "},
	} {
		if !strings.HasPrefix(pretty.got, pretty.want) {
			t.Errorf("%s: got %s, want indented JSON", pretty.name, pretty.got)
		}
	}
	got := a.do(t, call{method: "GET", path: "/assets/" + c.id + "?opt_jsonp=show"})
	kind := got.header.Get("Content-Type")
	if got.status == 503 && strings.Contains(got.text, "relays neither scripts nor downloads") {
		t.Log("this mirror has no drafts, and relays no scripts")
	} else if got.status != 200 || kind != "application/javascript; charset=utf-8" ||
		!strings.HasPrefix(got.text, `show({"data":`) || !strings.HasSuffix(got.text, "});") {
		t.Errorf("opt_jsonp: got %d, %s and %s, want 200 and a call of show", got.status, kind, got.text)
	}
	if got := post("?opt_jsonp=show", data(validAsset())); strings.Contains(got, "show") {
		t.Errorf("POST with opt_jsonp: got %s, want plain JSON, because the answer holds tokens", got)
	}
	named := a.do(t, call{method: "GET", path: "/assets/" + c.id}.with("X-Request-ID", "mine-1")).must(t, 200)
	equal(t, "X-Request-ID", named.header.Get("X-Request-ID"), "mine-1")
}
