package console_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/console"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

var secrets = regexp.MustCompile(`ark_[0-9a-z]{32}`)

// Promises: secret-once
func TestASecretIsShownOnce(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"acme"}, "title": {"Acme"}}).must(t, 200, "Created.", "Acme")
	form := b.fill("/console/new-key", url.Values{
		"broker": {"acme"}, "name": {"production"}, "role": {"broker"}, "levels": {"1", "3"},
	})
	made := b.post("/console/new-key", form)
	secret := secrets.FindString(made.text)
	if made.StatusCode != 200 || secret == "" || made.Request.URL.RawQuery != "" || len(made.Cookies()) > 0 ||
		made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %v %s, want 200 with a secret and no-store", made.StatusCode, made.Header, made.text)
	}
	got, err := d.verifier.Verify(t.Context(), authapi.Hash(secret))
	if err != nil || got.Broker != "acme" || got.Levels != "13" {
		t.Errorf("got %+v, %v; want broker acme with levels 13", got, err)
	}
	for n, console := range d.consoles { // a form that is sent again may reach the same service or another one
		b.base = console.URL
		repeated := b.post("/console/new-key", form)
		repeated.must(t, 200, "Nothing was done again", "production")
		if secrets.MatchString(repeated.text) {
			t.Errorf("the form again, console %d: got %s, want no secret", n, repeated.text)
		}
	}
	keys, _, err := d.service.Keys(t.Context(), admin.Filter{Broker: "acme", Limit: 10})
	expect.ErrorIf(t, err != nil || len(keys) != 1, "got %d keys, %v; want 1", len(keys), err)
	id := strings.TrimPrefix(b.post("/console/new-key", form).Request.URL.Path, "/console/keys/")
	rotation := b.fill("/console/keys/"+id+"/rotate", url.Values{"grace": {"1h"}})
	rotated := b.post("/console/keys/"+id+"/rotate", rotation)
	second := secrets.FindString(rotated.text)
	if second == "" || second == secret {
		t.Fatalf("got %s, want a new secret", rotated.text)
	}
	again := b.post("/console/keys/"+id+"/rotate", rotation)
	again.must(t, 200, "Nothing was done again")
	expect.ErrorIf(t, secrets.MatchString(again.text), "the rotation again: got %s, want no secret", again.text)
	for _, secret := range []string{secret, second} {
		expect.ErrOf(t, nil, "a secret within the grace")(d.verifier.Verify(t.Context(), authapi.Hash(secret)))
	}
	rotated = b.submit("/console/keys/"+id+"/rotate", url.Values{"grace": {"0s"}})
	third := secrets.FindString(rotated.text)
	for secret, want := range map[string]bool{secret: false, second: false, third: true} {
		if _, err := d.verifier.Verify(t.Context(), authapi.Hash(secret)); (err == nil) != want {
			t.Errorf("after a rotation without grace: got %v, want %s valid %t", err, secret, want)
		}
	}
	for _, text := range []string{
		b.get("/console/keys").text, b.get("/console/keys/" + id).text, b.get("/console/audit").text, d.log.String(),
	} {
		if strings.Contains(text, secret) || strings.Contains(text, second) || strings.Contains(text, third) {
			t.Errorf("got %s, want no secret in it", text)
		}
	}
	b.submit("/console/keys/"+id+"/revoke", url.Values{}).
		must(t, 200, "The key is revoked", `<span class="state revoked">`)
	expect.FaultOf(t, fault.Unauthorized, "a revoked key")(d.verifier.Verify(t.Context(), authapi.Hash(second)))
	b.get("/console/keys/"+id+"/edit").must(t, 409, "The key is revoked")
	entries, err := d.service.Entries(t.Context(), 0, 100)
	expect.OK(t, err)
	var actions []string
	for _, e := range entries[2:] {
		actions = append(actions, e.Action)
		if !strings.HasPrefix(e.Who, "key-") || !strings.HasSuffix(e.Who, " Ольга") || e.From != "127.0.0.1" ||
			!strings.HasPrefix(e.RequestID, "form-") {
			t.Errorf("got entry %+v, want one by a form of Ольга from 127.0.0.1", e)
		}
	}
	want := []string{"broker.create", "key.create", "key.rotate", "key.rotate", "key.revoke"}
	expect.ErrorIf(t, !slices.Equal(actions, want), "got actions %v, want %v", actions, want)
	b.get("/console/audit").must(t, 200, "key.revoke", "production")
	b.get("/console/audit/check").must(t, 200, "The log is as it was written")
}

