package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/logkey"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// verifying is a registry whose log registryctl verifies.
type verifying struct {
	api
	data string // the registry's data directory
	keys []string
}

// TestThePublicLogIsVerified makes changes, and verifies the log, the registry and proofs with registryctl, before
// and after a change of the log's key. A second verifier, written from docs/log.md alone, must accept the log and
// the proofs, too.
func TestThePublicLogIsVerified(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	v := verifying{api: api{base: "http://" + addr, version: "2.5"}, data: filepath.Join(dir, "data")}
	first := standalone(t, addr, v.data, &processes.Output{})
	v.readKeys(t, 1)
	withdrawn, changed := v.publish(t, validAsset()), v.publish(t, validAsset())
	v.publish(t, validAsset().set("mode", "test"))
	v.create(t, validAsset())
	for i := range 40 {
		v.patch(t, changed, fields{"description": fmt.Sprint("опис ", i)}).must(t, 200)
	}
	v.withdraw(t, withdrawn)
	v.patch(t, withdrawn, fields{"title": "without a leaf"}).must(t, 200)
	newest := v.patch(t, changed, fields{"title": "Назва \"<&>\" \u2028"}).must(t, 200)
	v.await(t, newest)

	remembered := filepath.Join(dir, "remembered")
	got := v.verify(t, remembered)
	equal(t, "size", at(got, "size"), float64(44))
	equal(t, "registry", at(got, "registry"),
		map[string]any{"assets": 2.0, "matched": 43.0, "changedSince": 0.0, "erased": []any{}})
	v.prove(t, changed.id, "", "change", "matches the leaf")
	v.prove(t, changed.id, "2", "publish", "matches the leaf")
	v.prove(t, changed.id, "35", "change", "matches the leaf")
	v.prove(t, withdrawn.id, "", "withdraw", "none: the asset was withdrawn")
	python(t, "--key", v.keys[0], v.base+"/log")
	v.refuses(t, "404", "prove", changed.id, "--revision", "1")
	v.refuses(t, "no valid signature", "verify", "--public-key", otherKey(t, dir))

	v.refuses(t, "revision", "--key", "administrator", "erase", changed.id, "--revision", "43")
	v.mustRun(t, "--key", "administrator", "erase", changed.id, "--revision", "20", "--through", "22")
	got = v.verify(t, remembered)
	equal(t, "matched leaves after an erasure", at(got, "registry.matched"), any(40.0))
	equal(t, "first erased leaf", at(got, "registry.erased.0.revision"), any(20.0))
	v.provesNothing(t, changed.id, "21") // the content of this revision was erased
	v.prove(t, changed.id, "23", "change", "matches the leaf")

	v.mustRun(t, "log", "key", "rotate", filepath.Join(v.data, "log.key"))
	expect.OK(t, first.Stop())
	standalone(t, addr, v.data, &processes.Output{})
	v.readKeys(t, 2)
	v.await(t, v.patch(t, changed, fields{"title": "later"}).must(t, 200))
	for range v.keys { // verify with each key alone
		equal(t, "continues", at(v.verify(t, remembered), "continues") != nil, true)
		v.keys = append(v.keys[1:], v.keys[0])
	}
}

// readKeys reads the public keys of the log, the newest first. The parameter `want` says how many keys there must be.
func (v *verifying) readKeys(t *testing.T, want int) {
	t.Helper()
	keys, err := logkey.Read(filepath.Join(v.data, "log.key"))
	if err != nil || len(keys) != want {
		t.Fatalf("got %d keys, %v, want %d", len(keys), err, want)
	}
	v.keys = nil
	for _, key := range keys {
		v.keys = append(v.keys, key.Public().String())
	}
}

// withdraw makes a public asset a test asset. Then the asset is no longer public.
func (v *verifying) withdraw(t *testing.T, c created) {
	t.Helper()
	v.do(t, call{method: "PATCH", path: "/assets/" + c.id, key: "administrator", body: data(fields{"mode": "test"})}).
		must(t, 200)
}

// await waits until the log has a leaf for a change.
func (v *verifying) await(t *testing.T, changed answer) {
	t.Helper()
	v.leavesUpTo(t, micros(t, changed.data()["dateModified"]))
}

