package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/mirrors"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/logkey"
	"asset-registry/shared/porttest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// owned is an asset of the sandbox's broker: its path and its owner token.
type owned struct{ path, token string }

// mustPublish creates a public asset.
func (r *registry) mustPublish() owned {
	r.t.Helper()
	a, err := r.ask("broker", http.MethodPost, "/api/2.5/assets", "application/json", strings.NewReader(clients.Creation))
	var created struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err != nil || a.status != http.StatusCreated || json.Unmarshal([]byte(a.text), &created) != nil {
		r.t.Fatalf("create: got %d %s and %v, want 201", a.status, a.text, err)
	}
	of := owned{"/api/2.5/assets/" + created.Data.ID, created.Access.Token}
	a, err = r.ask("broker", http.MethodPatch, of.path+"?acc_token="+of.token, "application/json",
		strings.NewReader(`{"data":{"status":"pending"}}`))
	if err != nil || a.status != http.StatusOK {
		r.t.Fatalf("publish: got %d %s and %v, want 200", a.status, a.text, err)
	}
	return of
}

// mustAdd adds a document with its file to an asset, and returns the path of the file.
func (r *registry) mustAdd(to owned, name, text string) string {
	r.t.Helper()
	contentType, form := r.form(name, text, "documentType", "notice")
	a, err := r.ask("broker", http.MethodPost, to.path+"/documents?acc_token="+to.token, contentType, form)
	path := pathForm.FindString(a.text)
	if err != nil || a.status != http.StatusCreated || path == "" {
		r.t.Fatalf("document: got %d %s and %v, want 201", a.status, a.text, err)
	}
	return path
}

// mustRemove takes a file down.
func (r *registry) mustRemove(path string) {
	r.t.Helper()
	a, err := r.ask("administrator", http.MethodDelete, path+"?reason=x", "", nil)
	if err != nil || a.status != http.StatusOK {
		r.t.Fatalf("remove: got %d %s and %v, want 200", a.status, a.text, err)
	}
}

// mirror is a mirror that also copies files.
type mirror struct {
	t                *testing.T
	addr, of, origin string
	data             string
	process          *processes.Process
	output           *processes.Output
	args             []string
}

func newMirror(t *testing.T, of, origin string, args ...string) *mirror {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	m := &mirror{t: t, addr: addr, of: of, origin: origin, data: filepath.Join(t.TempDir(), "mirror"),
		output: &processes.Output{}, args: args}
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Logf("the mirror of %s printed %s", of, m.output.String())
		}
	})
	m.start()
	return m
}

func (m *mirror) start() {
	m.t.Helper()
	args := append([]string{"--files", "--origin", "http://" + m.origin, "--max-behind", "0"}, m.args...)
	p, err := mirrors.Start(m.t.Context(), *bin, m.addr, "http://"+m.of, m.data, m.output, args...)
	expect.OK(m.t, err)
	m.process = p
}

func (m *mirror) kill() {
	if m.process != nil {
		_ = m.process.Kill() // an error means that the process has ended already
		m.process = nil
	}
}

// fetched is the answer to a GET.
type fetched struct {
	status int
	header http.Header
	text   string
}

// fetch reads a path of a server without a key.
func fetch(t *testing.T, addr, path string, headers ...string) fetched {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
	expect.OK(t, err)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Timeout: 2 * patience}).Do(q)
	if err != nil {
		return fetched{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fetched{}
	}
	return fetched{resp.StatusCode, resp.Header, string(text)}
}

