package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// inForce is how long a change of a key may take until every gateway knows.
const inForce = time.Second

// office is the registry as its operator sees it.
type office struct {
	api           // as a broker sees it
	admin  string // address of the admin API
	key    string // an operator's
	ctl    string // path of registryctl
	config string // its config file

	mu      sync.Mutex
	secrets []string // all that the office was shown
}

func (o *office) shown(secret string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = append(o.secrets, secret)
	return secret
}

// ask calls the admin API as the operator.
func (o *office) ask(t *testing.T, method, path string, data any) answer {
	t.Helper()
	return o.askAs(t, o.key, method, path, data)
}

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

// broker makes a broker of a new name.
func (o *office) broker(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("ТОВ %x", time.Now().UnixNano())
	o.ask(t, "POST", "/brokers", fields{"name": name, "title": "Товариство <&>"}).must(t, 201)
	return name
}

// issue makes a key of a broker and returns its id and secret.
func (o *office) issue(t *testing.T, broker string, more fields) (id, secret string) {
	t.Helper()
	f := fields{"broker": broker, "name": "key of a test", "role": "broker", "levels": "3"}
	for name, value := range more {
		f[name] = value
	}
	got := o.ask(t, "POST", "/keys", f).must(t, 201)
	return text(got.data()["id"]), text(got.json["secret"])
}

// me is what a key gets from GET /me.
func (o *office) me(t *testing.T, key string) answer {
	t.Helper()
	return o.do(t, call{method: "GET", path: "/api/2.5/me", key: key})
}

// soon repeats a check until it holds, for the time in which changes of keys
// come into force.
func soon(t *testing.T, what string, within time.Duration, check func() bool) {
	t.Helper()
	for began := time.Now(); !check(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > within {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// RunAdmin runs the scenarios of those who administer a registry.
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
		{"a key may do what it was made for", testKeySettings},
		{"a rotated key has two secrets for a while", testRotation},
		{"a revoked key is refused within a second", testRevocation},
		{"a blocked broker's keys are refused", testBlocked},
		{"a key ends when it was said to", testExpiry},
		{"a key is used from where it may be", testAllowList},
		{"refused keys cannot be told apart", testRefusedAlike},
		{"use is seen, where from and how much", testUsage},
		{"bad requests are refused and change nothing", testBadAdminRequests},
		{"many change keys at once, and none is lost", testManyChanges},
		{"keys and brokers are found", testSearch},
		{"the command line does what the API does", testCommandLine},
		{"the command line works with assets", testCommandLineAssets},
		{"the command line says what is wrong, and why", testCommandLineFaults},
	} {
		t.Run(c.name, func(t *testing.T) { c.scenario(t, o) })
	}
	t.Run("the audit log tells it all, and no secret", func(t *testing.T) { testAudit(t, o) })
	return o.secrets
}

func testNewKey(t *testing.T, o *office) {
	broker := o.broker(t)
	_, secret := o.issue(t, broker, nil)
	got := o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(validAsset())}).must(t, 201)
	if owner := got.data()["owner"]; owner != broker {
		t.Errorf("the owner is %v, want %s", owner, broker)
	}
	if got := o.me(t, secret).must(t, 200); got.data()["broker"] != broker || got.data()["accreditations"] != "3" {
		t.Errorf("the key is %s", got.text)
	}
}

func testOperators(t *testing.T, o *office) {
	_, ofBroker := o.issue(t, o.broker(t), fields{"role": "administrator", "levels": ""})
	for _, c := range []struct {
		name, key string
	}{{"nobody", ""}, {"a stranger", "stranger"}, {"the sandbox's administrator", "administrator"},
		{"a broker", ofBroker}} {
		for _, path := range []string{"/keys", "/brokers", "/audit"} {
			if got := o.askAs(t, c.key, "GET", path, nil).fails(t, 401,
				"header/Authorization"); got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", c.name)
			}
		}
	}
	o.me(t, o.key).fails(t, 401, "header/Authorization") // an operator is nobody in the registry
	got := o.ask(t, "POST", "/keys", fields{"name": "reads along", "role": "auditor"}).must(t, 201)
	auditor := text(got.json["secret"])
	o.askAs(t, auditor, "GET", "/keys", nil).must(t, 200)
	o.askAs(t, auditor, "POST", "/brokers", fields{"name": "x"}).fails(t, 403, "header/Authorization")
	o.askAs(t, auditor, "POST", "/keys/"+text(got.data()["id"])+"/revoke", fields{}).
		fails(t, 403, "header/Authorization")
	o.ask(t, "POST", "/keys/"+text(got.data()["id"])+"/revoke", fields{}).must(t, 200)
	o.askAs(t, auditor, "GET", "/keys", nil).fails(t, 401, "header/Authorization")
}

