package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// inForce is how long it may take until a changed key has its new rights at every gateway.
const inForce = time.Second

// office is a registry with its admin API and an operator's key.
type office struct {
	api             // the public API
	admin  string   // URL of the admin API
	key    string   // API key of the operator
	ctl    string   // path of registryctl
	config string   // config file of registryctl
	env    []string // environment variables for registryctl, in addition to the test's variables

	mu      sync.Mutex
	secrets []string // every secret that an answer has shown
}

// shown remembers a secret and returns it.
func (o *office) shown(secret string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = append(o.secrets, secret)
	return secret
}

// ask sends a request to the admin API with the operator's key.
func (o *office) ask(t *testing.T, method, path string, data any) answer {
	t.Helper()
	return o.askAs(t, o.key, method, path, data)
}

// askAs sends a request to the admin API with the given key.
func (o *office) askAs(t *testing.T, key, method, path string, body any) answer {
	t.Helper()
	c := call{method: method, path: "/admin/v1" + path, key: key}
	if body != nil {
		c.body = data(body)
	}
	got := api{base: o.admin}.do(t, c)
	if secret := text(got.json["secret"]); secret != "" {
		o.shown(secret)
	}
	return got
}

// broker creates a broker with a new name.
func (o *office) broker(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("ТОВ %x", time.Now().UnixNano())
	o.ask(t, "POST", "/brokers", fields{"name": name, "title": "Товариство <&>"}).must(t, 201)
	return name
}

// issue creates a key for a broker and returns its id and secret. The request also has the given fields.
func (o *office) issue(t *testing.T, broker string, more fields) (id, secret string) {
	t.Helper()
	f := fields{"broker": broker, "name": "key of a test", "role": "broker", "levels": "3"}
	for name, value := range more {
		f[name] = value
	}
	got := o.ask(t, "POST", "/keys", f).must(t, 201)
	return text(got.data()["id"]), text(got.json["secret"])
}

// me sends GET /me with a key, and returns the answer.
func (o *office) me(t *testing.T, key string) answer {
	t.Helper()
	return o.do(t, call{method: "GET", path: "/api/2.5/me", key: key})
}

// The function `soon` calls the function `check` again and again. It fails the test if check does not return true
// before the given time is over.
func soon(t *testing.T, what string, within time.Duration, check func() bool) {
	t.Helper()
	for began := time.Now(); !check(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > within {
			t.Fatalf("after %v: got no success, want: %s", within, what)
		}
	}
}

// The function `everywhere` waits until a change of a key is in force at every gateway. It calls check() until the
// result is true eight times in a row. This is enough if the load balancer sends at least one of eight successive
// requests to each gateway. A balancer that chooses at random does not guarantee that.
func everywhere(t *testing.T, what string, check func() bool) {
	t.Helper()
	soon(t, what, inForce, func() bool {
		for range 8 {
			if !check() {
				return false
			}
		}
		return true
	})
}

// RunAdmin runs the scenarios of the admin API (docs/contract.md, "Admin API") and of registryctl. The parameters base
// and admin are the URLs of the public and the admin API. The parameter `key` is an operator's key, and ctl is the path
// of registryctl. RunAdmin returns every secret that the scenarios have seen.
func RunAdmin(t *testing.T, base, admin, key, ctl string) (secrets []string) {
	o := &office{api: api{base, "2.5"}, admin: admin, key: key, ctl: ctl, secrets: []string{key}}
	o.config = filepath.Join(t.TempDir(), "registryctl.yaml")
	if err := os.WriteFile(o.config, fmt.Appendf(nil, "url: %s\nkey: broker\nadmin-url: %s\nadmin-key: %s\n", base,
		admin, key), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		scenario func(*testing.T, *office)
	}{
		{"a new broker's key creates assets", testNewKey},
		{"only operators get in", testOperators},
		{"the settings of a key take effect", testKeySettings},
		{"a rotated key has two secrets for a while", testRotation},
		{"a revoked key is refused within a second", testRevocation},
		{"a blocked broker's keys are refused", testBlocked},
		{"a key expires at its time", testExpiry},
		{"a key works from allowed addresses alone", testAllowList},
		{"refused keys cannot be told apart", testRefusedAlike},
		{"the use of a key is counted and located", testUsage},
		{"bad requests are refused and change nothing", testBadAdminRequests},
		{"concurrent new keys all survive", testManyChanges},
		{"keys and brokers can be searched", testSearch},
		{"registryctl manages keys and brokers", testCommandLine},
		{"registryctl manages assets", testCommandLineAssets},
		{"registryctl lists files and takes one down", testCommandLineFiles},
		{"registryctl explains every error in one line", testCommandLineFaults},
	} {
		t.Run(c.name, func(t *testing.T) { c.scenario(t, o) })
	}
	t.Run("the audit log has every change and no secret", func(t *testing.T) { testAudit(t, o) })
	return o.secrets
}

