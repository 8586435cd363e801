package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
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

// current is the version that links name.
func (a api) current() string {
	if a.version == "0" {
		return "2.5"
	}
	return a.version
}

func testCreate(t *testing.T, a api) {
	sent := validAsset()
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(sent)}).must(t, 201)
	d := got.data()
	id := text(d["id"])
	if !uuid4Form.MatchString(id) {
		t.Errorf("id %q is no UUID4 in 32 hex characters", id)
	}
	if want := a.base + "/api/" + a.current() + "/assets/" + id; got.header.Get("Location") != want {
		t.Errorf("Location is %q, want %q", got.header.Get("Location"), want)
	}
	if !readableForm.MatchString(text(d["assetID"])) {
		t.Errorf("assetID is %q", d["assetID"])
	}
	if d["status"] != "draft" || d["owner"] != "broker" {
		t.Errorf("status %v, owner %v", d["status"], d["owner"])
	}
	for _, name := range []string{"date", "dateModified"} {
		if !timeForm.MatchString(text(d[name])) {
			t.Errorf("%s is %v", name, d[name])
		}
	}
	if text(d["date"]) > text(d["dateModified"]) {
		t.Errorf("date %v is after dateModified %v", d["date"], d["dateModified"])
	}
	access := object(got.json["access"])
	if !idForm.MatchString(text(access["token"])) {
		t.Errorf("token is no 32 hex characters")
	}
	if _, transfer := access["transfer"]; transfer != (a.version != "2.4") {
		t.Errorf("there is a transfer token: %v", transfer)
	}
	document := object(at(d, "documents.0"))
	if len(list(d["documents"])) != 1 || document["documentType"] != "informationDetails" ||
		document["documentOf"] != "asset" ||
		document["title"] != infoTitle || document["url"] != infoURL || !idForm.MatchString(text(document["id"])) ||
		!timeForm.MatchString(text(document["datePublished"])) ||
		!timeForm.MatchString(text(document["dateModified"])) {
		t.Errorf("documents are %v", d["documents"])
	}
	if item := text(at(d, "items.0.id")); !idForm.MatchString(item) {
		t.Errorf("the item's placeholder became %q", item)
	}
	if decision := object(at(d, "decisions.0")); !idForm.MatchString(text(decision["id"])) ||
		decision["decisionOf"] != "asset" {
		t.Errorf("decision is %v", decision)
	}
	rest := fields(d).set("items.0.id", "0").without("decisions.0.id").without("decisions.0.decisionOf")
	for _, name := range generatedKeys {
		rest = rest.without(name)
	}
	if !reflect.DeepEqual(map[string]any(rest), map[string]any(sent)) {
		t.Errorf("got  %v\nsent %v", rest, sent)
	}
	second := a.create(t, sent)
	if second.id == id || second.token == text(access["token"]) || second.data()["assetID"] == d["assetID"] ||
		text(second.data()["dateModified"]) <= text(d["dateModified"]) {
		t.Errorf("two assets are not apart: %v and %v", d, second.data())
	}
}

func testRead(t *testing.T, a api) {
	c := a.create(t, validAsset())
	got := a.read(t, c.id).must(t, 200)
	if !reflect.DeepEqual(got.data(), c.data()) || len(got.json) != 1 {
		t.Errorf("read  %v\ncreated %v", got.json, c.json)
	}
	head := a.do(t, call{method: "HEAD", path: "/assets/" + c.id}).must(t, 200)
	if head.text != "" || head.header.Get("Content-Length") != fmt.Sprint(len(got.text)) {
		t.Errorf("HEAD: body %q, Content-Length %q, want %d", head.text, head.header.Get("Content-Length"),
			len(got.text))
	}
	for _, key := range []string{"broker", "nobody"} { // a key is of no matter to a reader
		if again := a.do(t, call{method: "GET", path: "/assets/" + c.id, key: key}).
			must(t, 200); again.text != got.text {
			t.Errorf("with key %s: %s", key, again.text)
		}
	}
	for _, id := range []string{strings.Repeat("0", 32), "x", strings.ToUpper(c.id), c.id[1:], c.id + "0", "%00",
		"..%2fx"} {
		a.read(t, id).must(t, 404)
	}
	a.read(t, strings.Repeat("0", 32)).fails(t, 404, "url/asset_id")
}