func TestAnAuditorReadsAndChangesNothing(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.service.CreateBroker(t.Context(), root, adminapi.NewBroker{Name: "b"}))(t)
	k, _ := d.key(t, adminapi.NewKey{Broker: "b", KeySettings: settings("n", "broker")})
	b := d.signedIn(t, "auditor")
	before, err := d.service.Head(t.Context())
	expect.OK(t, err)
	key := "/console/keys/" + k.ID
	changes := []string{
		"/console/new-key", key + "/edit", key + "/rotate", key + "/revoke",
		"/console/new-broker", "/console/edit-broker?name=b",
	}
	for _, path := range []string{
		"/console/keys", key, "/console/brokers", "/console/broker?name=b", "/console/audit", "/console/audit/check",
	} {
		got := b.get(path)
		got.must(t, 200)
		for _, change := range changes {
			expect.ErrorIf(t, strings.Contains(got.text, change), "%s: got a link to %s, want none", path, change)
		}
		expect.Equal(t, strings.Count(got.text, `method="post"`), 1, "%s: forms", path)
	}
	for _, change := range changes {
		b.get(change).must(t, 403, "may read here and change nothing")
		b.post(change, url.Values{
			"once": {"0.AAAAAAAAAAAAAAAAAAAAAAAAAA"}, "name": {"x"}, "role": {"operator"}, "grace": {"1h"},
		}).must(t, 403)
	}
	if after, err := d.service.Head(t.Context()); err != nil || after != before {
		t.Errorf("got head %v, %v; want %v as before", after, err, before)
	}
}

func TestARequestOfAnotherSiteIsRefused(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	for name, from := range map[string]http.Header{
		"another site":                    {"Sec-Fetch-Site": {"cross-site"}},
		"another port of this host":       {"Sec-Fetch-Site": {"same-site"}},
		"another site, in an old browser": {"Origin": {"https://evil.example"}},
		"a sandboxed frame":               {"Origin": {"null"}},
	} {
		t.Run(name, func(t *testing.T) {
			form := b.fill("/console/new-broker", url.Values{"name": {"evil"}})
			b.postFrom("/console/new-broker", form, from.Clone()).must(t, 403, "Another site has sent this")
			b.postFrom("/console/sign-out", nil, from.Clone()).must(t, 403)
			b.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
		})
	}
	expect.FaultOf(t, fault.NotFound, "the broker of the other site")(d.service.Broker(t.Context(), "evil"))
	own := b.fill("/console/new-broker", url.Values{"name": {"good"}})
	b.postFrom("/console/new-broker", own, http.Header{"Origin": {b.base}}).must(t, 200, "Created.")
}

func TestEveryAnswerKeepsToItself(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	for _, path := range []string{
		"/console/keys", "/console/sign-in", "/console/none", "/console/keys/none",
		"/console/assets/console.js", "/console/assets/none",
	} {
		h := b.get(path).Header
		policy := h.Get("Content-Security-Policy")
		if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: got policy %q, want default-src and frame-ancestors 'none', nothing unsafe", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: got headers %v, want nosniff and the referrer policy same-origin", path, h)
		}
	}
	script := b.get("/console/assets/console.js")
	req, err := http.NewRequest(http.MethodGet, b.base+"/console/assets/console.js", nil)
	expect.OK(t, err)
	req.Header.Set("If-None-Match", script.Header.Get("ETag"))
	if got := b.do(req); script.Header.Get("ETag") == "" || got.StatusCode != 304 {
		t.Errorf("a request with the ETag %q: got status %d, want 304", req.Header.Get("If-None-Match"), got.StatusCode)
	}
}