// testOperators checks that only operators can change data through the admin API, and that only operators and
// auditors can read it.
func testOperators(t *testing.T, o *office) {
	_, ofBroker := o.issue(t, o.broker(t), fields{"role": "administrator", "levels": ""})
	for _, c := range []struct {
		name, key string
	}{{"no key", ""}, {"an unknown key", "stranger"}, {"the sandbox's administrator", "administrator"},
		{"a broker's key", ofBroker}} {
		for _, path := range []string{"/keys", "/brokers", "/audit"} {
			if got := o.askAs(t, c.key, "GET", path, nil).fails(t, 401,
				"header/Authorization"); got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: got no WWW-Authenticate, want one", c.name)
			}
		}
	}
	o.me(t, o.key).fails(t, 401, "header/Authorization") // an operator's key has no role in the public API
	got := o.ask(t, "POST", "/keys", fields{"name": "reads along", "role": "auditor"}).must(t, 201)
	auditor := text(got.json["secret"])
	o.askAs(t, auditor, "GET", "/keys", nil).must(t, 200)
	o.askAs(t, auditor, "POST", "/brokers", fields{"name": "x"}).fails(t, 403, "header/Authorization")
	o.askAs(t, auditor, "POST", "/keys/"+text(got.data()["id"])+"/revoke", fields{}).
		fails(t, 403, "header/Authorization")
	o.ask(t, "POST", "/keys/"+text(got.data()["id"])+"/revoke", fields{}).must(t, 200)
	o.askAs(t, auditor, "GET", "/keys", nil).fails(t, 401, "header/Authorization")
}

