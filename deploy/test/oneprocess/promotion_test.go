package oneprocess

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/mirrors"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

const newAsset = `{"data":{"assetType":"bounce","title":"t","description":"d","items":[{"description":"d",` +
	`"classification":{"scheme":"CAV-PS","id":"04121000-2","description":"d"},"unit":{"code":"MTK"},"quantity":1,` +
	`"address":{"countryName":"c"},"registrationDetails":{"status":"unknown"}}],` +
	`"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1"}],` +
	`"assetCustodian":{"name":"n","identifier":{"scheme":"UA-EDR","id":"1"},` +
	`"address":{"countryName":"c"},"contactPoint":{"name":"n","telephone":"+380440000000"}}}}`

// TestTheSecondMachineTakesOver loses the machine of a registry that has a mirror, and follows docs/one-process.md,
// "The second machine". One asset is in the backup that was copied to the second machine; another asset is newer
// than the backup, and must be lost.
func TestTheSecondMachineTakesOver(t *testing.T) {
	first, second := t.TempDir(), t.TempDir() // one directory for each of the two machines
	addr, copied, following := freeAddr(t), filepath.Join(second, "backups"), freeAddr(t)
	output := &processes.Output{}
	p := ready(t, addr, output, filepath.Join(first, "data"))
	kept, token := publish(t, addr)
	must(t, registry("registry"), "backup", "--data", filepath.Join(first, "data"), "--into", copied)
	lost, _ := publish(t, addr)
	former, before := firstPage(t, "http://"+addr+"/api/2.5/assets")
	_, key := get(t, http.DefaultClient, "http://"+addr+"/log/checkpoint")
	m := expect.Get(mirrors.Start(t.Context(), *bin, following, "http://"+addr, filepath.Join(second, "mirror"),
		&processes.Output{}))(t)
	t.Cleanup(func() { m.Kill() })
	has := func(at, id string) bool {
		t.Helper()
		status, _ := get(t, http.DefaultClient, "http://"+at+"/api/2.5/assets/"+id)
		return status == http.StatusOK
	}
	soon(t, "the mirror has both assets", func() bool { return has(following, kept) && has(following, lost) })
	if err := p.Kill(); err != nil { // now the first machine is lost
		t.Fatal(err)
	}

	if !has(following, kept) || !has(following, lost) {
		t.Error("the first machine is lost: the mirror does not serve its assets, want both")
	}
	if status, _ := send(t, http.MethodPost, following, "/assets", "", newAsset); status != http.StatusMisdirectedRequest {
		t.Errorf("a write to the mirror: got %d, want %d", status, http.StatusMisdirectedRequest)
	}
	ctl := func(at string, args ...string) string {
		t.Helper()
		return must(t, registry("registryctl"), append([]string{"--url", "http://" + at, "sync"}, args...)...)
	}
	was, is := filepath.Join(second, "was"), filepath.Join(second, "is")
	ctl(following, was, "--once")
	newest := backups(t, copied)
	restored := filepath.Join(second, "data")
	must(t, registry("registry"), "restore", "--from", newest[len(newest)-1], "--data", restored)
	expect.OK(t, m.Stop())
	output = &processes.Output{}
	p = ready(t, addr, output, restored, "--server-id", "2") // the registry's name now leads to the second machine

	if !has(addr, kept) || has(addr, lost) {
		t.Errorf("after the restore: got %t and %t, want the first asset alone", has(addr, kept), has(addr, lost))
	}
	if status, text := send(t, http.MethodPatch, addr, "/assets/"+kept, token, `{"data":{"title":"new"}}`); status != http.StatusOK {
		t.Errorf("a change by the owner: got %d %s, want %d", status, text, http.StatusOK)
	}
	ctl(addr, is, "--once")
	old, now := ctl(addr, "export", was), ctl(addr, "export", is)
	if !strings.Contains(old, lost) || strings.Contains(now, lost) || !strings.Contains(now, kept) {
		t.Errorf("the two copies: got %s and %s, want the lost asset in the first alone", old, now)
	}
	var next struct {
		NextPage struct{ URI string } `json:"next_page"`
	}
	if err := json.Unmarshal(before, &next); err != nil || next.NextPage.URI == "" {
		t.Fatalf("got the page %s, %v, want one with a next page", before, err)
	}
	status, text := asFollower(t, next.NextPage.URI, former)
	if status != http.StatusNotFound || !strings.Contains(text, "offset") {
		t.Errorf("a synchroniser from before: got %d %s, want %d and the offset", status, text, http.StatusNotFound)
	}
	origin := func(checkpoint string) string { line, _, _ := strings.Cut(checkpoint, "\n"); return line }
	soon(t, "the new log is signed", func() bool {
		status, text := get(t, http.DefaultClient, "http://"+addr+"/log/checkpoint")
		return status == http.StatusOK && origin(text) != origin(key)
	})
	stop(t, p, output)
}

// ready starts a registry with the sandbox keys, and waits until it accepts writes.
func ready(t *testing.T, addr string, output *processes.Output, data string, args ...string) *processes.Process {
	t.Helper()
	args = append([]string{"serve", "--sandbox", "--no-limits", "--addr", addr, "--data", data}, args...)
	p, err := processes.Start(t.Context(), addr, output, registry("registry"), args...)
	if err != nil {
		t.Fatalf("%v; it printed %s", err, output)
	}
	t.Cleanup(func() { p.Kill() })
	expect.OK(t, output.Await(t.Context(), "answers at"))
	return p
}

// publish creates a public asset, and returns its id and its owner token.
func publish(t *testing.T, addr string) (id, token string) {
	t.Helper()
	status, text := send(t, http.MethodPost, addr, "/assets", "", newAsset)
	var made struct {
		Data   struct{ ID string }
		Access struct{ Token string }
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated {
		t.Fatalf("create: got %d %s, %v", status, text, err)
	}
	status, text = send(t, http.MethodPatch, addr, "/assets/"+made.Data.ID, made.Access.Token, `{"data":{"status":"pending"}}`)
	if status != http.StatusOK {
		t.Fatalf("publish: got %d %s", status, text)
	}
	return made.Data.ID, made.Access.Token
}

// send sends a request with the key of a broker.
func send(t *testing.T, method, addr, path, token, body string) (status int, text string) {
	t.Helper()
	r := expect.Get(http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/api/2.5"+path,
		strings.NewReader(body)))(t)
	r.SetBasicAuth("broker", "")
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("X-Access-Token", token)
	}
	resp := expect.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	return resp.StatusCode, string(expect.Get(io.ReadAll(resp.Body))(t))
}

// firstPage returns the first page of the feed, and the cookies of the answer.
func firstPage(t *testing.T, url string) (cookies []*http.Cookie, page []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	expect.OK(t, err)
	resp := expect.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	page, err = io.ReadAll(resp.Body)
	if err != nil || len(resp.Cookies()) == 0 {
		t.Fatalf("got the page %s, %v, want one with a cookie", page, err)
	}
	return resp.Cookies(), page
}

// asFollower sends a GET with the cookies of the former registry, as a synchroniser would.
func asFollower(t *testing.T, url string, cookies []*http.Cookie) (status int, text string) {
	t.Helper()
	r := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	resp := expect.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	return resp.StatusCode, string(expect.Get(io.ReadAll(resp.Body))(t))
}