// run runs registryctl against the registry.
func (v *verifying) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	args = append([]string{"--url", v.base}, args...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "registryctl"), args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+v.data, "GORACE=atexit_sleep_ms=0")
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func (v *verifying) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := v.run(t, args...)
	if err != nil {
		t.Fatalf("registryctl %s: %v, %s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// refuses runs a command that must fail with an error that contains the text in the parameter `want`.
func (v *verifying) refuses(t *testing.T, want string, args ...string) {
	t.Helper()
	if stdout, stderr, err := v.run(t, args...); err == nil || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("registryctl %s: got %q, %q, %v, want an error with %q", strings.Join(args, " "), stdout, stderr, err, want)
	}
}

// verify verifies the whole log with its newest key, and compares it with the registry.
func (v *verifying) verify(t *testing.T, remembered string) (report map[string]any) {
	t.Helper()
	printed := v.mustRun(t, "-o", "json", "verify", "--public-key", v.keys[0], "--remember", remembered, "--assets")
	if err := json.Unmarshal([]byte(printed), &report); err != nil {
		t.Fatalf("got %s, %v, want a report", printed, err)
	}
	return report
}

// prove makes a proof of a revision, and lets both verifiers check it. registryctl must also verify the registry's
// answer, which a page of the site saves, indented or not. If revision is empty, it proves the newest revision.
func (v *verifying) prove(t *testing.T, id, revision, kind, content string) {
	t.Helper()
	args := []string{"prove", id}
	if revision != "" {
		args = append(args, "--revision", revision)
	}
	file := filepath.Join(t.TempDir(), "x.tlog-proof")
	expect.OK(t, os.WriteFile(file, []byte(v.mustRun(t, args...)), 0o600))
	var facts map[string]any
	printed := v.mustRun(t, "-o", "json", "verify", file, "--public-key", v.keys[0])
	if err := json.Unmarshal([]byte(printed), &facts); err != nil {
		t.Fatalf("got %s, %v, want facts", printed, err)
	}
	equal(t, "asset", facts["asset"], any(id))
	equal(t, "kind", facts["kind"], any(kind))
	equal(t, "content", facts["content"], any(content))
	for _, pretty := range []string{"", "&opt_pretty=1"} {
		resp := expect.Get(http.Get(v.base + "/api/2.5/assets/" + id + "/proof?revision=" + revision + pretty))(t)
		saved := filepath.Join(t.TempDir(), "x.json")
		expect.OK(t, errors.Join(os.WriteFile(saved, expect.Get(io.ReadAll(resp.Body))(t), 0o600), resp.Body.Close()))
		equal(t, "the facts of the saved proof", v.mustRun(t, "-o", "json", "verify", saved, "--public-key", v.keys[0]), printed)
	}
	python(t, "--key", v.keys[0], "--proof", file)
}

// provesNothing writes the proof of a change whose content was erased. registryctl must refuse the proof, which
// shows only that there was a change. The second verifier must accept the proof, because the change is in the log.
func (v *verifying) provesNothing(t *testing.T, id, revision string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.tlog-proof")
	expect.OK(t, os.WriteFile(file, []byte(v.mustRun(t, "prove", id, "--revision", revision)), 0o600))
	stdout, stderr, err := v.run(t, "verify", file, "--public-key", v.keys[0])
	if err == nil || !strings.Contains(stderr, "neither salt nor asset") || !strings.Contains(stdout, "content: erased\n") {
		t.Errorf("verify: got %q, %q, %v, want an error and that the content is erased", stdout, stderr, err)
	}
	python(t, "--key", v.keys[0], "--proof", file)
}

// otherKey returns the public key of another log with the same name.
func otherKey(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "other.key")
	keys, err := logkey.Read(filepath.Join(dir, "data", "log.key"))
	if err == nil {
		err = logkey.Create(file, keys[0].Public().Name())
	}
	if err == nil {
		keys, err = logkey.Read(file)
	}
	expect.OK(t, err)
	return keys[0].Public().String()
}

// python runs the verifier of deploy/test/apart/log. It must find no fault.
func python(t *testing.T, args ...string) {
	t.Helper()
	needtest.Commands(t, "python3", "openssl")
	args = append([]string{"../apart/log/verify.py"}, args...)
	printed, err := exec.CommandContext(t.Context(), "python3", args...).CombinedOutput()
	if err != nil {
		t.Errorf("verify.py %s: %v, %s", strings.Join(args, " "), err, printed)
	}
}