// TestMirrorsHaveFiles runs a registry, its mirror, and a mirror of that mirror. Both mirrors must get each file
// that the registry serves, keep the file when the registry is gone, and remove a file that is taken down.
// Promises: mirror-files, mirror-removals
func TestMirrorsHaveFiles(t *testing.T) {
	r := newRegistry(t)
	r.start()
	asset := r.mustPublish()
	files := map[string]string{}
	for name, text := range map[string]string{
		"a.pdf": "%PDF-1.4\n", "b.html": "<html><script>1</script>", "в.txt": strings.Repeat("x", 3<<20), "d.png": "\x89PNG\r\n\x1a\n",
		"e.bin": "", "f.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
	} {
		files[r.mustAdd(asset, name, text)] = text
	}
	hidden := r.mustUpload("no document names it")
	first := newMirror(t, r.addr, r.addr)
	second := newMirror(t, first.addr, r.addr)
	both := []*mirror{first, second}
	awaitFiles := func() {
		t.Helper()
		for _, m := range both {
			for path, text := range files {
				await(t, "the file "+path+" at "+m.addr, func() bool {
					got := fetch(t, m.addr, path)
					if got.status == http.StatusOK && got.text != text {
						t.Fatalf("got other bytes of %s", path)
					}
					if got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
						t.Fatalf("got 503 without Retry-After")
					}
					return got.status == http.StatusOK
				})
			}
		}
	}
	awaitFiles()
	for path := range files {
		for _, headers := range [][]string{nil, {"Range", "bytes=2-5"}, {"If-None-Match", "*"}, {"Range", "bytes=99999999-"}} {
			want := fetch(t, r.addr, path, headers...)
			for _, m := range both {
				got := fetch(t, m.addr, path, headers...)
				for _, name := range []string{"Age", "Date", "X-Request-Id"} {
					got.header.Del(name)
					want.header.Del(name)
				}
				if got.status != want.status || got.text != want.text || !maps.EqualFunc(got.header, want.header, slices.Equal) {
					t.Errorf("%s with %q: got %d %v, want as the registry: %d %v", path, headers, got.status, got.header,
						want.status, want.header)
				}
			}
		}
	}
	r.stop()
	second.kill()
	second.start()
	awaitFiles()
	r.start()
	var gone string
	for path, text := range files {
		if strings.HasPrefix(text, "%PDF") {
			gone = path
		}
	}
	delete(files, gone)
	r.mustRemove(gone)
	r.mustRemove(hidden)
	for _, m := range both {
		await(t, "the removal at "+m.addr, func() bool { return fetch(t, m.addr, gone).status == http.StatusGone })
		for _, path := range blobs(t, m.data) {
			if strings.HasPrefix(filepath.Base(path), strings.TrimPrefix(gone, "/get/")) {
				t.Errorf("%s still has %s", m.addr, path)
			}
		}
		if got := fetch(t, m.addr, "/get/removed").text; !strings.Contains(got, filepath.Base(gone)) ||
			strings.Contains(got, filepath.Base(hidden)) {
			t.Errorf("%s: got the removals %s, want %s and not %s, which no asset names", m.addr, got, gone, hidden)
		}
	}
	first.kill() // after the restart, the removal must still hold
	first.start()
	expect.Equal(t, fetch(t, first.addr, gone).status, http.StatusGone, "after a restart")
	for i := range 20 {
		text := strings.Repeat(fmt.Sprint(i, " "), 1000)
		files[r.mustAdd(asset, "late.txt", text)] = text
	}
	awaitFiles()
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"POST", "/upload", 421}, {"POST", "/register", 421}, {"GET", "/get", 421}, {"DELETE", gone, 421},
		{"POST", asset.path + "/documents", 421}, {"GET", "/get/" + strings.Repeat("0", 32), 404}, {"GET", "/get/x", 404},
	} {
		contentType, form := r.form("a.txt", "text")
		q, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+second.addr+c.path, form)
		expect.OK(t, err)
		q.Header.Set("Content-Type", contentType)
		resp, err := http.DefaultClient.Do(q)
		expect.OK(t, err)
		resp.Body.Close()
		expect.Equal(t, resp.StatusCode, c.want, "%s %s at a mirror", c.method, c.path)
	}
}

