package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs registryctl. ok reports whether it exited with 0.
func (o *office) run(t *testing.T, stdin string, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	cmd := exec.Command(o.ctl, append([]string{"--config", o.config}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Dir(o.config), "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, o.env...)
	err := cmd.Run()
	return out.String(), errs.String(), err == nil
}

// mustRun runs registryctl, which must succeed, and returns its stdout.
func (o *office) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, ok := o.run(t, "", args...)
	if !ok {
		t.Fatalf("registryctl %s: %s", strings.Join(args, " "), stderr)
	}
	return stdout
}

// runJSON runs registryctl with -o json and returns the object that it prints.
func (o *office) runJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var got map[string]any
	if printed := o.mustRun(t, append(args, "-o", "json")...); json.Unmarshal([]byte(printed), &got) != nil {
		t.Fatalf("registryctl %s: got %s, want a JSON object", strings.Join(args, " "), printed)
	}
	if secret := text(got["secret"]); secret != "" {
		o.shown(secret)
	}
	return got
}

// testCommandLine creates, changes, lists and blocks a broker and its key with registryctl.
func testCommandLine(t *testing.T, o *office) {
	name := fmt.Sprintf("cli-%x", time.Now().UnixNano())
	o.mustRun(t, "brokers", "create", name, "--title", "Command Line Ltd")
	o.prints(t, []string{"brokers", "list", "--search", name}, "NAME", "Command Line Ltd")
	made := o.runJSON(t, "keys", "create", "--broker", name, "--name", "first", "--levels", "13",
		"--limit", "write:1m=100", "--limit", "write:1s=5", "--allow", "127.0.0.0/8", "--expires", "720h")
	id, secret := text(at(made, "data.id")), text(made["secret"])
	if at(made, "data.limits.write.1m") != float64(100) || text(at(made, "data.allow.0")) != "127.0.0.0/8" ||
		text(at(made, "data.expires")) == "" {
		t.Errorf("got the key %v, want the limits, the address and an end", made)
	}
	o.me(t, secret).must(t, 200)
	o.mustRun(t, "keys", "change", id, "--allow", "any", "--expires", "never", "--limit", "none")
	if got := o.runJSON(t, "keys", "get", id); at(got, "data.allow") != nil || at(got, "data.expires") != nil ||
		at(got, "data.limits") != nil || at(got, "data.levels") != "13" {
		t.Errorf("got the key %v after its change, want the levels 13 alone", got)
	}
	printed := o.mustRun(t, "keys", "rotate", id, "--grace", "1h")
	_, rest, found := strings.Cut(printed, "ark_")
	if !found || !strings.Contains(printed, "GOOD UNTIL") {
		t.Fatalf("keys rotate: got %s, want a secret and the end of the old one", printed)
	}
	second, _, _ := strings.Cut("ark_"+rest, "\n")
	o.me(t, o.shown(second)).must(t, 200)
	for _, args := range [][]string{{"keys", "list", "--broker", name}, {"keys", "usage", id},
		{"audit", "list", "--last", "5"}, {"keys", "list", "--state", "active"}} {
		if got := o.mustRun(t, args...); strings.Contains(got, secret) || strings.Contains(got, second) ||
			len(strings.Split(strings.TrimSpace(got), "\n")) < 1 {
			t.Errorf("%v: got %s, want a list without secrets", args, got)
		}
	}
	_, rest, _ = strings.Cut(o.mustRun(t, "keys", "rotate", id), "ark_")
	third, _, _ := strings.Cut("ark_"+rest, "\n")
	o.me(t, o.shown(third)).must(t, 200)
	everywhere(t, "a rotation without grace ends every former secret",
		func() bool { return o.me(t, secret).status == 401 && o.me(t, second).status == 401 })
	o.mustRun(t, "keys", "revoke", id)
	everywhere(t, "a revoked key is refused", func() bool { return o.me(t, third).status == 401 })
	o.mustRun(t, "brokers", "change", name, "--blocked")
	equal(t, "blocked", at(o.runJSON(t, "brokers", "get", name), "data.blocked"), any(true))
	o.prints(t, []string{"completion", "bash"}, "registryctl")
	o.prints(t, []string{"__complete", "keys", "get", ""}, id)
}

// prints runs registryctl and checks that stdout contains each text.
func (o *office) prints(t *testing.T, args []string, texts ...string) {
	t.Helper()
	got := o.mustRun(t, args...)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("registryctl %s: got %s, want %q in it", strings.Join(args, " "), got, text)
		}
	}
}

// testCommandLineAssets creates, changes and lists assets with registryctl.
func testCommandLineAssets(t *testing.T, o *office) {
	text, err := json.Marshal(validAsset())
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, ok := o.run(t, string(text), "assets", "create", "-f", "-", "-o", "json")
	var made map[string]any
	if !ok || json.Unmarshal([]byte(stdout), &made) != nil {
		t.Fatalf("assets create: got %s and %s, want the new asset as JSON", stdout, stderr)
	}
	id, token := fmt.Sprint(at(made, "data.id")), fmt.Sprint(at(made, "access.token"))
	defer func() { o.env = nil }()
	o.env = append(o.env, "REGISTRYCTL_TOKEN="+token)
	o.prints(t, []string{"assets", "publish", id}, "pending")
	stdout, stderr, ok = o.run(t, `{"data": {"title": "Склад"}}`, "assets", "patch", id, "-f", "-")
	if !ok || !strings.Contains(stdout, "Склад") {
		t.Fatalf("assets patch: got %s and %s, want the new title", stdout, stderr)
	}
	o.prints(t, []string{"assets", "get", id}, "status: pending", "title: Склад", "    quantity: 5.0001", "tag: ")
	o.prints(t, []string{"assets", "list", "--descending", "--limit", "5"}, id, "--offset")
	if lines := strings.Split(o.mustRun(t, "assets", "revisions", id), "\n"); len(lines) != 5 {
		t.Errorf("assets revisions: got %q, want a header and three changes", lines)
	}
	o.handOver(t, id, fmt.Sprint(at(made, "access.transfer")))
	o.prints(t, []string{"me"}, "broker", "LEVELS")
	o.prints(t, []string{"version"}, "registryctl ", "asset registry at "+o.base, "2.5")
}