func testChange(t *testing.T, a api) {
	c := a.create(t, validAsset())
	got := a.patch(t, c, fields{"description": "новий опис"}).must(t, 200)
	want := fields(c.data()).set("description", "новий опис").set("dateModified", got.data()["dateModified"])
	if !reflect.DeepEqual(got.data(), map[string]any(want)) || len(got.json) != 1 {
		t.Errorf("got  %v\nwant %v", got.json, want)
	}
	if text(got.data()["dateModified"]) <= text(c.data()["dateModified"]) {
		t.Errorf("dateModified went from %v to %v", c.data()["dateModified"], got.data()["dateModified"])
	}
	if read := a.read(t, c.id).must(t, 200); read.text != got.text {
		t.Errorf("read    %s\nchanged %s", read.text, got.text)
	}
	for _, try := range []struct {
		name string
		same any
	}{
		{"nothing", fields{}},
		{"the same", fields{"description": "новий опис"}},
		{"what is ignored", fields{"owner": "me", "assetID": "x", "date": "2020-01-01T00:00:00+00:00",
			"documents": []any{}, "id": "x"}},
	} {
		if again := a.patch(t, c, try.same).must(t, 200); again.text != got.text {
			t.Errorf("changing %s gave %s, want %s", try.name, again.text, got.text)
		}
	}
	nested := a.patch(t, c, fields{"assetCustodian": fields{"contactPoint": fields{"email": "a@example.com"}}}).
		must(t, 200)
	if at(nested.data(), "assetCustodian.contactPoint.email") != "a@example.com" ||
		at(nested.data(), "assetCustodian.contactPoint.telephone") != "0440000000" {
		t.Errorf("objects do not merge: %v", nested.data()["assetCustodian"])
	}
	cleared := a.patch(t, c, fields{"assetCustodian": fields{"contactPoint": fields{"email": nil}}}).must(t, 200)
	if _, there := object(at(cleared.data(), "assetCustodian.contactPoint"))["email"]; there {
		t.Errorf("null does not clear: %v", cleared.data()["assetCustodian"])
	}
	item := a.patch(t, c, fields{"items": []any{fields{"quantity": 2}}}).must(t, 200)
	if at(item.data(), "items.0.quantity") != json.Number("2") ||
		at(item.data(), "items.0.id") != at(c.data(), "items.0.id") || at(item.data(), "items.0.unit.code") != "code" {
		t.Errorf("lists do not merge by index: %v", item.data()["items"])
	}
	pending := a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	if pending.data()["status"] != "pending" || text(pending.data()["date"]) <= text(c.data()["date"]) {
		t.Errorf("after publishing: %v", pending.data())
	}
	if start := text(at(pending.data(),
		"rectificationPeriod.startDate")); timeForm.MatchString(start) != (a.version != "2.4") {
		t.Errorf("rectificationPeriod.startDate is %q", start)
	}
}

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
				t.Errorf("2.4 shows %v", d)
			}
		}
	} else {
		if got := a.create(t, with); at(got.data(),
			"assetCustodian.additionalContactPoints.0.email") != "b@example.com" {
			t.Errorf("additionalContactPoints: %v", got.data()["assetCustodian"])
		}
	}
	if d := recent.read(t, c.id).data(); at(d, "assetCustodian.additionalContactPoints.0.name") != "другий" {
		t.Errorf("a change in 2.4 has cost what it does not show: %v", d)
	}
	if d := old.read(t, c.id).data(); at(d, "assetCustodian.name") != "Фонд" {
		t.Errorf("2.4 hides too much: %v", d)
	}
}

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
				t.Errorf("quantity %s came back as %v, want %s", try.sent, at(got.data(), "items.0.quantity"), try.want)
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
	for _, title := range []string{"їжак 𐍈 👩‍👩‍👧 e\u0301", "<script>&\"'\\/", "\u2028\u2029\u0000\u0007\t\n",
		"\u202ertl", "  blanks  ", strings.Repeat("щ", 100_000)} {
		c := a.create(t, validAsset().set("title", title))
		if got := text(a.read(t, c.id).data()["title"]); got != title {
			t.Errorf("title %.40q came back as %.40q", title, got)
		}
	}
}

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
			t.Errorf("decisionDate %s came back as %v, want %s", try.sent, got, try.want)
		}
	}
	before := time.Now().Add(-time.Second)
	c := a.create(t, validAsset())
	for _, name := range []string{"date", "dateModified"} {
		got, err := time.Parse("2006-01-02T15:04:05.000000-07:00", text(c.data()[name]))
		if err != nil || got.Before(before) || got.After(time.Now().Add(time.Second)) {
			t.Errorf("%s is %v, %v", name, c.data()[name], err)
		}
	}
}