// TestKilledSyncs kills registryctl sync --files at random moments, while files are added and taken down. At the
// end, the copy must have the files of the registry, and no other bytes.
// Promises: copy-files-kept
func TestKilledSyncs(t *testing.T) {
	const kills = 12
	r := newRegistry(t)
	r.start()
	asset, files := r.mustPublish(), map[string]string{}
	var mu sync.Mutex
	add := func(text string) (path string) {
		path = r.mustAdd(asset, "a.txt", text)
		mu.Lock()
		defer mu.Unlock()
		files[path] = text
		return path
	}
	for i := range 60 {
		add(strings.Repeat(fmt.Sprint(i, " "), 20_000))
	}
	dir, to := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "files")
	sync := func(more ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), filepath.Join(*bin, "registryctl"),
			append([]string{"--url", "http://" + r.addr, "sync", dir, "--files", to}, more...)...)
	}
	middle := 0
	for kill := range kills {
		var more []string
		if kill%2 == 0 {
			more = []string{"--once"}
		}
		cmd := sync(more...)
		expect.OK(t, cmd.Start())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // the command was killed, or it finished first
		}()
		// Wait, so that the kill comes at a random moment.
		wait := time.After(time.Duration(randtest.IntN(600)) * time.Millisecond)
		path := add(fmt.Sprintf("late %d", kill))
		if kill%3 == 0 {
			r.mustRemove(path)
			mu.Lock()
			delete(files, path)
			mu.Unlock()
		}
		<-wait
		_ = cmd.Process.Kill() // an error means that the process has ended already
		<-ended
		if got := len(copies(t, to)); got > 0 && got < len(files) {
			middle++
		}
	}
	if middle == 0 {
		t.Error("no kill came while files were copied")
	}
	var removed string
	for path := range files {
		removed = path
	}
	r.mustRemove(removed)
	delete(files, removed)
	for range 2 { // syncing again changes nothing
		if out, err := sync("--once").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got := copies(t, to)
		for path, text := range files {
			if id := strings.TrimPrefix(path, "/get/"); got[id] != text {
				t.Errorf("file %s: got %d bytes, want %d", id, len(got[id]), len(text))
			}
		}
		expect.Equal(t, len(got), len(files), "files in the copy")
	}
	key := publicKey(t, r)
	out, err := sync("--verify", "--public-key", key).CombinedOutput()
	if want := fmt.Sprintf("%d files of the copy are whole", len(files)); err != nil || !bytes.Contains(out, []byte(want)) {
		t.Errorf("verify: got %v: %s, want %q", err, out, want)
	}
	for _, path := range blobs(t, to)[:1] {
		expect.OK(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	out, err = sync("--verify", "--public-key", key).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("1 files of the copy")) {
		t.Errorf("verify of a damaged file: got %v: %s, want that it is named", err, out)
	}
	if out, err := sync("--once", "--files", r.data).CombinedOutput(); err == nil {
		t.Errorf("copies into the directory of a registry: got %s, want a refusal", out)
	}
}

// publicKey returns the public key of the log of a registry.
func publicKey(t *testing.T, r *registry) string {
	t.Helper()
	keys, err := logkey.Read(filepath.Join(r.data, "log.key"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("got %d keys and %v, want the key of the log", len(keys), err)
	}
	return keys[0].Public().String()
}

// copies returns the text of each file below a directory. The keys are ids of files. It checks that the name of
// each file contains the SHA-256 of its bytes.
func copies(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return found
	}
	for _, path := range blobs(t, dir) {
		if strings.Contains(path, "/new/") {
			continue // skip a file that is still being written
		}
		text, err := os.ReadFile(path)
		expect.OK(t, err)
		id, name, _ := strings.Cut(filepath.Base(path), "-")
		if sum := sha256.Sum256(text); !strings.HasPrefix(hex.EncodeToString(sum[:]), name) {
			t.Errorf("%s has other bytes than its name says", path)
		}
		found[id] = string(text)
	}
	return found
}