// testBadAdminRequests sends bad requests. Each answer must name every fault, and nothing may change.
// Promises: all-faults, audit-page
func testBadAdminRequests(t *testing.T, o *office) {
	broker := o.broker(t)
	id, _ := o.issue(t, broker, nil)
	key := func(name string, value any) fields {
		return fields{"broker": broker, "name": "n", "role": "broker", "levels": "3"}.set(name, value)
	}
	before := o.ask(t, "GET", "/audit/verify", nil).must(t, 200).text
	for _, c := range []struct {
		name         string
		method, path string
		body         any
		status       int
		places       []string
	}{
		{"a broker that exists", "POST", "/brokers", fields{"name": broker}, 409, []string{"body/name"}},
		{"no name", "POST", "/brokers", fields{}, 400, []string{"body/name"}},
		{"a name with outer blanks", "POST", "/brokers", fields{"name": " x "}, 400, []string{"body/name"}},
		{"a name with a slash", "POST", "/brokers", fields{"name": "a/b"}, 400, []string{"body/name"}},
		{"an unknown field", "POST", "/brokers", fields{"name": "x", "colour": "blue"}, 400, []string{"body/colour"}},
		{"an unknown broker", "POST", "/keys", key("broker", "nobody"), 400, []string{"body/broker"}},
		{"no broker", "POST", "/keys", key("broker", ""), 400, []string{"body/broker"}},
		{"an operator with a broker", "POST", "/keys", key("role", "operator"), 400,
			[]string{"body/broker", "body/role"}},
		{"the role of a service", "POST", "/keys", key("role", "service"), 400, []string{"body/role"}},
		{"an unknown level", "POST", "/keys", key("levels", "39"), 400, []string{"body/levels"}},
		{"an end in the past", "POST", "/keys", key("expires", "2020-01-01T00:00:00Z"), 400, []string{"body/expires"}},
		{"an address that is none", "POST", "/keys", key("allow", []string{"home"}), 400, []string{"body/allow.0"}},
		{"an unknown class", "POST", "/keys", key("limits", fields{"delete": fields{"1s": 1}}), 400,
			[]string{"body/limits.delete"}},
		{"a window that is too short", "POST", "/keys", key("limits", fields{"write": fields{"1ms": 1}}), 400,
			[]string{"body/limits.write.1ms"}},
		{"several bad fields", "POST", "/keys", fields{"levels": "x", "colour": 1}, 400,
			[]string{"body/colour", "body/levels", "body/name", "body/role"}},
		{"an unknown key", "GET", "/keys/none", nil, 404, []string{"url/key"}},
		{"a rotation of an unknown key", "POST", "/keys/none/rotate", fields{}, 404, []string{"url/key"}},
		{"an unknown broker's address", "GET", "/brokers/nobody", nil, 404, []string{"url/broker"}},
		{"a change of a key's broker", "PATCH", "/keys/" + id, fields{"broker": "x"}, 400, []string{"body/broker"}},
		{"a change of the role to operator", "PATCH", "/keys/" + id, fields{"role": "operator"}, 400,
			[]string{"body/role"}},
		{"a grace that is no time", "POST", "/keys/" + id + "/rotate", fields{"grace": "soon"}, 400,
			[]string{"body/grace"}},
		{"a grace too long", "POST", "/keys/" + id + "/rotate", fields{"grace": "10000h"}, 400, []string{"body/grace"}},
		{"a limit of zero", "GET", "/keys?limit=0", nil, 400, []string{"querystring/limit"}},
		{"entries beyond a page", "GET", "/audit?limit=1001", nil, 400, []string{"querystring/limit"}},
		{"too many days", "GET", "/keys/" + id + "/usage?days=1000", nil, 400, []string{"querystring/days"}},
		{"an unknown path", "GET", "/secrets", nil, 404, []string{"url/not_found"}},
		{"an unknown method", "DELETE", "/keys/" + id, nil, 404, []string{"url/method_not_allowed"}},
	} {
		t.Run(c.name, func(t *testing.T) { o.ask(t, c.method, c.path, c.body).fails(t, c.status, c.places...) })
	}
	form := call{method: "POST", path: "/admin/v1/brokers", key: o.key, body: `{"data":{"name":"x"}}`,
		header: map[string]string{"Content-Type": "text/plain"}}
	api{base: o.admin}.do(t, form).fails(t, 415, "header/Content-Type")
	if after := o.ask(t, "GET", "/audit/verify", nil).must(t, 200).text; after != before {
		t.Errorf("got the audit log %s after refusals, want %s", after, before)
	}
}

// testManyChanges creates many keys of one broker at the same time. Each key whose creation succeeded must be
// listed.
func testManyChanges(t *testing.T, o *office) {
	broker := o.broker(t)
	ids := make([]string, 12)
	var working sync.WaitGroup
	for i := range ids {
		working.Go(func() {
			got := o.ask(t, "POST", "/keys", fields{"broker": broker, "name": fmt.Sprint("key ", i), "role": "broker"})
			if got.status == 201 || got.status == 409 { // 409: another write won, and the client may repeat
				ids[i] = text(got.data()["id"])
				return
			}
			t.Errorf("got %d %s, want 201 or 409", got.status, got.text)
		})
	}
	working.Wait()
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if found := list(o.ask(t, "GET", "/keys?broker="+url.QueryEscape(broker),
		nil).must(t, 200).json["data"]); len(found) != len(ids) || len(ids) < 6 {
		t.Errorf("got %d keys, want the %d that were created, at least 6", len(found), len(ids))
	}
}