func testKeySettings(t *testing.T, o *office) {
	broker := o.broker(t)
	id, secret := o.issue(t, broker, fields{"levels": "1"})
	create := func(f fields) answer {
		return o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(f)})
	}
	create(validAsset()).fails(t, 403, "body/accreditation")
	o.ask(t, "PATCH", "/keys/"+id, fields{"levels": "13", "test": true, "limits": fields{"write": fields{"1s": 50}}}).
		must(t, 200)
	soon(t, "a level that was added", inForce,
		func() bool { return create(validAsset().set("mode", "test")).status == 201 })
	create(validAsset()).fails(t, 403, "body/mode")
	got := o.ask(t, "PATCH", "/keys/"+id, fields{"name": "renamed", "test": false}).must(t, 200)
	if text(at(got.data(), "name")) != "renamed" || text(at(got.data(), "levels")) != "13" ||
		at(got.data(), "limits.write.1s") != json.Number("50") {
		t.Errorf("got %s", got.text)
	}
	got = o.ask(t, "PATCH", "/keys/"+id, fields{"limits": nil}).must(t, 200)
	if at(got.data(), "limits") != nil {
		t.Errorf("limits that were cleared are %v", at(got.data(), "limits"))
	}
}

func testRotation(t *testing.T, o *office) {
	id, first := o.issue(t, o.broker(t), nil)
	o.me(t, first).must(t, 200)
	rotated := o.ask(t, "POST", "/keys/"+id+"/rotate", fields{"grace": "1h"}).must(t, 200)
	second := text(rotated.json["secret"])
	for _, secret := range []string{first, second} {
		if got := o.me(t, secret).must(t, 200); got.data()["key"] != id {
			t.Errorf("the key is %s", got.text)
		}
	}
	soon(t, "both secrets' last uses are shown", 10*time.Second, func() bool {
		got := o.ask(t, "GET", "/keys/"+id, nil).must(t, 200)
		return text(at(got.data(), "secrets.0.uses.0.from")) != "" &&
			text(at(got.data(), "secrets.1.uses.0.from")) != ""
	})
	third := text(o.ask(t, "POST", "/keys/"+id+"/rotate", fields{}).must(t, 200).json["secret"])
	soon(t, "without a grace the secret before is refused", inForce,
		func() bool { return o.me(t, second).status == 401 })
	o.me(t, first).must(t, 200) // has its grace still
	o.me(t, third).must(t, 200)
	for range 2 {
		o.ask(t, "POST", "/keys/"+id+"/rotate", fields{"grace": "1h"}).must(t, 200)
	}
	o.ask(t, "POST", "/keys/"+id+"/rotate", fields{"grace": "1h"}).fails(t, 409, "body/grace")
}

func testRevocation(t *testing.T, o *office) {
	id, secret := o.issue(t, o.broker(t), nil)
	o.me(t, secret).must(t, 200)
	if got := o.ask(t, "POST", "/keys/"+id+"/revoke", fields{}).must(t, 200); got.data()["state"] != "revoked" {
		t.Errorf("got %s", got.text)
	}
	soon(t, "a revoked key is refused", inForce, func() bool { return o.me(t, secret).status == 401 })
	for _, c := range []struct {
		path string
		body any
	}{{"/revoke", fields{}}, {"/rotate", fields{}}} {
		o.ask(t, "POST", "/keys/"+id+c.path, c.body).fails(t, 409, "url/key")
	}
	o.ask(t, "PATCH", "/keys/"+id, fields{"name": "x"}).fails(t, 409, "url/key")
}

func testBlocked(t *testing.T, o *office) {
	broker := o.broker(t)
	_, secret := o.issue(t, broker, nil)
	o.me(t, secret).must(t, 200)
	o.ask(t, "PATCH", "/brokers/"+broker, fields{"blocked": true}).must(t, 200)
	soon(t, "a blocked broker's key is refused", inForce, func() bool { return o.me(t, secret).status == 401 })
	o.ask(t, "PATCH", "/brokers/"+broker, fields{"blocked": false}).must(t, 200)
	soon(t, "it is good again", inForce, func() bool { return o.me(t, secret).status == 200 })
}

