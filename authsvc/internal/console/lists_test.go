package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/console"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/cells"
	"asset-registry/shared/testing/expect"
)

// use reports to the store that a key was used at the given time.
func (d *desk) use(t *testing.T, id string, at time.Time) {
	t.Helper()
	use := authapi.Use{KeyID: id, Secret: 1, Addr: netip.MustParseAddr("192.0.2.7"), Micros: at.UnixMicro()}
	count := authapi.Count{KeyID: id, Day: at.Format(time.DateOnly), Class: "read", Requests: 1500}
	expect.OK(t, d.store.AddUsage(t.Context(), []authapi.Use{use}, []authapi.Count{count}))
}

var rowNames = regexp.MustCompile(`<th scope="row"><bdi><a href="[^"]+">([^<]+)</a>`)

// listed returns the names in the rows of a page, in order.
func listed(a answer) (names []string) {
	for _, row := range rowNames.FindAllStringSubmatch(a.text, -1) {
		names = append(names, row[1])
	}
	return names
}

func TestTheListOfKeysIsSortedCountedAndFolded(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"acme"}})
	made := map[string]string{}
	for _, name := range []string{"first", "second", "gone", "third"} {
		d.now = d.now.Add(time.Minute)
		k, _ := d.key(t, adminapi.NewKey{Broker: "acme", KeySettings: settings(name, "broker")})
		made[name] = k.ID
	}
	expect.Get(d.service.RevokeKey(t.Context(), root, made["gone"]))(t)
	d.use(t, made["first"], d.now.Add(-49*time.Hour))
	for path, want := range map[string][]string{
		"/console/keys":                             {"third", "second", "first", "Ольга"},
		"/console/keys?sort=-created":               {"Ольга", "first", "second", "third"},
		"/console/keys?sort=used":                   {"Ольга", "first", "third", "second"},
		"/console/keys?sort=name&broker=acme":       {"first", "second", "third"},
		"/console/keys?sort=-name&broker=acme":      {"third", "second", "first"},
		"/console/keys?state=revoked":               {"gone"},
		"/console/keys?state=any&q=THIRD":           {"third"},
		"/console/keys?state=active&q=GONE":         nil,
		"/console/keys?state=any&sort=name&page=99": {"first", "gone", "second", "third", "Ольга"},
	} {
		got := b.get(path)
		got.must(t, 200)
		if !slices.Equal(listed(got), want) {
			t.Errorf("%s: got %v, want %v", path, listed(got), want)
		}
	}
	b.get("/console/keys").must(t, 200, "4 in all", "Revoked keys are not listed", `aria-sort="descending"`,
		`not revoked <span class="count">4</span>`, `revoked <span class="count">1</span>`,
		`all <span class="count">5</span>`, ">2 days ago</time>", ">2026-11-21</time>")
	b.get("/console/broker?name=acme").must(t, 200, "1 revoked key", "1,500 requests in 30 days")
	for path, status := range map[string]int{
		"/console/keys?sort=colour": 400, "/console/keys?page=0": 400, "/console/keys?page=x": 400,
		"/console/keys?page=99999999999": 400, "/console/brokers?page=-1": 400, "/console/broker?name=acme&days=365": 400,
	} {
		b.get(path).must(t, status)
	}
}

func TestANewKeyIsShownWithAllThatItsHolderNeeds(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"acme"}})
	form := b.get("/console/new-key?broker=acme")
	for _, level := range []string{"1", "2", "3", "4"} {
		form.must(t, 200, `name="levels" value="`+level+`" checked>`)
	}
	form.must(t, 200, `name="levels" value="0">`, "create assets", "novalidate")
	made := b.submit("/console/new-key", url.Values{
		"broker": {"acme"}, "name": {"n"}, "role": {"broker"}, "levels": {"1", "2", "3", "4", "0"},
		"expires": {"2027-01-31T12:00"},
	})
	secret := secrets.FindString(made.text)
	made.must(t, 200, "Copy the secret", "acme", ">all<", "2027-01-31 12:00 UTC",
		"curl -u &#39;"+secret+":&#39; https://registry.example/api/2.5/me")
	if !regexp.MustCompile(`<code>key-[0-9a-v]+</code>`).MatchString(made.text) {
		t.Errorf("got %s, want the id of the key", made.text)
	}
	made = b.submit("/console/new-key", url.Values{"name": {"n"}, "role": {"auditor"}, "levels": {"1", "2", "3", "4"}})
	made.must(t, 200, "curl -u &#39;"+secrets.FindString(made.text)+":&#39; "+b.base+"/admin/v1/keys")

	o := d.options()
	o.BaseURL = ""
	c, err := console.New(o)
	expect.OK(t, err)
	server := httptest.NewServer(c.Handler())
	defer server.Close()
	b.base = server.URL
	b.submit("/console/new-key", url.Values{"broker": {"acme"}, "name": {"n"}, "role": {"broker"}}).
		must(t, 200, "--base-url")
}