func TestWhatIsWrongIsSaidBesideTheField(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"b"}})
	good := url.Values{"broker": {"b"}, "name": {"n"}, "role": {"broker"}}
	for name, c := range map[string]struct {
		field, value, beside, says string
	}{
		"no name":                   {"name", "", "name", "This field is required."},
		"two limits for one window": {"limit-read", "5/1s, 6/1s", "limit-read", "Not so: &#34;6/1s&#34;"},
		"an expiry in the past":     {"expires", "2020-01-01T00:00", "expires", "in the past"},
	} {
		t.Run(name, func(t *testing.T) {
			fields := url.Values{}
			for name, values := range good {
				fields[name] = values
			}
			fields.Set(c.field, c.value)
			got := b.submit("/console/new-key", fields)
			got.must(t, 422)
			at := strings.Index(got.text, `id="`+c.beside+`-wrong">`)
			if at < 0 || !strings.Contains(got.text[at:min(len(got.text), at+200)], c.says) {
				t.Errorf("got %s, want %q beside %s", got.text, c.says, c.beside)
			}
		})
	}
	b.submit("/console/new-broker", url.Values{"name": {"b"}}).must(t, 422, "There is a broker with this name already.")
	b.post("/console/new-broker", url.Values{"name": {"x"}}).must(t, 400, "The form is not complete")
	b.post("/console/new-broker", url.Values{"name": {strings.Repeat("x", 100_000)}}).must(t, 413)
}