// testCommandLineFiles lists files and takes one down. The audit log must record the removal.
func testCommandLineFiles(t *testing.T, o *office) {
	f := &keptFile{api: o.api, content: rand.Text()}
	f.upload(t)
	o.prints(t, []string{"files", "list", "--state", "stored"}, f.id(), "акт.pdf", "26")
	o.prints(t, []string{"files", "remove", f.id(), "--reason", "суд sesame", "--key", "administrator"},
		f.id(), "суд sesame")
	if got := o.mustRun(t, "files", "list", "--state", "stored"); strings.Contains(got, f.id()) {
		t.Errorf("files list: got %s, want no file %s that is stored", got, f.id())
	}
	if got := o.mustRun(t, "files", "list"); !strings.Contains(got, f.id()) || strings.Contains(got, "sesame") {
		t.Errorf("files list: got %s, want %s without the reason", got, f.id())
	}
	o.prints(t, []string{"files", "list", "--broker", "broker", "--state", "removed", "--key", "administrator"}, f.id(),
		"суд sesame")
	for _, e := range list(o.runJSON(t, "audit", "list")["data"]) {
		if at(e, "subject") != "file "+f.id() {
			continue
		}
		if at(e, "action") != "file.remove" || at(e, "after.reason") != "суд sesame" || text(at(e, "after.sha256")) == "" ||
			text(at(e, "time")) == "" || !strings.Contains(text(at(e, "who")), "administrator") || at(e, "from") != "127.0.0.1" {
			t.Errorf("got the entry %v, want who has removed the file, when, from where and why", e)
		}
		return
	}
	t.Errorf("got no entry about file %s in the audit log, want one", f.id())
}

// handOver gives the asset to another broker, with the steps that the help describes, and follows the feed.
func (o *office) handOver(t *testing.T, id, transfer string) {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	o.prints(t, []string{"assets", "follow", "--up-to-date", "--state", state, "--mode", "_all_"}, id)
	o.env = append(o.env, "REGISTRYCTL_TRANSFER="+transfer)
	o.prints(t, []string{"assets", "transfer", id}, transfer, "assets accept "+id)
	mine := filepath.Join(t.TempDir(), "mine.json")
	for range 2 { // repeating the command must change nothing
		o.prints(t, []string{"assets", "accept", id, "--access", mine, "--key", "broker3"}, "broker3")
	}
	o.env = append(o.env, "REGISTRYCTL_TOKEN=")
	if _, stderr, ok := o.run(t, "", "assets", "revisions", id); ok || !strings.Contains(stderr, "403") {
		t.Errorf("the former owner: got %q, want 403", stderr)
	}
	o.prints(t, []string{"assets", "revisions", id, "--access", mine, "--key", "broker3"}, "replace /owner")
	follow := []string{"assets", "follow", "--up-to-date", "--state", state, "--mode", "_all_"}
	if got := o.mustRun(t, follow...); strings.Count(got, id) != 1 || !strings.Contains(got, "broker3") {
		t.Errorf("assets follow from the kept position: got %q, want the change of owner", got)
	}
}

// testCommandLineFaults makes mistakes with registryctl. The program must name each mistake in one line on stderr,
// without a secret.
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
		{"a config file that others can read", []string{"--config", open, "keys", "list"}, "chmod 600"},
		{"a config file with an unknown field", []string{"--config", wrong, "keys", "list"}, "admin-url"},
		{"a missing config file", []string{"--config", open + "x", "keys", "list"}, "no such file"},
		{"a wrong key", []string{"--admin-key", "hunter2", "keys", "list"}, "401"},
		{"an address without a server", []string{"--admin-url", "http://127.0.0.1:1", "keys", "list"},
			"does not answer"},
		{"an address of another server", []string{"--admin-url", o.base, "keys", "list"}, "has no admin API"},
		{"an unknown key", []string{"keys", "get", "none"}, "404 Not Found: url key: Not Found"},
		{"a bad format", []string{"keys", "list", "-o", "xml"}, "table or json"},
		{"a bad limit", []string{"keys", "create", "--limit", "many"}, "CLASS:WINDOW=REQUESTS"},
		{"a bad end", []string{"keys", "create", "--expires", "soon"}, "never"},
		{"a bad field", []string{"keys", "create", "--broker", "nobody", "--name", "x"}, "body broker"},
		{"a missing argument", []string{"keys", "get"}, "1 arg"},
		{"an unknown command", []string{"keys", "dance"}, "dance"},
		{"an unknown asset", []string{"assets", "get", "none"}, "404"},
		{"a body that is no JSON", []string{"assets", "create", "-f", wrong}, "JSON"},
		{"an address without a registry", []string{"--url", "http://127.0.0.1:1", "version", "-o", "json"},
			"does not answer"},
		{"no transfer token", []string{"assets", "accept", "none"}, "REGISTRYCTL_TRANSFER"},
		{"no tokens in a file", []string{"assets", "publish", "none", "--access", wrong}, "has no tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, ok := o.run(t, "", c.args...)
			if ok || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.says) ||
				strings.Contains(stderr, "hunter2") {
				t.Errorf("got %q on stderr, want one line with %q and without the secret", stderr, c.says)
			}
		})
	}
}