func testReplace(t *testing.T, a api) {
	c := a.create(t, validAsset().set("title_en", "premises"))
	put := func(f any) answer {
		return a.do(t, call{method: "PUT", path: "/assets/" + c.id, key: "broker", token: c.token, body: data(f)})
	}
	got := put(validAsset().set("title", "інша назва")).must(t, 200)
	if got.data()["title"] != "інша назва" || got.data()["title_en"] != nil || got.data()["status"] != "draft" {
		t.Errorf("got %v", got.data())
	}
	put(validAsset().without("title").without("description")).fails(t, 400, "body/title", "body/description")
}

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
				// others were faster again and again, or for too long: the client repeats
				if got.status == 409 || got.status == 503 {
					continue
				}
				if got.status != 200 {
					t.Errorf("client %d: answered %d: %s", i, got.status, got.text)
				}
				return
			}
		})
	}
	wg.Wait()
	d := a.read(t, c.id).data()
	for i := range clients {
		if want := fmt.Sprintf("changed by %d", i); at(d, fmt.Sprintf("items.%d.description", i)) != want {
			t.Errorf("the change of client %d is lost: %v", i, at(d, fmt.Sprintf("items.%d.description", i)))
		}
	}
}

func testPresentation(t *testing.T, a api) {
	c := a.create(t, validAsset())
	pretty := a.do(t, call{method: "GET", path: "/assets/" + c.id + "?opt_pretty=1"}).must(t, 200)
	if !strings.HasPrefix(pretty.text, "{\n    \"data\": {\n        \"") {
		t.Errorf("opt_pretty: %s", pretty.text)
	}
	if got := a.do(t, call{method: "POST", path: "/assets?opt_pretty=1", key: "broker", body: data(validAsset())}).
		must(t, 201); !strings.HasPrefix(got.text, "{\n    ") {
		t.Errorf("opt_pretty of POST: %s", got.text)
	}
	body := data(validAsset())
	body["options"] = fields{"pretty": true}
	if got := a.post(t, body).must(t, 201); !strings.HasPrefix(got.text, "{\n    ") {
		t.Errorf("options.pretty: %s", got.text)
	}
	got := a.do(t, call{method: "GET", path: "/assets/" + c.id + "?opt_jsonp=show"})
	if kind := got.header.Get("Content-Type"); got.status != 200 || kind != "application/javascript" ||
		!strings.HasPrefix(got.text, `show({"data":`) || !strings.HasSuffix(got.text, "});") {
		t.Errorf("opt_jsonp: %d %s %s", got.status, kind, got.text)
	}
	if got := a.do(t, call{method: "POST", path: "/assets?opt_jsonp=show", key: "broker", body: data(validAsset())}).
		must(t, 201); strings.Contains(got.text, "show") {
		t.Errorf("opt_jsonp of POST, whose answer holds tokens: %s", got.text)
	}
	if got := a.do(t, call{method: "GET", path: "/assets/" + c.id,
		header: map[string]string{"X-Request-ID": "mine-1"}}).must(t, 200); got.header.Get("X-Request-ID") != "mine-1" {
		t.Errorf("X-Request-ID is %q", got.header.Get("X-Request-ID"))
	}
}
