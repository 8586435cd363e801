package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestAStoreOfKeysThatWentBack ends rights in each way, and lets Redis go back to its files of before. No secret that
// was ended may open the registry again, not for a moment, and every other one must. This holds while the auth services
// run, after they have started again, and after Redis has gone back once more.
// Promises: endings-hold, audit-lost
func TestAStoreOfKeysThatWentBack(t *testing.T) {
	build(t)
	redis, dir, output := redistest.Start(t), t.TempDir(), &processes.Output{}
	secretFile := filepath.Join(dir, "secret")
	expect.OK(t, os.WriteFile(secretFile, []byte(strings.Repeat("s", 64)), 0o600))
	start := func(program, addr string, args ...string) (stop func()) {
		p := expect.Get(processes.Start(t.Context(), addr, output, filepath.Join(bin, program),
			append([]string{"--addr", addr, "--secret-file", secretFile}, args...)...))(t)
		killAtEnd(t, p, output)
		return func() {
			expect.Try(t, p.Kill())
		}
	}
	one, two, admin, assets, edge := freeAddr(t), freeAddr(t), freeAddr(t), freeAddr(t), freeAddr(t)
	startAuth := func() (stop func()) {
		stopOne := start("authsvc", one, "--store", redis.URL(), "--admin-addr", admin)
		stopTwo := start("authsvc", two, "--store", redis.URL())
		return func() { stopOne(); stopTwo() }
	}
	stopAuth := startAuth()
	both := "http://" + one + ",http://" + two
	start("assetsvc", assets, "--auth-url", both, "--store", "file:"+filepath.Join(dir, "assets.db"))
	start("gateway", edge, "--auth-url", both, "--assets-url", "http://"+assets, "--no-limits")
	o := &office{api: api{"http://" + edge, "2.5"}, admin: "http://" + admin,
		key: adminKey(t, "authsvc", "--store", redis.URL(), "--secret-file", secretFile)}
	ended, others := endRights(t, o, redis.Keep)
	for _, then := range []struct {
		name string
		back func()
	}{
		{"under running services", func() { ended.goBack(t) }},
		{"and the services start", func() { stopAuth(); ended.goBack(t); stopAuth = startAuth() }},
	} {
		t.Run(then.name, func(t *testing.T) {
			then.back()
			checkEnded(t, o, ended.secrets, others)
			got := o.ask(t, "GET", "/audit/verify", nil).must(t, 200)
			if problems := at(got.data(), "problems"); len(problems.([]any)) > 0 || at(got.data(), "lost.0") == nil {
				t.Errorf("the check of the log: got %s, want no problem and what is lost", got.text)
			}
		})
	}
}

// endings are secrets that have ended, by what ended them, and the way back.
type endings struct {
	secrets map[string]string
	goBack  func(testing.TB)
}

// endRights makes keys, keeps the data of the store, and ends some of the keys. No answer may have a warning.
func endRights(
	t *testing.T, o *office, keep func(testing.TB) func(testing.TB),
) (ended endings, others map[string]string) {
	t.Helper()
	ids, secrets := map[string]string{}, map[string]string{}
	brokers := map[string]string{}
	for _, name := range []string{
		"revoked", "rotated", "rotated with grace", "expired", "blocked", "lesser", "networks", "test only",
		"renamed", "untouched", "unblocked", "new level",
	} {
		brokers[name] = o.broker(t)
		ids[name], secrets[name] = o.issue(t, brokers[name], nil)
	}
	block := func(name string, blocked bool) {
		o.ask(t, "PATCH", "/brokers/"+brokers[name], fields{"blocked": blocked}).must(t, 200)
	}
	block("unblocked", true)
	ended = endings{map[string]string{}, keep(t)}
	block("unblocked", false)
	ask := func(name, method, path string, f fields) {
		t.Helper()
		got := o.ask(t, method, "/keys/"+ids[name]+path, f).must(t, 200)
		if at(got.json, "warnings") != nil {
			t.Errorf("%s: got the warnings %v, want none", name, at(got.json, "warnings"))
		}
	}
	ask("revoked", "POST", "/revoke", fields{})
	ask("rotated", "POST", "/rotate", fields{})
	ask("rotated with grace", "POST", "/rotate", fields{"grace": "1s"})
	ask("expired", "PATCH", "", fields{"expires": time.Now().Add(time.Second)})
	ask("lesser", "PATCH", "", fields{"levels": "1"})
	ask("networks", "PATCH", "", fields{"allow": []string{"192.0.2.0/24"}})
	ask("test only", "PATCH", "", fields{"test": true})
	block("blocked", true)
	ask("renamed", "PATCH", "", fields{"name": "another name"})
	ask("new level", "PATCH", "", fields{"levels": "123"})
	for _, name := range []string{"renamed", "untouched", "new level", "unblocked"} {
		if others == nil {
			others = map[string]string{}
		}
		others[name] = secrets[name]
		delete(secrets, name)
	}
	delete(others, "unblocked") // the store forgot that the broker is no longer blocked, and nobody may widen a right
	ended.secrets = secrets
	time.Sleep(1100 * time.Millisecond) // the time of the grace and of the expiry
	return ended, others
}

// checkEnded asks with all secrets until each of the others opens the registry. Meanwhile, and after that, no ended
// one may.
func checkEnded(t *testing.T, o *office, ended, others map[string]string) {
	t.Helper()
	closed := func() {
		for name, secret := range ended {
			if got := o.me(t, secret); got.status == 200 {
				t.Fatalf("a key that is %s: got 200, want a refusal", name)
			}
		}
	}
	for name, secret := range others {
		soon(t, "a key that is "+name+" opens the registry", 10*time.Second, func() bool {
			closed()
			return !t.Failed() && o.me(t, secret).status == 200
		})
	}
	closed()
}