// testSearch searches for keys by text and by state, reads a list of keys page by page, and searches for a broker.
// Each search must find exactly the keys or brokers that match.
func testSearch(t *testing.T, o *office) {
	broker := o.broker(t)
	var ids []string
	for i := range 5 {
		id, _ := o.issue(t, broker, fields{"name": fmt.Sprint("Пошук ", i)})
		ids = append(ids, id)
	}
	o.ask(t, "POST", "/keys/"+ids[1]+"/revoke", fields{}).must(t, 200)
	for _, c := range []struct {
		query string
		want  int
	}{{"q=пошук", 5}, {"q=Пошук%203", 1}, {"state=active", 4}, {"state=revoked", 1}, {"q=nothing", 0}} {
		got := o.ask(t, "GET", "/keys?broker="+url.QueryEscape(broker)+"&"+c.query, nil).must(t, 200)
		if found := list(got.json["data"]); len(found) != c.want {
			t.Errorf("%s: got %d keys, want %d", c.query, len(found), c.want)
		}
	}
	found := map[string]bool{}
	for after := ""; ; {
		got := o.ask(t, "GET", "/keys?limit=2&broker="+url.QueryEscape(broker)+"&after="+after, nil).must(t, 200)
		for _, k := range list(got.json["data"]) {
			found[text(object(k)["id"])] = true
		}
		if after = text(got.json["next"]); after == "" {
			break
		}
	}
	if len(found) != 5 {
		t.Errorf("got the keys %v on all pages, want 5", found)
	}
	if got := o.ask(t, "GET", "/brokers?q="+url.QueryEscape(strings.ToLower(broker)), nil).
		must(t, 200); len(list(got.json["data"])) != 1 {
		t.Errorf("got %s, want one broker", got.text)
	}
}

// testAudit checks that the audit log has every kind of change and no secret. It also checks that registryctl notices
// when the end of the log is missing.
// Promises: secret-once
func testAudit(t *testing.T, o *office) {
	first := o.mustRun(t, "audit", "verify")
	if !strings.Contains(first, "is whole") {
		t.Errorf("audit verify: got %s, want it to say that the log is whole", first)
	}
	o.broker(t)
	if again := o.mustRun(t, "audit", "verify"); !strings.Contains(again, "known before") ||
		strings.Contains(again, "no earlier head is known") {
		t.Errorf("audit verify again: got %s, want it to compare with the head known before", again)
	}
	o.recoverTokens(t, o.create(t, validAsset()))
	log := o.mustRun(t, "audit", "list", "-o", "json")
	for _, says := range []string{"command admin-key", "broker.create", "broker.change", "key.create", "key.change",
		"key.rotate", "key.revoke", `"before"`, "127.0.0.1", "asset.recover", "загублено sesame"} {
		if !strings.Contains(log, says) {
			t.Errorf("got no %s in the audit log, want it there", says)
		}
	}
	everything := log + o.mustRun(t, "keys", "list", "-o", "json") + o.mustRun(t, "brokers", "list", "-o", "json")
	for _, secret := range o.secrets {
		if strings.Contains(everything, secret) {
			t.Errorf("got the secret %s in the output, want no secret there", secret)
		}
	}
	// The head of another log, or of a longer log, must be refused for this log.
	for _, known := range []string{"1:" + strings.Repeat("0", 64), "1000000:" + strings.Repeat("0", 64)} {
		if stdout, _, ok := o.run(t, "", "audit", "verify", "--head", known); ok ||
			!strings.Contains(stdout, "known from an earlier check") {
			t.Errorf("with the head %s: got %s, want it to miss the entry known from an earlier check", known, stdout)
		}
	}
	if got := o.ask(t, http.MethodGet, "/audit/verify", nil).must(t, 200); len(list(at(got.data(), "problems"))) != 0 {
		t.Errorf("got %s, want no problems", got.text)
	}
}