func testExpiry(t *testing.T, o *office) {
	end := time.Now().Add(1500 * time.Millisecond)
	id, secret := o.issue(t, o.broker(t), fields{"expires": end})
	o.me(t, secret).must(t, 200)
	for o.me(t, secret).status == 200 {
		if late := time.Since(end); late > 100*time.Millisecond {
			t.Fatalf("good %v after its end", late)
		}
	}
	if early := time.Until(end); early > 0 {
		t.Errorf("refused %v before its end", early)
	}
	if got := o.ask(t, "GET", "/keys/"+id, nil).must(t, 200); got.data()["state"] != "expired" {
		t.Errorf("got %s", got.text)
	}
	o.ask(t, "PATCH", "/keys/"+id, fields{"expires": nil}).must(t, 200)
	soon(t, "a key without an end is good", inForce, func() bool { return o.me(t, secret).status == 200 })
}

func testAllowList(t *testing.T, o *office) {
	id, secret := o.issue(t, o.broker(t), fields{"allow": []string{"127.0.0.0/8", "::1"}})
	o.me(t, secret).must(t, 200)
	o.ask(t, "PATCH", "/keys/"+id, fields{"allow": []string{"192.0.2.7"}}).must(t, 200)
	soon(t, "another address is refused", inForce, func() bool { return o.me(t, secret).status == 403 })
	o.me(t, secret).fails(t, 403, "header/Authorization")
	o.do(t, call{method: "GET", path: "/assets", key: secret}).must(t, 200) // reading needs no key
	o.do(t, call{method: "GET", path: "/api/2.5/me", key: secret,
		header: map[string]string{"X-Forwarded-For": "192.0.2.7"}}).fails(t, 403, "header/Authorization")
	o.ask(t, "PATCH", "/keys/"+id, fields{"allow": []string{}}).must(t, 200)
	soon(t, "an empty list lets all in", inForce, func() bool { return o.me(t, secret).status == 200 })
}

func testRefusedAlike(t *testing.T, o *office) {
	broker := o.broker(t)
	revokedID, revoked := o.issue(t, broker, nil)
	_, expired := o.issue(t, broker, fields{"expires": time.Now().Add(300 * time.Millisecond)})
	rotatedID, rotated := o.issue(t, broker, nil)
	o.ask(t, "POST", "/keys/"+revokedID+"/revoke", fields{}).must(t, 200)
	o.ask(t, "POST", "/keys/"+rotatedID+"/rotate", fields{}).must(t, 200)
	time.Sleep(300 * time.Millisecond)
	unknown := o.me(t, "unknown").fails(t, 401, "header/Authorization")
	for _, c := range []struct {
		name, key string
	}{{"revoked", revoked}, {"expired", expired}, {"rotated", rotated}, {"an operator's", o.key}} {
		if got := o.me(t, c.key).fails(t, 401, "header/Authorization"); got.text != unknown.text {
			t.Errorf("%s: %s, and of an unknown key %s", c.name, got.text, unknown.text)
		}
	}
}

func testUsage(t *testing.T, o *office) {
	id, secret := o.issue(t, o.broker(t), nil)
	for range 3 {
		o.do(t, call{method: "GET", path: "/assets", key: secret}).must(t, 200)
	}
	o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(validAsset())}).must(t, 201)
	soon(t, "three pages and a write are counted", 10*time.Second, func() bool {
		lists, writes := 0, 0
		for _, day := range list(o.ask(t, "GET", "/keys/"+id+"/usage?days=2", nil).must(t, 200).json["data"]) {
			counts := object(object(day)["counts"])
			lists, writes = lists+number(counts["list"]), writes+number(counts["write"])
		}
		return lists == 3 && writes == 1
	})
	got := o.ask(t, "GET", "/keys/"+id, nil).must(t, 200)
	used, err := time.Parse(time.RFC3339Nano, text(at(got.data(), "secrets.0.uses.0.time")))
	if err != nil || time.Since(used) > time.Minute || text(at(got.data(), "secrets.0.uses.0.from")) != "127.0.0.1" {
		t.Errorf("last used: %s, %v", got.text, err)
	}
}

