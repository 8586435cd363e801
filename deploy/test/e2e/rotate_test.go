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
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// drill has data that was made before a rotation of the secret. The data must work after the rotation, too.
type drill struct {
	apis   []api   // one for each gateway
	before created // an asset from before the rotation
	cookie string  // the cookie SERVER_ID from before the rotation

	repeat     call // a creation from before the rotation; the test sends it again
	repeatable any  // id of the created asset; nil if the test does not repeat the creation any more
}

// begin creates data that is sealed with the old secret.
func begin(t *testing.T, apis ...api) *drill {
	t.Helper()
	d := &drill{apis: apis}
	d.before = apis[0].create(t, validAsset())
	d.repeat = call{method: "POST", path: "/assets", key: "broker", body: data(validAsset()),
		header: map[string]string{"Idempotency-Key": "before-the-rotation"}}
	d.repeatable = apis[0].do(t, d.repeat).must(t, 201).data()["id"]
	d.cookie = serverID(t, apis[0])
	return d
}

// serverID returns the value of the cookie SERVER_ID.
func serverID(t *testing.T, a api) string {
	t.Helper()
	resp := expect.Get(http.Get(a.base + "/api/2.5/spore"))(t)
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		if c.Name == "SERVER_ID" {
			return c.Value
		}
	}
	t.Fatal("got no cookie SERVER_ID, want one")
	return ""
}

// holds checks that each gateway still accepts the data from before the rotation. It sends each request twice, so
// that both processes of each service can answer.
func (d *drill) holds(t *testing.T, when string) {
	t.Helper()
	for i, a := range d.apis {
		for try := range 2 {
			unchanged := a.read(t, d.before.id).must(t, 200).data()["dateModified"]
			if got := a.patch(t, d.before, fields{}).must(t, 200).data()["dateModified"]; got != unchanged {
				t.Errorf("%s: gateway %d: got dateModified %v after an empty change, want %v", when, i, got, unchanged)
			}
			a.patch(t, d.before, fields{"title": fmt.Sprint(when, i, try)}).must(t, 200)
			fresh := a.create(t, validAsset())
			a.patch(t, fresh, fields{"title": "y"}).must(t, 200)
			if d.repeatable == nil {
				continue
			}
			if got := a.do(t, d.repeat).must(t, 201).data()["id"]; got != d.repeatable {
				t.Errorf("%s: gateway %d: got asset %v for a repeated creation, want %v", when, i, got, d.repeatable)
			}
		}
		expect.Equal(t, serverID(t, a), d.cookie, "%s: gateway %d, the cookie", when, i)
	}
}

// TestTheSecretIsRotatedByRollingRestarts follows the steps of docs/operations.md. After each step, tokens and the
// cookie from before the rotation must still be accepted.
func TestTheSecretIsRotatedByRollingRestarts(t *testing.T) {
	t.Parallel()
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	stores := newStores(t, mongo, redis)
	f := startFleet(t, stores)
	args := f.members[0].args
	file := args[slices.Index(args, "--secret-file")+1]
	old := expect.Get(os.ReadFile(file))(t)
	fresh := strings.Repeat("new!", 8)
	keep := func(secrets ...string) {
		t.Helper()
		expect.OK(t, os.WriteFile(file, []byte(strings.Join(secrets, "\n")), 0o600))
	}
	adminKey(t, "authsvc", "--store", stores.Tokens, "--secret-file", file) // adds an entry to the audit log
	d := begin(t, api{f.gateways[0], "2.5"}, api{f.gateways[1], "2.5"})

	keep(string(old), fresh)
	gateway := exec.Command(filepath.Join(bin, "gateway"),
		append(slices.Clone(f.members[5].args), "--addr", "127.0.0.1:0")...)
	if text, err := gateway.CombinedOutput(); err == nil || !strings.Contains(string(text), d.cookie) {
		t.Errorf("a gateway without --server-id: got %v, %s, want a refusal with %s", err, text, d.cookie)
	}
	f.members[4].args, f.members[5].args = append(f.members[4].args, "--server-id", d.cookie),
		append(f.members[5].args, "--server-id", d.cookie)
	d.roll(t, f, "both are known")
	keep(fresh, string(old))
	d.roll(t, f, "the new one comes first")
	// The second run finds nothing that the old secret sealed.
	for _, want := range []string{"Sealed anew", "Sealed anew with the first secret: 0"} {
		assets := reseal(t, stores, "assetsvc", "--store", stores.Assets, "--secret-file", file, "--auth-url",
			"http://"+f.members[0].addr)
		entries := reseal(t, stores, "authsvc", "--store", stores.Tokens, "--secret-file", file)
		if !strings.Contains(assets, want) || !strings.Contains(entries, "The audit log is in order. ") {
			t.Errorf("got %s and %s, want %q", assets, entries, want)
		}
	}
	keep(fresh)
	// The registry needs the old secret to recognize the repeat. An operator who follows the documentation waits a day
	// before this step, until no creation can be repeated any more.
	d.repeatable = nil
	d.roll(t, f, "the old one is gone")
	if got := reseal(t, stores, "authsvc", "--store", stores.Tokens, "--secret-file", file); !strings.Contains(got,
		"in order. 0 entries") {
		t.Errorf("without the old secret: got %s, want the log in order", got)
	}
}

