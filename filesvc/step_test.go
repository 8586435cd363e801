package filesvc

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/filelink"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// childStep is an environment variable. It names the step of an upload at which the program kills itself.
const childStep = "FILESVC_TEST_STEP"

// The steps of an upload (docs/files.md, "Upload").
var uploadSteps = []string{"half is read", "all is read", "the bytes have their name", "the metadata name them"}

// dieAt makes the service kill its process at a step of an upload.
func (s *Server) dieAt(step string) error {
	links, err := filelink.NewSigner(secrets)
	if err != nil {
		return err
	}
	signer, err := identity.NewSigner(secrets, time.Now)
	if err != nil {
		return err
	}
	stores := dying{s.store, dirstore.Existing(s.config.Bytes), step}
	limits := file.Limits{FileBytes: DefaultMaxFile, BrokerBytes: DefaultBrokerFiles, Waiting: DefaultWaiting}
	s.files = file.NewService(stores, s.store, stores, limits, time.Now)
	s.route(signer, links, feed{})
	return nil
}

// dying wraps both stores, and kills the process at a step.
type dying struct {
	file.Files
	file.Bytes
	step string
}

func (d dying) at(step string) {
	if d.step != step {
		return
	}
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // waits until the process is dead
}

func (d dying) Put(ctx context.Context, name string, from io.Reader) error {
	err := d.Bytes.Put(ctx, name, &stepReader{from: from, dying: d})
	if err == nil {
		d.at("the bytes have their name")
	}
	return err
}

func (d dying) Replace(ctx context.Context, f file.File) error {
	err := d.Files.Replace(ctx, f)
	if err == nil && f.State == file.Stored {
		d.at("the metadata name them")
	}
	return err
}

// stepReader kills the process when a part of the bytes, or all of them, have arrived.
type stepReader struct {
	from io.Reader
	dying
	count int
}

func (s *stepReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if s.count++; s.count == 3 {
		s.at("half is read")
	}
	if err == io.EOF {
		s.at("all is read")
	}
	return n, err
}

// TestKilledAtEachStep kills the process at each step of an upload (docs/files.md, D2). After a restart, the
// file must be whole or without bytes. Repeating the upload must work. The files must then be whole after further
// kills, and killed uploads must leave nothing that stays for ever.
func TestKilledAtEachStep(t *testing.T) {
	dir, text := t.TempDir(), strings.Repeat("content ", 200_000)
	signer := expect.Get(identity.NewSigner(secrets, time.Now))(t)
	var stored []string
	for _, step := range uploadSteps {
		c := startChild(t, dir, childStep+"="+step)
		r := &rig{t: t, url: c.url, signer: signer}
		registered := r.register(broker, `{"data":{"hash":"`+hash(text)+`"}}`)
		to := registered.field(t, "upload_url")
		if status, err := r.tryUpload(to, text); err == nil {
			t.Errorf("%s: got the answer %d, want that the process dies before", step, status)
		}
		_ = c.cmd.Wait() // returns an error, because the process was killed
		c = startChild(t, dir)
		r.url = c.url
		get := strings.Replace(strings.SplitN(to, "?", 2)[0], "/upload/", "/get/", 1)
		want := answer{status: http.StatusNoContent}
		if step == uploadSteps[len(uploadSteps)-1] {
			want = answer{status: http.StatusOK, text: text}
		}
		if got := r.get(broker, get); got.status != want.status || got.text != want.text {
			t.Errorf("%s: got %d and %d bytes, want %d and %d", step, got.status, len(got.text), want.status, len(want.text))
		}
		if status, err := r.tryUpload(to, text); err != nil || (status == http.StatusForbidden) != (want.text != "") {
			t.Errorf("%s, repeated: got %d, %v, want 403 only if it was stored", step, status, err)
		}
		if got := r.get(broker, get); got.text != text {
			t.Errorf("%s, repeated: got %d and %d bytes, want the file", step, got.status, len(got.text))
		}
		for _, get := range stored {
			expect.ErrorIf(t, r.get(broker, get).text != text, "%s: got another file than before, want it whole", step)
		}
		stored = append(stored, get)
		c.kill()
	}
	if left := blobsIn(t, dir); len(left) <= len(uploadSteps) {
		t.Errorf("got the blobs %q, want more than the blobs of %d files", left, len(uploadSteps))
	}
	later(t, dir)
	if left := blobsIn(t, dir); len(left) > 0 {
		t.Errorf("got the blobs %q two days later, want none: no document names a file", left)
	}
}

// blobsIn returns the paths of the files in the directory of the bytes.
func blobsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	expect.OK(t, filepath.WalkDir(filepath.Join(dir, "files"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return slices.Clip(names)
}

// The function `later` starts a service whose clock is two days ahead, and runs its collector until more than a day has
// been counted and the feed was read.
func later(t *testing.T, dir string) {
	t.Helper()
	var s *Server
	start(t, func(c *Config) {
		c.Store, c.Bytes = "file:"+filepath.Join(dir, "files.db"), filepath.Join(dir, "files")
		c.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	}, func(started *Server) { s = started })
	const runs = 28
	passed := time.Duration(0)
	collect := func() {
		passed += time.Hour
		expect.Get(s.files.Collect(t.Context(), func() time.Duration { return passed }))(t)
	}
	for range runs {
		collect()
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if r, err := s.store.Reading(t.Context()); err != nil || r.Began >= runs {
			break
		}
		expect.FatalIf(t, time.Now().After(end), "the feed was not read in 20 s")
	}
	collect()
}
