package console_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/testing/expect"
)

// told returns the entries of the audit log after a number, as action, who and state after it.
func (d *desk) told(t *testing.T, after int64) (told []string) {
	t.Helper()
	for _, e := range expect.Get(d.service.Entries(t.Context(), after, 100))(t) {
		_, name, _ := strings.Cut(e.Who, " ")
		told = append(told, strings.TrimSpace(e.Action+" "+name+" "+string(e.After)))
	}
	return told
}

// TestWhatPeopleDoIsInTheAuditLog signs in and out, reads a draft, exports the log, and guesses keys.
// Promises: audit-people
func TestWhatPeopleDoIsInTheAuditLog(t *testing.T) {
	d := newDesk(t)
	id := strings.Repeat("0b", 16)
	d.assets.history = map[string]assetclient.History{id: {Changes: []assetclient.Change{{Revision: 1}}}}
	b := d.signedIn(t, "operator")
	b.get("/console/asset?id="+id).must(t, 200, "<h2>History</h2>")
	b.get("/console/audit/export/csv?days=30")
	b.post("/console/sign-out", nil).must(t, 200, "You are signed out.")
	d.signedIn(t, "auditor").get("/console/audit/export/ndjson")
	for range 33 { // three are refused without looking
		b.post("/console/sign-in", url.Values{"key": {"ark_wrong"}})
	}
	d.operators.NoteRefused(t.Context(), d.service.Service)
	d.operators.NoteRefused(t.Context(), d.service.Service) // nothing is left to note
	session := regexp.MustCompile(`"session":"[^"]+"`)
	told := session.ReplaceAllString(strings.Join(d.told(t, 0), "\n"), `"session":"S"`)
	keys := regexp.MustCompile(`(?m)^key.create.*\n`)
	expect.Equal(t, keys.ReplaceAllString(told, ""), `session.begin Ольга {"session":"S"}
asset.read Ольга {"broker":"acme","status":"draft"}
audit.export Ольга {"format":"csv","query":"days=30"}
session.end Ольга {"session":"S"}
session.begin Ольга {"session":"S"}
audit.export Ольга {"format":"ndjson","query":""}
session.refused  {"keys":30,"locked_out":3}`, "the entries")
	if found, err := d.service.Check(t.Context()); err != nil || len(found.Problems) > 0 {
		t.Errorf("check: got %v and %v, want no problem", found.Problems, err)
	}
}

// TestAnOperatorEndsAnotherSession ends a session by the page of sessions of another auth service.
func TestAnOperatorEndsAnotherSession(t *testing.T) {
	d := newDesk(t)
	stolen, b, auditor := d.signedIn(t, "operator"), d.signedIn(t, "operator"), d.signedIn(t, "auditor")
	stolen.base, auditor.base = d.consoles[1].URL, d.consoles[1].URL
	for _, other := range []*browser{stolen, auditor} {
		other.client.Jar.SetCookies(mustURL(t, other.base+"/console/"), other.client.Jar.Cookies(mustURL(t, d.consoles[0].URL+"/console/")))
		other.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
	}
	page := b.get("/console/sessions")
	page.must(t, 200, "127.0.0.1")
	paths := regexp.MustCompile(`action="(/console/sessions/\w+/end)"`).FindAllStringSubmatch(page.text, -1)
	if len(paths) != 3 {
		t.Fatalf("got the page %s, want 3 sessions", page.text)
	}
	if read := auditor.get("/console/sessions"); strings.Contains(read.text, "/end") {
		t.Errorf("an auditor: got %s, want no form", read.text)
	}
	first := paths[2][1] // the newest is first
	auditor.post(first, b.fill("/console/sessions", url.Values{})).must(t, 403)
	b.post(first, b.fill("/console/sessions", url.Values{})).must(t, 200, "The session is ended.")
	if got := stolen.get("/console/keys"); got.Request.URL.Path != "/console/sign-in" {
		t.Errorf("the ended session: got the page %s, want the sign-in", got.Request.URL)
	}
	if again := b.get("/console/sessions"); strings.Contains(again.text, first) {
		t.Errorf("got %s, want the ended session to be gone", again.text)
	}
	b.post("/console/sessions/"+strings.Repeat("x", 33)+"/end", b.fill("/console/sessions", url.Values{})).must(t, 404)
}