func number(value any) int {
	n, _ := value.(json.Number)
	i, _ := n.Int64()
	return int(i)
}

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
		{"a broker twice", "POST", "/brokers", fields{"name": broker}, 409, []string{"body/name"}},
		{"no name", "POST", "/brokers", fields{}, 400, []string{"body/name"}},
		{"a name of blanks", "POST", "/brokers", fields{"name": " x "}, 400, []string{"body/name"}},
		{"a name with a slash", "POST", "/brokers", fields{"name": "a/b"}, 400, []string{"body/name"}},
		{"an unknown field", "POST", "/brokers", fields{"name": "x", "colour": "blue"}, 400, []string{"body/colour"}},
		{"an unknown broker", "POST", "/keys", key("broker", "nobody"), 400, []string{"body/broker"}},
		{"no broker", "POST", "/keys", key("broker", ""), 400, []string{"body/broker"}},
		{"a broker's operator", "POST", "/keys", key("role", "operator"), 400, []string{"body/broker", "body/role"}},
		{"a service's key", "POST", "/keys", key("role", "service"), 400, []string{"body/role"}},
		{"levels of no kind", "POST", "/keys", key("levels", "39"), 400, []string{"body/levels"}},
		{"an end that is over", "POST", "/keys", key("expires", "2020-01-01T00:00:00Z"), 400, []string{"body/expires"}},
		{"no address", "POST", "/keys", key("allow", []string{"home"}), 400, []string{"body/allow.0"}},
		{"no class", "POST", "/keys", key("limits", fields{"delete": fields{"1s": 1}}), 400,
			[]string{"body/limits.delete"}},
		{"no window", "POST", "/keys", key("limits", fields{"write": fields{"1ms": 1}}), 400,
			[]string{"body/limits.write.1ms"}},
		{"all at once", "POST", "/keys", fields{"levels": "x", "colour": 1}, 400,
			[]string{"body/colour", "body/levels", "body/name", "body/role"}},
		{"an unknown key", "GET", "/keys/none", nil, 404, []string{"url/key"}},
		{"to rotate it", "POST", "/keys/none/rotate", fields{}, 404, []string{"url/key"}},
		{"an unknown broker read", "GET", "/brokers/nobody", nil, 404, []string{"url/broker"}},
		{"a change of the broker", "PATCH", "/keys/" + id, fields{"broker": "x"}, 400, []string{"body/broker"}},
		{"a change to operator", "PATCH", "/keys/" + id, fields{"role": "operator"}, 400, []string{"body/role"}},
		{"no grace", "POST", "/keys/" + id + "/rotate", fields{"grace": "soon"}, 400, []string{"body/grace"}},
		{"a grace too long", "POST", "/keys/" + id + "/rotate", fields{"grace": "10000h"}, 400, []string{"body/grace"}},
		{"a limit of nought", "GET", "/keys?limit=0", nil, 400, []string{"querystring/limit"}},
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
		t.Errorf("something was changed: %s, before %s", after, before)
	}
}

func testManyChanges(t *testing.T, o *office) {
	broker := o.broker(t)
	ids := make([]string, 12)
	var working sync.WaitGroup
	for i := range ids {
		working.Go(func() {
			got := o.ask(t, "POST", "/keys", fields{"broker": broker, "name": fmt.Sprint("key ", i), "role": "broker"})
			if got.status == 201 || got.status == 409 { // 409: too many at once, said to be repeated
				ids[i] = text(got.data()["id"])
				return
			}
			t.Errorf("answered %d: %s", got.status, got.text)
		})
	}
	working.Wait()
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if found := list(o.ask(t, "GET", "/keys?broker="+queryEscape(broker),
		nil).must(t, 200).json["data"]); len(found) != len(ids) || len(ids) < 6 {
		t.Errorf("%d keys were made, and %d are there", len(ids), len(found))
	}
}

func queryEscape(text string) string { return strings.ReplaceAll(text, " ", "%20") }

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
		got := o.ask(t, "GET", "/keys?broker="+queryEscape(broker)+"&"+c.query, nil).must(t, 200)
		if found := list(got.json["data"]); len(found) != c.want {
			t.Errorf("%s: %d keys, want %d", c.query, len(found), c.want)
		}
	}
	found := map[string]bool{}
	for after := ""; ; {
		got := o.ask(t, "GET", "/keys?limit=2&broker="+queryEscape(broker)+"&after="+after, nil).must(t, 200)
		for _, k := range list(got.json["data"]) {
			found[text(object(k)["id"])] = true
		}
		if after = text(got.json["next"]); after == "" {
			break
		}
	}
	if len(found) != 5 {
		t.Errorf("pages have %v", found)
	}
	if got := o.ask(t, "GET", "/brokers?q="+queryEscape(strings.ToLower(broker)), nil).
		must(t, 200); len(list(got.json["data"])) != 1 {
		t.Errorf("got %s", got.text)
	}
}