func TestAKeyInUseIsRevokedByItsName(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"acme"}})
	k, _ := d.key(t, adminapi.NewKey{Broker: "acme", KeySettings: settings("production", "broker")})
	revoke := "/console/keys/" + k.ID + "/revoke"
	page := b.get(revoke)
	page.must(t, 200, "production", "acme", "never")
	if strings.Contains(page.text, "Type the name") {
		t.Errorf("a key that was never used: got %s, want no question for its name", page.text)
	}
	early := b.fill(revoke, url.Values{})
	d.use(t, k.ID, d.now.Add(-3*time.Hour))
	b.get(revoke).must(t, 200, "3 hours ago", "2026-11-21 07:00:00 UTC", "Type the name of the key")
	b.post(revoke, early).must(t, 422, "Type the name of the key: it was used within a day.")
	b.submit(revoke, url.Values{"confirm": {"Production"}}).must(t, 422, `value="Production"`)
	if k, err := d.service.Key(t.Context(), k.ID); err != nil || k.Revoked != nil {
		t.Errorf("got %v, %v; want a key that is not revoked", k.Revoked, err)
	}
	form := b.fill(revoke, url.Values{"confirm": {"production"}})
	b.post(revoke, form).must(t, 200, "The key is revoked")
	b.post(revoke, form).must(t, 200, "Nothing was done again")

	old, _ := d.key(t, adminapi.NewKey{Broker: "acme", KeySettings: settings("old", "broker")})
	d.use(t, old.ID, d.now.Add(-24*time.Hour))
	revoke = "/console/keys/" + old.ID + "/revoke"
	b.submit(revoke, url.Values{}).must(t, 200, "The key is revoked")
}

func TestAMissingPageKeepsTheNavigation(t *testing.T) {
	d := newDesk(t)
	const navigation = `<nav aria-label="Console">`
	b := d.signedIn(t, "auditor")
	b.get("/console/none").must(t, 404, "There is no such page", navigation, "Go to the keys")
	stranger := d.browser(t).get("/console/none")
	stranger.must(t, 404, "There is no such page", "Go to the sign-in")
	if strings.Contains(stranger.text, navigation) {
		t.Errorf("a stranger: got %s, want no navigation", stranger.text)
	}
}

func TestAKeyWithoutUseSaysSoInWords(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "auditor")
	k, _ := d.key(t, adminapi.NewKey{KeySettings: settings("n", "operator")})
	page := b.get("/console/keys/" + k.ID + "?days=7")
	page.must(t, 200, "No requests in the last 7 days")
	expect.ErrorIf(t, strings.Contains(page.text, "<svg class=\"chart\""), "got %s, want no empty chart", page.text)
}

// history fills the audit log with changes by two operators.
func history(t *testing.T, d *desk) (b *browser, key string) {
	t.Helper()
	b = d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"acme"}, "title": {"ТОВ «Акме»"}})
	d.now = d.now.Add(100*time.Hour + 31*time.Minute + 7*time.Second)
	_, secret := d.key(t, adminapi.NewKey{KeySettings: settings("Ольга", "operator")})
	b.post("/console/sign-in", url.Values{"key": {secret}})
	b.submit("/console/new-key", url.Values{
		"broker": {"acme"}, "name": {"=HYPERLINK(\"x\");=1"}, "role": {"broker"}, "levels": {"1"},
	})
	keys, err := d.service.FindKeys(t.Context(), admin.KeyQuery{Broker: "acme", Limit: 1})
	expect.FatalIf(t, err != nil || len(keys.Keys) != 1, "got %v, %v; want a key", keys, err)
	key = keys.Keys[0].ID
	b.submit("/console/keys/"+key+"/edit", url.Values{
		"name": {"=HYPERLINK(\"x\");=1"}, "role": {"broker"}, "levels": {"1", "3"}, "limit-write": {"5/1s, 100/1m"},
		"allow": {"192.0.2.0/24"}, "expires": {"2027-01-31T12:00"},
	})
	return b, key
}

var entryNumbers = regexp.MustCompile(`<li id="entry-(\d+)"`)