// roll restarts the processes of a fleet one after another, and calls the method `holds` after each restart.
func (d *drill) roll(t *testing.T, f *fleet, when string) {
	t.Helper()
	for i, m := range f.members {
		expect.Nil(t, m.process.Stop(), "%s: %s", when, m.name)
		f.start(t, m)
		soon(t, "no gateway has a warning", 20*time.Second, func() bool {
			return !slices.ContainsFunc(d.apis, func(a api) bool {
				return len(list(a.readiness(t)["warnings"])) > 0
			})
		})
		d.holds(t, fmt.Sprint(when, ", ", i+1, " processes restarted"))
	}
}

// readiness returns the body of a gateway's /readyz.
func (a api) readiness(t *testing.T) (said map[string]any) {
	t.Helper()
	resp := expect.Get(http.Get(a.base + "/readyz"))(t)
	defer resp.Body.Close()
	expect.OK(t, json.NewDecoder(resp.Body).Decode(&said))
	return said
}

// reseal runs the command reseal of a service on its store, and returns the output.
func reseal(t *testing.T, stores processes.Stores, program string, args ...string) string {
	t.Helper()
	text, err := exec.Command("env", stores.Command(filepath.Join(bin, program),
		append([]string{"reseal"}, args...)...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s reseal: %v: %s", program, err, text)
	}
	return string(text)
}

// TestTheSecretOfADataDirectoryIsRotated follows the documented steps for one process. Data from before the rotation
// must still be accepted afterwards.
func TestTheSecretOfADataDirectoryIsRotated(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	addr := freeAddr(t)
	run := func() *processes.Process { return standalone(t, addr, dir, &processes.Output{}) }
	registry := run()
	adminKey(t, "registry", "--data", dir)
	d := begin(t, api{"http://" + addr, "2.5"})
	mustRefuse(t, "in use", "rotate-secret", "--data", dir)
	stop := func() {
		t.Helper()
		expect.OK(t, registry.Stop())
	}
	stop()
	mustRefuse(t, "no rotation to finish", "rotate-secret", "--data", dir, "--finish")
	mustRefuse(t, "is no data directory", "rotate-secret", "--data", filepath.Join(dir, "none"))
	// The second run finds that a rotation has begun, and adds no third secret.
	for _, want := range []string{"2 token records, 0 webhooks, 1 entries", "0 token records, 0 webhooks, 0 entries"} {
		if got := mustRun(t, "rotate-secret", "--data", dir); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	registry = run()
	d.holds(t, "rotated")
	stop()
	mustRun(t, "rotate-secret", "--data", dir, "--finish")
	if text, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the secret has %d lines, %v; want 1", strings.Count(string(text), "\n"), err)
	}
	backup, restored := filepath.Join(t.TempDir(), "backup.tar"), filepath.Join(t.TempDir(), "restored")
	mustRun(t, "backup", "--data", dir, "--to", backup)
	mustRun(t, "restore", "--from", backup, "--data", restored)
	// Without the old secret, the registry does not recognize the repeat.
	dir, d.repeatable = restored, nil
	registry = run()
	d.holds(t, "finished")
	stop()
	if got := reseal(t, processes.Stores{}, "authsvc", "--store", "file:"+filepath.Join(dir, "tokens.db"), "--secret-file",
		filepath.Join(dir, "secret")); !strings.Contains(got, "in order. 0 entries") {
		t.Errorf("got %s, want the log in order", got)
	}
}