// run runs registryctl and returns what it prints.
func (o *office) run(t *testing.T, stdin string, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	cmd := exec.Command(o.ctl, append([]string{"--config", o.config}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Dir(o.config), "GORACE=atexit_sleep_ms=0")
	err := cmd.Run()
	return out.String(), errs.String(), err == nil
}

func (o *office) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, ok := o.run(t, "", args...)
	if !ok {
		t.Fatalf("registryctl %s: %s", strings.Join(args, " "), stderr)
	}
	return stdout
}

// runJSON runs a command with -o json.
func (o *office) runJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var got map[string]any
	if printed := o.mustRun(t, append(args, "-o", "json")...); json.Unmarshal([]byte(printed), &got) != nil {
		t.Fatalf("registryctl %s prints no JSON object: %s", strings.Join(args, " "), printed)
	}
	if secret := text(got["secret"]); secret != "" {
		o.shown(secret)
	}
	return got
}

func testCommandLine(t *testing.T, o *office) {
	name := fmt.Sprintf("cli-%x", time.Now().UnixNano())
	o.mustRun(t, "brokers", "create", name, "--title", "Command Line Ltd")
	if got := o.mustRun(t, "brokers", "list", "--search", name); !strings.Contains(got, "NAME") ||
		!strings.Contains(got, "Command Line Ltd") {
		t.Errorf("brokers list prints %s", got)
	}
	made := o.runJSON(t, "keys", "create", "--broker", name, "--name", "first", "--levels", "13", "--limit",
		"write:1m=100", "--limit", "write:1s=5", "--allow", "127.0.0.0/8", "--expires", "720h")
	id, secret := text(at(made, "data.id")), text(made["secret"])
	if at(made, "data.limits.write.1m") != float64(100) || text(at(made, "data.allow.0")) != "127.0.0.0/8" ||
		text(at(made, "data.expires")) == "" {
		t.Errorf("the key is %v", made)
	}
	o.me(t, secret).must(t, 200)
	o.mustRun(t, "keys", "change", id, "--allow", "any", "--expires", "never", "--limit", "none")
	if got := o.runJSON(t, "keys", "get", id); at(got, "data.allow") != nil || at(got, "data.expires") != nil ||
		at(got, "data.limits") != nil || at(got, "data.levels") != "13" {
		t.Errorf("changed, the key is %v", got)
	}
	printed := o.mustRun(t, "keys", "rotate", id, "--grace", "1h")
	_, rest, found := strings.Cut(printed, "ark_")
	if !found || !strings.Contains(printed, "GOOD UNTIL") {
		t.Fatalf("keys rotate prints %s", printed)
	}
	second, _, _ := strings.Cut("ark_"+rest, "\n")
	o.me(t, o.shown(second)).must(t, 200)
	for _, args := range [][]string{{"keys", "list", "--broker", name}, {"keys", "usage", id},
		{"audit", "list", "--last", "5"}, {"keys", "list", "--state", "active"}} {
		if got := o.mustRun(t, args...); strings.Contains(got, secret) || strings.Contains(got, second) ||
			len(strings.Split(strings.TrimSpace(got), "\n")) < 1 {
			t.Errorf("%v prints %s", args, got)
		}
	}
	o.mustRun(t, "keys", "revoke", id)
	soon(t, "a revoked key is refused", inForce, func() bool { return o.me(t, second).status == 401 })
	o.mustRun(t, "brokers", "change", name, "--blocked")
	if got := o.runJSON(t, "brokers", "get", name); at(got, "data.blocked") != true {
		t.Errorf("the broker is %v", got)
	}
	if got := o.mustRun(t, "completion", "bash"); !strings.Contains(got, "registryctl") {
		t.Error("no completion")
	}
	if got := o.mustRun(t, "__complete", "keys", "get", ""); !strings.Contains(got, id) {
		t.Errorf("ids are completed as %s", got)
	}
}

