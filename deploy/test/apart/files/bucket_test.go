package files

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/disktest"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

// TestMoves moves the files of a registry to a bucket and back. In both directions, the test kills the command at
// different moments, and then runs it again. Until the command has succeeded, the registry serves the files from
// their old place.
func TestMoves(t *testing.T) {
	const count = 400
	store, r := s3test.Start(t, false, bucket), newRegistry(t)
	r.start()
	files := map[string]string{}
	for i := range count {
		text := strings.Repeat(fmt.Sprintf("%d ", i), 2_000)
		files[r.mustUpload(text)] = text
	}
	r.stop()
	to, kept := store.Address(bucket), filepath.Join(store.Dir, bucket)
	for _, way := range []struct{ to, dir string }{{to, kept}, {"directory", filepath.Join(r.data, "files")}} {
		hit := 0
		for _, moved := range []int{0, 1, 40, 150} {
			killMove(t, r, way.to, way.dir, moved)
			if got := len(blobs(t, way.dir)); got > 0 && got < count {
				hit++
			}
			r.start()
			r.mustHave("after a move that was killed", files)
			r.stop()
		}
		if hit < 2 {
			t.Errorf("%d kills came in the middle of a move, want at least 2", hit)
		}
		for range 2 { // moving again changes nothing
			r.must("files", "move", "--to", way.to)
		}
		if got := len(blobs(t, way.dir)); got != count {
			t.Errorf("got %d files at %s, want %d", got, way.to, count)
		}
		if said := r.must("check", "--files"); !strings.Contains(said, fmt.Sprintf("files: %d,", count)) {
			t.Errorf("got %q, want %d whole files", said, count)
		}
		// Remove the files at the old place. The registry must not need them any more.
		for _, before := range []string{kept, filepath.Join(r.data, "files")} {
			if before != way.dir {
				for _, path := range blobs(t, before) {
					expect.OK(t, os.Remove(path))
				}
			}
		}
		r.start()
		r.mustHave("after the move", files)
		r.stop()
	}
}

// killMove starts a move to the new place, and kills it when the directory dir has at least the given number of
// files.
func killMove(t *testing.T, r *registry, to, dir string, moved int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(*bin, "registry"), "files", "move", "--data", r.data, "--to", to)
	expect.OK(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the command was killed, or it finished first
	}()
	await(t, "files at their new place", func() bool {
		select {
		case <-ended:
			return true
		default:
			return len(blobs(t, dir)) >= moved
		}
	})
	_ = cmd.Process.Kill() // it may have ended already
	<-ended
}

// TestKilledUploads kills the registry in the middle of uploads to a bucket. Afterwards, each file whose upload was
// acknowledged must be complete (docs/files.md, D2).
func TestKilledUploads(t *testing.T) {
	const rounds, clients = 5, 4
	store, r := s3test.Start(t, false, bucket), newRegistry(t)
	r.start()
	r.stop()
	r.must("files", "move", "--to", store.Address(bucket))
	var mu sync.Mutex
	acknowledged := map[string]string{}
	for round := range rounds {
		r.start()
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				for n := 0; ; n++ {
					text := strings.Repeat(fmt.Sprintf("%d-%d-%d ", round, client, n), 30_000)
					path, a, err := r.upload(text)
					if err != nil || a.status != http.StatusOK {
						return // the registry was killed
					}
					mu.Lock()
					acknowledged[path] = text
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(150+70*round) * time.Millisecond)
		r.kill()
		wg.Wait()
	}
	r.start()
	r.mustHave("after the kills", acknowledged)
	r.stop()
	if said := r.must("check", "--files"); !strings.Contains(said, "files.db: ok") {
		t.Errorf("got %q, want no fault", said)
	}
	copyOut(t, r, store.Address(bucket), len(acknowledged))
}

// copyOut copies the files of a bucket to a directory with the program filesvc. It fails the test if there are
// fewer files than the given number.
func copyOut(t *testing.T, r *registry, from string, least int) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "files")
	for range 2 { // copying again changes nothing
		said, err := exec.Command(filepath.Join(*bin, "filesvc"), "copy", "--store", "file:"+filepath.Join(r.data, "files.db"),
			"--secret-file", filepath.Join(r.data, "secret"), "--from", from, "--to", to).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		r.mustHideCredentials("filesvc copy", string(said))
	}
	if got := len(blobs(t, to)); got < least {
		t.Errorf("got %d files in the copy, want at least the %d that were acknowledged", got, least)
	}
}

// TestAStoreThatDies kills the object store that holds the files. Until the store is back, requests for files must
// get 503, and requests for assets must work. A registry that starts without the store must serve the files when
// the store is back.
func TestAStoreThatDies(t *testing.T) {
	store, r := s3test.Start(t, false, bucket), newRegistry(t)
	r.start()
	r.stop()
	r.must("files", "move", "--to", store.Address(bucket))
	r.start()
	kept := map[string]string{r.mustUpload("kept"): "kept"}
	r.mustHave("before", kept)
	store.Kill()
	mustWait := func(what string, a answer, err error) {
		t.Helper()
		if err != nil || a.status != http.StatusServiceUnavailable || a.retry == "" {
			t.Errorf("%s: got %d %s, Retry-After %q and %v, want 503 with Retry-After", what, a.status, a.text, a.retry, err)
		}
	}
	for path := range kept {
		for range 2 {
			_, a, err := r.upload("refused")
			mustWait("upload", a, err)
			mustWait("read", r.get(path), nil)
			r.slowest(1)
			r.stop() // so that the second round has a registry that started without the store
			r.start()
		}
	}
	store.Restart()
	await(t, "the file, after the store was back", func() bool {
		for path, text := range kept {
			if got := r.get(path); got.status != http.StatusOK || got.text != text {
				return false
			}
		}
		return true
	})
	kept[r.mustUpload("new")] = "new"
	r.mustHave("with the store", kept)
}