// TestTheStartPageSaysWhatNeedsSomebody has a key that expires soon, one that was never used, and a stopped webhook.
func TestTheStartPageSaysWhatNeedsSomebody(t *testing.T) {
	d := newDesk(t)
	soon := d.now.AddDate(0, 0, 29)
	n := adminapi.NewKey{KeySettings: settings("soon<b>", "auditor")}
	n.Expires = &soon
	d.key(t, n)
	d.key(t, adminapi.NewKey{KeySettings: settings("idle", "auditor")})
	d.now = d.now.AddDate(0, 0, 8)
	d.assets.webhooks = []assetclient.Webhook{
		{ID: "w1", URL: "https://one.example/x", State: "disabled", Reason: "gone"}, {ID: "w2", URL: "https://two.example", State: "active"},
	}
	b := d.signedIn(t, "auditor")
	b.post("/console/sign-in", url.Values{"key": {"ark_wrong"}})
	d.operators.NoteRefused(t.Context(), d.service.Service)
	b.base = d.consoles[1].URL
	b = d.signedIn(t, "auditor")
	got := b.get("/console/")
	got.must(t, 200, "soon&lt;b&gt;</a></bdi> <bdi>expires</bdi>", ">idle</a></bdi> <bdi>created</bdi>", "one.example", "gone</bdi>",
		">127.0.0.1</a>", "keys 1", "the disk, the last backup")
	d.keepsToTheLanguage(t, b)
	for _, text := range []string{"two.example", "soon<b>", "Not known now"} {
		expect.ErrorIf(t, strings.Contains(got.text, text), "got %s, want no %s", got.text, text)
	}
}

// TestOneFieldFindsEverything looks for assets, brokers and keys by the field at the top of each page.
// Promises: find
func TestOneFieldFindsEverything(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"forest fund"}, "title": {"Ліси <b>"}}).must(t, 200, "Created.")
	k, _ := d.key(t, adminapi.NewKey{Broker: "forest fund", KeySettings: settings("sawmill", "broker")})
	draft, open := strings.Repeat("0c", 16), strings.Repeat("0d", 16)
	d.assets.history = map[string]assetclient.History{draft: {}, open: {}}
	d.assets.assets = []adminapi.Asset{
		{ID: draft, Number: "UA-AR-DGF-2026-11-20-000007", Title: "<i>secret</i> oak", Status: "draft", Owner: "forest fund"},
		{ID: open, Number: "UA-AR-DGF-2026-11-20-000008", Title: "<i>old</i> oak", Status: "pending", Owner: "forest fund"},
	}
	auditor := d.signedIn(t, "auditor")
	for _, c := range []struct{ q, path, says string }{
		{"ua-ar-dgf-2026-11-20-000007", "/console/asset", "000007"},
		{" " + strings.ToUpper(draft) + " ", "/console/asset", "&lt;i&gt;secret&lt;/i&gt;"},
		{"old", "/console/asset", "000008"},
		{"FOREST", "/console/find", "forest fund"}, // the key of the broker is found too
		{"Ліси", "/console/broker", "&lt;b&gt;"},
		{"sawm", "/console/keys/" + k.ID, "sawmill"},
		{k.ID, "/console/find", "forest fund"},
		{"forest fund NO-REFERENCE", "/console/find", "Nothing is found"},
		{"<b>", "/console/broker", "&lt;b&gt;"},
		{"nothing", "/console/find", "Words of titles find published assets only"},
	} {
		got := b.get("/console/find?" + url.Values{"text": {c.q}}.Encode())
		got.must(t, 200, c.says)
		expect.Equal(t, got.Request.URL.Path, c.path, "the page for %q", c.q)
	}
	auditor.get("/console/find?text=UA-AR-DGF-2026-11-20-000007").must(t, 200, "Nothing is found")
	b.get("/console/find?text=").must(t, 400, "1 to 600 bytes")
	b.get("/console/find?text="+strings.Repeat("x", 601)).must(t, 400, "1 to 600 bytes")
	page := b.get("/console/broker?name=forest+fund")
	page.must(t, 200, "<dt>draft</dt><dd>1</dd>", "000007", "&lt;i&gt;old&lt;/i&gt;")
	if strings.Contains(page.text, "secret") || strings.Contains(auditor.get("/console/broker?name=forest+fund").text, "000007") {
		t.Errorf("got the page %s, want no title of a draft, and no draft for an auditor", page.text)
	}
}

// TestABrokerIsRemovedOrStays removes a broker that nobody has used.
func TestABrokerIsRemovedOrStays(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"<b>"}}).must(t, 422, "begins with a letter or digit")
	b.submit("/console/new-broker", url.Values{"name": {"acme"}}).must(t, 200, "Created.")
	b.submit("/console/new-broker", url.Values{"name": {"асме"}}).must(t, 422, "looks like that of the broker", `name="similar"`)
	b.submit("/console/new-broker", url.Values{"name": {"асме"}, "similar": {"yes"}}).must(t, 200, "Created.")
	d.assets.assets = []adminapi.Asset{{ID: "a", Owner: "acme", Status: "deleted"}}
	b.submit("/console/remove-broker?name=acme", url.Values{}).must(t, 409, "The broker owns assets")
	b.submit("/console/remove-broker?name="+url.QueryEscape("асме"), url.Values{}).must(t, 200, "The broker is removed.")
	b.get("/console/broker?name="+url.QueryEscape("асме")).must(t, 404)
	if found, err := d.service.Check(t.Context()); err != nil || len(found.Problems) > 0 {
		t.Errorf("check: got %v and %v, want no problem", found.Problems, err)
	}
}
