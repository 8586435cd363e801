package compose

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

// issueKeys creates an operator, the broker acme, and an API key for acme. It returns both keys.
func issueKeys(t *testing.T, s *stack) (operator, broker string) {
	t.Helper()
	operator = s.run(t, "exec", "--no-TTY", "authsvc", "/service", "admin-key", "--name", "Olha")
	admin := func(path, data string) map[string]any {
		return ask(t, "POST", s.admin+"/admin/v1"+path, operator, "", data, 201)
	}
	admin("/brokers", `{"data":{"name":"acme","title":"Acme"}}`)
	issued := admin("/keys", `{"data":{"broker":"acme","name":"first","role":"broker","levels":"13"}}`)
	broker, _ = issued["secret"].(string)
	return operator, broker
}

// testKeys creates an operator, a broker and a key, with the steps of a new operator.
func testKeys(t *testing.T, s *stack) {
	operator, key := issueKeys(t, s)
	me := ask(t, "GET", s.public+"/api/2.5/me", key, "", "", 200)
	if text := fmt.Sprint(me); !strings.Contains(text, "acme") {
		t.Errorf("got %s from /me, want the broker acme", text)
	}
	ask(t, "GET", s.public+"/admin/v1/keys", operator, "", "", 404)
	log, _ := ask(t, "GET", s.admin+"/admin/v1/audit", operator, "", "", 200)["data"].([]any)
	last, _ := log[len(log)-1].(map[string]any)
	if from, err := netip.ParseAddr(fmt.Sprint(last["from"])); err != nil ||
		netip.MustParsePrefix(balancers).Contains(from) {
		t.Errorf("got the address %v in the audit log, want the client's", last["from"])
	}
}

// testSearch adds the search service to a running stack, as .env.example describes. It waits until the index has
// all changes so far, and reads a page.
func testSearch(t *testing.T, s *stack) {
	s.set("COMPOSE_PROFILES", "objects,search")
	s.set("GATEWAY_SEARCH_URL", "http://searchsvc:8083")
	s.run(t, "up", "--detach", "--no-build") // the balancer is unhealthy while both gateways are replaced
	s.awaitHealth(t, "searchsvc", "balancer")
	testContained(t, s)
	s.awaitWork(t)
	a := s.publish(t)
	changed, _ := ask(t, "PATCH", a.url, "broker", a.token, `{"data":{"status":"pending"}}`, 200)["data"].(map[string]any)
	found := s.public + "/api/2.5/search?sort=-modified&limit=1"
	await(t, "the newest asset is found", func() bool {
		status, _, text, err := send("GET", found, "", "", "")
		return err == nil && status == http.StatusOK && strings.Contains(string(text), fmt.Sprint(changed["id"]))
	})
	page := s.public + "/en/assets/" + fmt.Sprint(changed["id"])
	if status, _, text, err := send("GET", page, "", "", ""); err != nil || status != http.StatusOK {
		t.Errorf("%s: got %d %s, %v, want 200", page, status, text, err)
	}
	docker(t, "kill", s.container(t, "searchsvc"))
	if status, header, _, err := send("GET", found, "", "", ""); err != nil || status != http.StatusOK &&
		status != http.StatusServiceUnavailable || status == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
		t.Errorf("got %d, %v without the search service, want 200, or 503 with Retry-After", status, err)
	}
}

// testRestore deletes the data of Redis, and restores it from a backup. Meanwhile owner tokens stay valid, because
// assets keep their token records. Keys are not valid until they are restored from the backup, or an operator
// creates new ones.
func testRestore(t *testing.T, s *stack, a *asset, operator string) {
	me, brokers := s.public+"/api/2.5/me", s.admin+"/admin/v1/brokers"
	ask(t, "GET", brokers, operator, "", "", 200)
	backup := filepath.Join(t.TempDir(), "backup")
	s.script(t, "backup.sh", backup, "secrets", "tokens")
	s.script(t, "backup.sh", backup, "secrets", "tokens") // a second backup into the same directory must work
	for _, name := range []string{"secrets.tar", "tokens.rdb"} {
		if info, err := os.Stat(filepath.Join(backup, name)); err != nil || info.Mode().Perm() != 0o600 ||
			info.Size() == 0 {
			t.Errorf("%s: got %v, %v, want a file of mode 0600", name, info, err)
		}
	}
	defer s.trouble()(aftermath)
	s.run(t, "rm", "--force", "--stop", "redis-tokens")
	docker(t, "volume", "rm", s.project+"_redis-tokens")
	s.run(t, "up", "--detach", "--no-build", "--no-deps", "--wait", "redis-tokens")
	awaitStatus(t, me, s.key, 401)
	awaitStatus(t, brokers, operator, 401)
	before := a.key
	_, a.key = issueKeys(t, s)
	awaitStatus(t, me, a.key, 200)
	a.ask(t, "PATCH", 200)
	broken := filepath.Join(backup, "broken.rdb")
	expect.OK(t, os.WriteFile(broken, []byte("REDIS0011 and no more"), 0o600))
	expect.Fails(t, s.command("restore-tokens.sh", broken).Run(), "")
	s.script(t, "restore-tokens.sh", filepath.Join(backup, "tokens.rdb"))
	awaitStatus(t, me, a.key, 401)
	a.key = before
	s.awaitWork(t)
	a.ask(t, "PATCH", 200)
	awaitStatus(t, brokers, operator, 200)
	s.crash(t, "redis-tokens") // the restored data must be on the disk, so that it survives a crash
	awaitStatus(t, brokers, operator, 200)
}

// testFilesRestore deletes the bytes of all files, and restores them from a backup. The address of a document must
// then give the same bytes again.
func testFilesRestore(t *testing.T, s *stack) {
	const content = "%PDF-1.4\nfrom a backup"
	path, backup := filepath.Join(t.TempDir(), "a.pdf"), filepath.Join(t.TempDir(), "backup")
	expect.OK(t, os.WriteFile(path, []byte(content), 0o600))
	broker := expect.Get(client.New(client.Config{URL: s.public, Key: client.Secret(s.key)}))(t)
	a := s.publish(t)
	ask(t, "PATCH", a.url, a.key, a.token, `{"data":{"status":"pending"}}`, 200)
	document := expect.Get(broker.Documents(a.url[strings.LastIndex(a.url, "/")+1:]).Upload(t.Context(), path,
		client.Document{DocumentType: "notice"}, client.Write{Token: client.Secret(a.token)}))(t)
	awaitStatus(t, document.URL, "", 200) // now the file service has seen the document
	s.script(t, "backup.sh", backup, "files")
	defer s.trouble()(aftermath)
	s.run(t, "rm", "--force", "--stop", "filesvc", "volumes") // both containers use the volume, so both must go
	docker(t, "volume", "rm", s.project+"_files")
	s.script(t, "restore-files.sh", filepath.Join(backup, "files.tar"))
	s.run(t, "up", "--detach", "--no-build", "--wait", "filesvc")
	awaitStatus(t, document.URL, "", 200)
	if status, _, text, err := send("GET", document.URL, "", "", ""); err != nil || status != 200 || string(text) != content {
		t.Errorf("got %d %q, %v of the restored file, want %q", status, text, err, content)
	}
}