// TestAnArchiveFromABucket reads the archive of an asset whose files are in a bucket. Then it kills the object store in
// the middle of the archive, so the answer must break off.
func TestAnArchiveFromABucket(t *testing.T) {
	store, r := s3test.Start(t, false, bucket), newRegistry(t)
	r.start()
	r.stop()
	r.must("files", "move", "--to", store.Address(bucket))
	r.start()
	texts, of := map[string]string{}, r.mustPublish()
	for n := range 3 {
		name := fmt.Sprint(n, ".txt")
		texts[fmt.Sprintf("%02d %s", n+1, name)] = strings.Repeat(name, 3<<20) // more than buffers of connections hold
		r.mustAdd(of, name, texts[fmt.Sprintf("%02d %s", n+1, name)])
	}
	path := "/get/" + of.path[strings.LastIndex(of.path, "/")+1:] + "/documents.zip"
	await(t, "three files that everybody can read", func() bool {
		resp, err := http.Head("http://" + r.addr + path)
		return err == nil && resp.Header.Get(httpserver.TotalHeader) == "3"
	})
	whole := r.get(path)
	z, err := zip.NewReader(strings.NewReader(whole.text), int64(len(whole.text)))
	if err != nil || len(z.File) != len(texts) {
		t.Fatalf("got %d with %d bytes and %v, want an archive of 3 files", whole.status, len(whole.text), err)
	}
	for _, f := range z.File {
		text := expect.Get(io.ReadAll(expect.Get(f.Open())(t)))(t)
		if string(text) != texts[f.Name] {
			t.Errorf("%s: got %d bytes, want the %d of the file", f.Name, len(text), len(texts[f.Name]))
		}
	}
	resp, err := http.Get("http://" + r.addr + path)
	expect.OK(t, err)
	defer resp.Body.Close()
	expect.Get(io.ReadFull(resp.Body, make([]byte, 1000)))(t)
	store.Kill()
	if rest, err := io.Copy(io.Discard, resp.Body); resp.StatusCode != http.StatusOK || err == nil {
		t.Errorf("got %d, %d further bytes and no error, want an answer that breaks off", resp.StatusCode, rest)
	}
}

// TestAFullStore fills the disk of the object store. An upload must be refused, and no file may be lost.
func TestAFullStore(t *testing.T) {
	dir := disktest.New(t, 24)
	for _, pair := range s3test.Environment {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	store, r := s3test.StartIn(t, dir, false, bucket), newRegistry(t)
	r.start()
	r.stop()
	r.must("files", "move", "--to", store.Address(bucket))
	r.start()
	kept := map[string]string{r.mustUpload("kept"): "kept"}
	free := disktest.Fill(t, dir)
	for range 2 {
		_, a, err := r.upload(strings.Repeat("content ", 1<<17))
		if err != nil || a.status != http.StatusServiceUnavailable && a.status != http.StatusInsufficientStorage || a.retry == "" {
			t.Errorf("a full store: got %d %s, Retry-After %q and %v, want 503 or 507", a.status, a.text, a.retry, err)
		}
		r.mustHave("a full store", kept)
	}
	free()
	text := strings.Repeat("content ", 1<<17)
	kept[r.mustUpload(text)] = text
	r.mustHave("with room again", kept)
}

// TestChecksAndBackups damages and removes objects. The command check must name their files. A backup must not
// contain the bytes in the bucket. A restored registry must use the bucket only if it is configured to.
func TestChecksAndBackups(t *testing.T) {
	store, r := s3test.Start(t, false, bucket), newRegistry(t)
	r.start()
	files := map[string]string{}
	for _, text := range []string{"a", "bb", "ccc"} {
		files[r.mustUpload(text)] = text
	}
	r.stop()
	r.must("files", "move", "--to", store.Address(bucket))
	expect.OK(t, os.RemoveAll(filepath.Join(r.data, "files")))
	into := t.TempDir()
	r.must("backup", "--into", into)
	made, err := filepath.Glob(filepath.Join(into, "*.tar"))
	if err != nil || len(made) != 1 {
		t.Fatalf("got the backups %q and %v, want one", made, err)
	}
	alone, told := *r, *r
	alone.data, told.data = filepath.Join(t.TempDir(), "alone"), filepath.Join(t.TempDir(), "told")
	alone.must("restore", "--from", made[0])
	if said, code := alone.run("check"); code != 1 || !strings.Contains(said, "its bytes are missing") {
		t.Errorf("restored without the bucket: got %d %q, want 1 and missing bytes", code, said)
	}
	told.must("restore", "--from", made[0], "--bucket", store.Address(bucket))
	told.must("check", "--files")
	for _, path := range blobs(t, filepath.Join(store.Dir, bucket)) {
		info, err := os.Stat(path)
		expect.OK(t, err)
		switch info.Size() {
		case 1:
			err = os.WriteFile(path, []byte("x"), 0o600)
		case 2:
			err = os.Remove(path)
		}
		expect.OK(t, err)
	}
	said, code := r.run("check", "--files")
	if code != 1 || !strings.Contains(said, "SHA-256") || !strings.Contains(said, "its bytes are missing") {
		t.Errorf("damaged: got %d %q, want 1, a wrong SHA-256 and missing bytes", code, said)
	}
	r.start()
	for path, text := range files {
		if got := r.get(path); text == "ccc" && got.text != text || text == "bb" && got.status != http.StatusInternalServerError {
			t.Errorf("damaged: %s: got %d %q", path, got.status, got.text)
		}
	}
}