func testCommandLineAssets(t *testing.T, o *office) {
	text, err := json.Marshal(validAsset())
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, ok := o.run(t, string(text), "assets", "create", "-f", "-", "-o", "json")
	var made map[string]any
	if !ok || json.Unmarshal([]byte(stdout), &made) != nil {
		t.Fatalf("create prints %s, %s", stdout, stderr)
	}
	id, token := fmt.Sprint(at(made, "data.id")), fmt.Sprint(at(made, "access.token"))
	t.Setenv("REGISTRYCTL_TOKEN", token)
	stdout, stderr, ok = o.run(t, `{"data": {"status": "pending"}}`, "assets", "patch", id, "-f", "-")
	if !ok || !strings.Contains(stdout, "pending") {
		t.Fatalf("patch prints %s, %s", stdout, stderr)
	}
	if got := o.mustRun(t, "assets", "get", id); !strings.Contains(got, "pending") ||
		!strings.Contains(got, "Нежитлове") {
		t.Errorf("get prints %s", got)
	}
	if got := o.mustRun(t, "assets", "list", "--descending", "--limit", "5"); !strings.Contains(got, id) ||
		!strings.Contains(got, "--offset") {
		t.Errorf("list prints %s", got)
	}
}

func testCommandLineFaults(t *testing.T, o *office) {
	open := filepath.Join(t.TempDir(), "open.yaml")
	if err := os.WriteFile(open, []byte("admin-key: hunter2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("admin-kye: hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"a config file that others read", []string{"--config", open, "keys", "list"}, "chmod 600"},
		{"a config file with a mistake", []string{"--config", wrong, "keys", "list"}, "admin-url"},
		{"a config file that is not", []string{"--config", open + "x", "keys", "list"}, "no such file"},
		{"a wrong key", []string{"--admin-key", "hunter2", "keys", "list"}, "401"},
		{"nobody there", []string{"--admin-url", "http://127.0.0.1:1", "keys", "list"}, "does not answer"},
		{"somebody else there", []string{"--admin-url", o.base, "keys", "list"}, "404"},
		{"an unknown key", []string{"keys", "get", "none"}, "404 Not Found: url key: Not Found"},
		{"a bad format", []string{"keys", "list", "-o", "xml"}, "table or json"},
		{"a bad limit", []string{"keys", "create", "--limit", "many"}, "CLASS:WINDOW=REQUESTS"},
		{"a bad end", []string{"keys", "create", "--expires", "soon"}, "never"},
		{"a bad field", []string{"keys", "create", "--broker", "nobody", "--name", "x"}, "body broker"},
		{"no argument", []string{"keys", "get"}, "1 arg"},
		{"an unknown command", []string{"keys", "dance"}, "dance"},
		{"an unknown asset", []string{"assets", "get", "none"}, "404"},
		{"a body that is none", []string{"assets", "create", "-f", wrong}, "JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, ok := o.run(t, "", c.args...)
			if ok || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.says) ||
				strings.Contains(stderr, "hunter2") {
				t.Errorf("it says %q, want %q", stderr, c.says)
			}
		})
	}
}

func testAudit(t *testing.T, o *office) {
	first := o.mustRun(t, "audit", "verify")
	if !strings.Contains(first, "is whole") {
		t.Errorf("it prints %s", first)
	}
	o.broker(t)
	if again := o.mustRun(t, "audit", "verify"); !strings.Contains(again, "known before") ||
		strings.Contains(again, "none was known") {
		t.Errorf("again it prints %s", again)
	}
	log := o.mustRun(t, "audit", "list", "-o", "json")
	for _, says := range []string{"command admin-key", "broker.create", "broker.change", "key.create", "key.change",
		"key.rotate", "key.revoke", `"before"`, "127.0.0.1"} {
		if !strings.Contains(log, says) {
			t.Errorf("the audit log has no %s", says)
		}
	}
	everything := log + o.mustRun(t, "keys", "list", "-o", "json") + o.mustRun(t, "brokers", "list", "-o", "json")
	for _, secret := range o.secrets {
		if strings.Contains(everything, secret) {
			t.Errorf("the secret %s is told", secret)
		}
	}
	// A log whose tail was cut off, or which was made anew, is not the one known.
	for _, known := range []string{"1:" + strings.Repeat("0", 64), "1000000:" + strings.Repeat("0", 64)} {
		if stdout, _, ok := o.run(t, "", "audit", "verify", "--head", known); ok ||
			!strings.Contains(stdout, "known from before") {
			t.Errorf("with the head %s it prints %s", known, stdout)
		}
	}
	if got := o.ask(t, http.MethodGet, "/audit/verify", nil).must(t, 200); len(list(at(got.data(), "problems"))) != 0 {
		t.Errorf("got %s", got.text)
	}
}