func TestEveryFaultyFieldOfAFormIsMarkedAtOnce(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"b"}})
	k, _ := d.key(t, adminapi.NewKey{Broker: "b", KeySettings: settings("n", "broker")})
	before, err := d.service.Head(t.Context())
	expect.OK(t, err)
	long := strings.Repeat("x", 201)
	key := url.Values{
		"name": {long}, "role": {"king"}, "levels": {"3", "7"}, "limit-list": {"0/1s"},
		"limit-read": {"fast, 5/1s, soon"}, "limit-write": {"5/1ms"}, "expires": {"soon"},
		"allow": {"nowhere 192.0.2.1 elsewhere"}, "colour": {"blue"},
	}
	marked := map[string][]string{
		"name": {"At most 200 characters."}, "role": {"The role must be one of"}, "levels": {"The levels must be"},
		"limit-list": {"A limit must be between 1"}, "limit-read": {"Not so: &#34;fast&#34;, &#34;soon&#34;."},
		"limit-write": {"no length of a window"}, "expires": {"A time is needed"},
		"allow": {"&#34;nowhere&#34;", "&#34;elsewhere&#34;"},
	}
	kept := []string{
		`value="` + long + `"`, `value="3" checked`, `value="0/1s"`, `value="fast, 5/1s, soon"`, `value="5/1ms"`,
		`value="soon"`, ">nowhere 192.0.2.1 elsewhere</textarea>",
	}
	unknown := "The form has no field &#34;colour&#34;."
	withBroker := func(name string) url.Values {
		form := maps.Clone(key)
		form.Set("broker", name)
		return form
	}
	for _, c := range []struct {
		name, path string
		fields     url.Values
		marked     map[string][]string
		says       []string
	}{
		{
			"create a key", "/console/new-key", withBroker("stranger"), marked,
			append(kept, unknown, "There is no such broker"),
		},
		{"edit a key", "/console/keys/" + k.ID + "/edit", maps.Clone(key), marked, append(kept, unknown)},
		{
			"rotate a key", "/console/keys/" + k.ID + "/rotate", url.Values{"grace": {"9999h"}, "colour": {"blue"}},
			map[string][]string{"grace": {"The grace must be"}}, []string{unknown},
		},
		{
			"create a broker", "/console/new-broker",
			url.Values{"name": {"a/b"}, "title": {long}, "contact": {long}, "colour": {"blue"}},
			map[string][]string{
				"name": {"must not contain a slash"}, "title": {"At most 200"}, "contact": {"At most 200"},
			},
			[]string{unknown, `value="a/b"`, `value="` + long + `"`},
		},
		{
			"edit a broker", "/console/edit-broker?name=b",
			url.Values{"title": {long}, "contact": {long}, "colour": {"blue"}},
			map[string][]string{"title": {"At most 200"}, "contact": {"At most 200"}},
			[]string{unknown, `value="` + long + `"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := b.submit(c.path, c.fields)
			got.must(t, 422, c.says...)
			for field, texts := range c.marked {
				_, beside, _ := strings.Cut(got.text, `id="`+field+`-wrong">`)
				beside, _, _ = strings.Cut(beside, "</p>")
				for _, text := range texts {
					if !strings.Contains(beside, text) {
						t.Errorf("beside %s: got %q, want %q", field, beside, text)
					}
				}
			}
		})
	}
	revoke := "/console/keys/" + k.ID + "/revoke"
	b.post(revoke, b.fill(revoke, url.Values{"colour": {"blue"}})).must(t, 422, unknown)
	if after, err := d.service.Head(t.Context()); err != nil || after != before {
		t.Errorf("got head %v, %v; want %v as before", after, err, before)
	}
}

func TestNoBytesOfAFormBreakTheAuditLog(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	for _, id := range []string{
		strings.Repeat("\xff", 26), strings.Repeat("я", 13), strings.Repeat("a", 26), strings.Repeat(".", 26),
	} {
		form := url.Values{"once": {"0." + id}, "name": {"x"}}
		b.post("/console/new-broker", form).must(t, 400, "The form is not complete")
	}
	b.submit("/console/new-broker", url.Values{"name": {"x"}, "title": {"a\xffb"}}).
		must(t, 422, "Only printable characters")
	b.submit("/console/new-broker", url.Values{"name": {"b"}}).must(t, 200)
	fields := url.Values{"broker": {"b"}, "name": {"a\xff"}, "role": {"broker"}}
	b.submit("/console/new-key", fields).must(t, 422, "Only printable characters")
	b.get("/console/audit/check").must(t, 200, "The log is as it was written")
}

func TestSettingsAreEdited(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "operator")
	b.submit("/console/new-broker", url.Values{"name": {"b"}})
	expires := d.now.Add(24*time.Hour + 123456*time.Microsecond)
	n := adminapi.NewKey{Broker: "b", KeySettings: settings("n", "broker")}
	n.Expires, n.Allow = &expires, []string{"192.0.2.0/24"}
	n.Limits = map[string]map[string]int64{"write": {"1m": 100, "1s": 5}}
	k, _ := d.key(t, n)
	path := "/console/keys/" + k.ID + "/edit"
	b.get(path).must(t, 200, `value="5/1s, 100/1m"`, "192.0.2.0/24", `value="2026-11-22T10:00:00"`)
	stale := b.fill(path, url.Values{"name": {"mine"}, "role": {"broker"}})
	same := url.Values{
		"name": {"n"}, "role": {"broker"}, "expires": {"2026-11-22T10:00:00"},
		"limit-write": {"5/1s, 100/1m"}, "allow": {"192.0.2.0/24"},
	}
	b.submit(path, same).must(t, 200, "The changes are saved")
	got, err := d.service.Key(t.Context(), k.ID)
	if err != nil || !got.Expires.Equal(expires) || got.Limits["write"]["1m"] != 100 ||
		got.Allow[0] != "192.0.2.0/24" {
		t.Errorf("after the same form: got %+v, %v; want the key as before: %+v", got, err, k)
	}
	same.Set("once", "")
	other := url.Values{
		"name": {"m"}, "role": {"concierge"}, "levels": {"2", "4"}, "test": {"yes"},
		"limit-list": {"7/1h"}, "allow": {"2001:db8::1\r\n 10.0.0.1"},
	}
	b.submit(path, other).must(t, 200)
	got, err = d.service.Key(t.Context(), k.ID)
	if err != nil || got.Name != "m" || got.Role != "concierge" || got.Levels != "24" || !got.Test ||
		got.Expires != nil || len(got.Limits) != 1 || got.Limits["list"]["1h"] != 7 ||
		!slices.Equal(got.Allow, []string{"2001:db8::1/128", "10.0.0.1/32"}) {
		t.Errorf("got %+v, %v; want the settings of the form %v", got, err, other)
	}
	b.post(path, stale).must(t, 422, "Somebody else has changed this")
	operator := url.Values{"name": {"m"}, "role": {"operator"}}
	b.submit(path, operator).must(t, 422, "cannot become a key of the admin API")

	edit := "/console/edit-broker?name=b"
	b.submit(edit, url.Values{"title": {"B"}, "contact": {"b@example"}, "blocked": {"yes"}}).
		must(t, 200, "The changes are saved", "b@example", `<span class="state blocked">`)
	b.get("/console/keys?state=blocked").must(t, 200, k.ID)
	b.get("/console/broker?name=b").must(t, 200, "<h1><bdi>B</bdi> ", "Edit or unblock")
	if got := b.get("/console/broker?name=b").text; strings.Contains(got, "/console/new-key") {
		t.Errorf("the page of a blocked broker: got %s, want no link to a new key", got)
	}
	b.submit(edit, url.Values{"title": {"B"}}).must(t, 200, `<span class="state active">`)
}

func TestListsAreSearchedAndPaged(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "auditor")
	for _, name := range []string{"a&b", "<script>alert(1)</script>", "."} {
		of := apikey.Broker{Name: strings.ReplaceAll(name, "/", "")} // a release before let new brokers have it
		expect.OK(t, d.store.Restore(t.Context(), admin.Change{Broker: &of}, nil))
	}
	b.get("/console/broker?name=.").must(t, 200)
	for n := range 30 {
		d.now = d.now.Add(time.Second)
		d.key(t, adminapi.NewKey{Broker: "a&b", KeySettings: settings("<script>"+strings.Repeat("x", n), "broker")})
	}
	first := b.get("/console/keys?broker=a%26b&q=SCRIPT")
	first.must(t, 200, "&lt;script&gt;", `rel="next"`)
	if strings.Contains(first.text, "<script>x") || strings.Count(first.text, `<th scope="row">`) != 25 {
		t.Errorf("the first page: got %s, want 25 rows with escaped names", first.text)
	}
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(first.text)
	second := b.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	second.must(t, 200, "26 to 30 of 30")
	if strings.Count(second.text, `<th scope="row">`) != 5 {
		t.Errorf("the second page: got %s, want 5 rows", second.text)
	}
	back := regexp.MustCompile(`href="([^"]+)" rel="prev"`).FindStringSubmatch(second.text)
	got := b.get(strings.ReplaceAll(back[1], "&amp;", "&"))
	if strings.Count(got.text, `<th scope="row">`) != 25 || !strings.Contains(got.text, `value="a&amp;b"`) {
		t.Errorf("%q: got %s, want the first page of the same search", back[1], got.text)
	}
	b.get("/console/keys?q=nothing").must(t, 200, "No key matches")

	var seen []string
	for path := "/console/audit"; path != ""; {
		page := b.get(path)
		page.must(t, 200)
		for _, entry := range regexp.MustCompile(`<li id="entry-(\d+)"`).FindAllStringSubmatch(page.text, -1) {
			seen = append(seen, entry[1])
		}
		path = ""
		if older := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(page.text); older != nil {
			path = older[1]
		}
	}
	expect.ErrorIf(t, len(seen) != 32 || seen[0] != "32" || seen[31] != "1", "got entries %v, want 32 to 1", seen)
	for path, status := range map[string]int{
		"/console/audit?before=x": 400, "/console/audit?before=99999": 200, "/console/keys/none": 404,
		"/console/broker?name=none": 404, "/console/keys/none/x": 404,
	} {
		b.get(path).must(t, status)
	}
}