func TestTheAuditLogIsFilteredAndReadByPeople(t *testing.T) {
	d := newDesk(t)
	b, key := history(t, d)
	for query, want := range map[string]string{
		"":                                   "7 6 5 4 3 2 1",
		"who=%D0%BE%D0%BB%D1%8C%D0%B3%D0%B0": "7 6 5 3 2",
		"who=command":                        "4 1",
		"about=hyper":                        "7 6",
		"about=" + key:                       "7 6",
		"about=%D0%B0%D0%BA%D0%BC%D0%B5":     "3",
		"broker=acme":                        "7 6 3",
		"action=key.change":                  "7",
		"days=1":                             "7 6 5 4",
		"days=1&action=key.create&broker=acme&who=127.0.0.1": "6",
		"broker=none": "",
		"before=3":    "2 1",
	} {
		got := b.get("/console/audit?" + query)
		got.must(t, 200)
		var found []string
		for _, n := range entryNumbers.FindAllStringSubmatch(got.text, -1) {
			found = append(found, n[1])
		}
		expect.ErrorIf(t, strings.Join(found, " ") != want, "%s: got entries %v, want %s", query, found, want)
	}
	page := b.get("/console/audit?action=key.change")
	page.must(t, 200, "2026-11-25 14:31:07 UTC",
		`<span class="name">levels</span> <bdi class="was">1</bdi>`, `<bdi class="is">1, 3</bdi>`,
		`<bdi class="is">write 5/1s, 100/1m</bdi>`, `<bdi class="is">192.0.2.0/24</bdi>`,
		`<bdi class="is">2027-01-31 12:00:00 UTC</bdi>`, `<bdi><a href="/console/keys/key-`, `>Ольга</a></bdi> <strong title="key.change">changed the key</strong>`, "from 127.0.0.1",
		`of <bdi><a href="/console/broker?name=acme">acme</a></bdi>`)
	if strings.Contains(page.text, "{&#34;") || strings.Contains(page.text, "[&#34;") {
		t.Errorf("got %s, want no JSON", page.text)
	}
	for query, status := range map[string]int{"days=0": 400, "days=x": 400, "days=99999": 400, "before=0": 400} {
		b.get("/console/audit?"+query).must(t, status)
	}
}

func TestTheAuditLogIsExported(t *testing.T) {
	d := newDesk(t)
	b, _ := history(t, d)
	got := b.get("/console/audit/export/csv?broker=acme")
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/csv; charset=utf-8" ||
		got.Header.Get("Content-Disposition") != `attachment; filename="audit-2026-11-25.csv"` ||
		got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v, want a CSV file that no cache keeps", got.StatusCode, got.Header)
	}
	table, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(got.text, "\uFEFF"))).ReadAll()
	expect.FatalIf(t, err != nil || len(table) != 4, "got %v, %v; want a heading and 3 rows", table, err)
	for _, row := range table {
		for _, cell := range row {
			expect.Equal(t, cell, cells.Harmless(cell), "the cell")
		}
	}
	if last := table[3]; last[3] != `'=HYPERLINK("x");'=1` || last[6] != "Ольга" ||
		!strings.Contains(last[9], "levels: 1 → 1, 3\n") {
		t.Errorf("got the row %q, want the name, the operator and the changes", last)
	}
	got = b.get("/console/audit/export/ndjson")
	chain := adminapi.Follow(adminapi.Head{})
	for line := range strings.Lines(got.text) {
		var e adminapi.Entry
		expect.OK(t, json.Unmarshal([]byte(line), &e))
		chain.Add(e)
	}
	head, err := d.service.Head(t.Context())
	if found := chain.End(); err != nil || len(found) > 0 || chain.Head != head {
		t.Errorf("got a chain to %v with %v, %v; want it without problems to %v", chain.Head, found, err, head)
	}
	b.get("/console/audit/export/xml").must(t, 404)
	b.get("/console/audit/export/csv?days=x").must(t, 400)
	empty := b.get("/console/audit/export/csv?broker=none")
	if empty.StatusCode != 200 || strings.Count(empty.text, "\n") != 1 {
		t.Errorf("nothing matches: got %d %q, want the heading alone", empty.StatusCode, empty.text)
	}
	stranger := d.browser(t)
	stranger.get("/console/audit/export/csv").must(t, 200, "<h1>Sign in</h1>")
}

// stuck is a store whose reading of the audit log waits.
type stuck struct {
	admin.Store
	begun, end chan struct{}
}

func (s stuck) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	select {
	case s.begun <- struct{}{}:
		<-s.end
	case <-s.end:
	}
	return s.Store.Entries(ctx, after, limit)
}

func TestFewExportsRunAtOnce(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	store := stuck{d.store, make(chan struct{}), make(chan struct{})}
	o.Admin = d.on(store)
	c, err := console.New(o)
	expect.OK(t, err)
	server := httptest.NewServer(c.Handler())
	defer server.Close()
	b := d.signedIn(t, "auditor")
	b.base = server.URL
	ended := make(chan int)
	for range 2 {
		go func() {
			resp, err := b.client.Get(server.URL + "/console/audit/export/csv")
			if err != nil {
				ended <- 0
				return
			}
			resp.Body.Close()
			ended <- resp.StatusCode
		}()
		<-store.begun
	}
	busy := b.get("/console/audit/export/csv")
	busy.must(t, http.StatusTooManyRequests, "Other exports are running")
	expect.ErrorIf(t, busy.Header.Get("Retry-After") == "", "got the headers %v, want Retry-After", busy.Header)
	close(store.end)
	for range 2 {
		expect.Equal(t, <-ended, 200, "")
	}
	b.get("/console/audit").must(t, 200, "Audit log")
}
