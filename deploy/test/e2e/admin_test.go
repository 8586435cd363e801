package e2e

import (
	"bytes"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// adminKey creates an operator's key with the command admin-key and returns it.
func adminKey(t *testing.T, program string, args ...string) string {
	t.Helper()
	build(t)
	cmd := exec.Command(filepath.Join(bin, program), append([]string{"admin-key", "--name", "Оператор"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	key, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(key), "ark_") {
		t.Fatalf("%s admin-key: got %s, %v and %s, want a key", program, key, err, stderr.String())
	}
	return strings.TrimSpace(string(key))
}

// checkSecrets checks that none of the secrets occurs in any of the texts.
func checkSecrets(t *testing.T, secrets []string, where ...string) {
	t.Helper()
	if len(secrets) < 20 {
		t.Errorf("got %d secrets from the scenarios, want at least 20", len(secrets))
	}
	for _, secret := range secrets {
		for _, text := range where {
			if strings.Contains(text, secret) {
				t.Errorf("got the secret %s in a log or a store, want no secret there", secret)
			}
		}
	}
}

func TestAdminStandalone(t *testing.T) {
	addr, admin, dir, output := freeAddr(t), freeAddr(t), filepath.Join(t.TempDir(), "data"), &processes.Output{}
	if err := standalone(t, addr, dir, output).Stop(); err != nil { // creates the data directory
		t.Fatal(err)
	}
	before := adminKey(t, "registry", "--data", dir)
	p := standalone(t, addr, dir, output, "--admin-addr", admin, "--log-level", "debug")
	during := adminKey(t, "registry", "--data", dir) // the command asks the running registry
	o := &office{api: api{"http://" + addr, "2.5"}, admin: "http://" + admin}
	for _, key := range []string{before, during} {
		o.askAs(t, key, "GET", "/brokers", nil).must(t, 200)
	}
	secrets := append(RunAdmin(t, "http://"+addr, "http://"+admin, during, filepath.Join(bin, "registryctl")), before)
	expect.OK(t, p.Stop())
	stored := expect.Get(os.ReadFile(filepath.Join(dir, "tokens.db")))(t)
	checkSecrets(t, secrets, output.String(), string(stored))
	standalone(t, addr, dir, &processes.Output{}, "--admin-addr", admin)
	o.askAs(t, before, "GET", "/audit/verify", nil).must(t, 200)
	o.key = before
	testFind(t, o)
}

// testFind finds an asset, and removes a broker. Both need an auth service that knows the asset services.
func testFind(t *testing.T, o *office) {
	made := o.create(t, validAsset())
	for _, q := range []string{made.id, strings.ToUpper(made.id), text(made.data()["assetID"])} {
		got := o.ask(t, "GET", "/find?q="+url.QueryEscape(q), nil).must(t, 200)
		if found := list(at(got.data(), "assets")); len(found) != 1 || text(object(found[0])["id"]) != made.id {
			t.Errorf("%s: got %s, want the asset %s", q, got.text, made.id)
		}
	}
	name := o.broker(t)
	o.ask(t, "DELETE", "/brokers/"+url.PathEscape(name), fields{}).must(t, 200)
	o.ask(t, "GET", "/brokers/"+url.PathEscape(name), nil).must(t, 404)
}

func TestAdminSplitOnRedis(t *testing.T) {
	redis, admin, dir, output := redistest.Start(t), freeAddr(t), filepath.Join(t.TempDir(), "data"),
		&processes.Output{}
	t.Setenv("AUTHSVC_ADMIN_ADDR", admin)
	s := split(t, dir, processes.Stores{Tokens: redis.URL()}, output, "--log-level", "debug")
	key := adminKey(t, "authsvc", "--store", redis.URL(), "--secret-file", filepath.Join(dir, "secret"))
	secrets := RunAdmin(t, s.URL, "http://"+admin, key, filepath.Join(bin, "registryctl"))
	checkSecrets(t, secrets, output.String())
	t.Run("keys survive a crash of Redis and cannot be checked without it", func(t *testing.T) {
		o := &office{api: api{s.URL, "2.5"}, admin: "http://" + admin, key: key}
		_, secret := o.issue(t, o.broker(t), nil)
		redis.Kill(t)
		soon(t, "a key of the store cannot be checked", 2*inForce, func() bool { return o.me(t, secret).status == 503 })
		o.me(t, "broker").must(t, 200)
		redis.Restart(t)
		o.me(t, secret).must(t, 200)
		o.ask(t, "GET", "/audit/verify", nil).must(t, 200)
	})
}