// broken is a store that cannot read keys, and the audit log only at first.
type broken struct {
	admin.Store
	away bool
}

func (*broken) KeysBack(context.Context, string, int) ([]apikey.Key, error) {
	return nil, errors.New("disk on fire")
}

func (b *broken) Head(ctx context.Context) (adminapi.Head, error) {
	if b.away {
		return adminapi.Head{}, fault.New(fault.Unavailable, fault.URL, "store", "Come again.")
	}
	return b.Store.Head(ctx)
}

func TestAFailureIsAPageThatTellsNothing(t *testing.T) {
	d := newDesk(t)
	_, secret := d.key(t, adminapi.NewKey{KeySettings: settings("n", "operator")})
	o := d.options()
	store := &broken{Store: d.store}
	o.Admin, o.Assets = d.on(store), nil
	c, err := console.New(o)
	expect.OK(t, err)
	server := httptest.NewServer(c.Handler())
	defer server.Close()
	d.consoles[0] = server
	b := d.browser(t)
	b.post("/console/sign-in", url.Values{"key": {secret}}).
		must(t, 200, "Not known now: Keys that expire soon, Keys that were never used. ")
	got := b.get("/console/keys")
	got.must(t, 500, "Something went wrong")
	if strings.Contains(got.text, "fire") || !strings.Contains(d.log.String(), "disk on fire") {
		t.Errorf("got page %s and log %s, want the cause in the log only", got.text, d.log.String())
	}
	store.away = true
	b.get("/console/new-key").must(t, 503, "Come again.")
	b.post("/console/sign-in", url.Values{"key": {secret}}).must(t, 503, "Come again.") // nobody gets in without an entry
}
