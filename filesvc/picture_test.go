package filesvc

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/testing/expect"
)

// TestPictures has an illustration that names a file. A child process, which runs this test program, draws the
// pictures of the file. Readers must get the pictures only after the illustration names the file.
func TestPictures(t *testing.T) {
	r := start(t, func(c *Config) { c.Draw = DrawCommand() })
	var drawing bytes.Buffer
	expect.OK(t, png.Encode(&drawing, image.NewGray(image.Rect(0, 0, 3000, 1500))))
	getURL := r.upload(broker, "/upload", "a.png", "image/png", drawing.String()).field(t, "get_url")
	bare, query, _ := strings.Cut(getURL, "?")
	r.get(nobody, bare+"/320").is(t, "before a document names it", 403, "url/Signature/Not Found")
	r.get(nobody, bare+"/320?"+query).is(t, "before it is drawn", 404, "url/doc_id/Not Found")
	r.feed.Store(fmt.Sprintf(`{"data":[{"dateModified":"2026-11-26T09:00:00.000001Z","documents":[
		{"documentType":"illustration","url":%q}]}]}`, bare))
	var got answer
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if got = r.get(nobody, bare+"/320"); got.status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %d %q, want a picture once an illustration names the file", got.status, got.text)
		}
	}
	p, err := jpeg.Decode(strings.NewReader(got.text))
	expect.FatalIf(t, err != nil || p.Bounds().Size() != image.Pt(320, 160), "got %v, want a JPEG of 320 x 160", err)
	for name, want := range map[string]string{
		"Content-Type": "image/jpeg", "Cache-Control": "public, no-cache", "Content-Security-Policy": sandbox,
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
	} {
		if got := got.header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	expect.Equal(t, r.get(nobody, bare+"/320", "If-None-Match", got.header.Get("ETag")).status, 304, "")
	r.get(nobody, bare+"/320", "If-Match", `"x"`).
		is(t, "another tag", 412, "url/precondition/The file does not have the tag of If-Match.")
	r.get(nobody, "/get/"+strings.Repeat("0", 32)+"/320").is(t, "no file", 404, "url/doc_id/Not Found")
	large := r.get(nobody, bare+"/1200")
	if large.status != 200 || large.header.Get("ETag") == got.header.Get("ETag") {
		t.Errorf("got %d with the tag %s, want another picture", large.status, large.header.Get("ETag"))
	}
	for _, side := range []string{"0320", "319", "12000"} {
		r.get(nobody, bare+"/"+side).is(t, side, 404, "url/doc_id/Not Found")
	}
}

// TestKilledChildrenAreNoVerdict runs one process after another, whose children are killed while they draw a picture. Each
// process must go on where the process before has stopped. After the sixth drawing the pictures are given up, until
// DrawAgain is called.
func TestKilledChildrenAreNoVerdict(t *testing.T) {
	dir := t.TempDir()
	store := "file:" + filepath.Join(dir, "files.db")
	var drawing bytes.Buffer
	expect.OK(t, png.Encode(&drawing, image.NewGray(image.Rect(0, 0, 30, 15))))
	address, id := "", ""
	process := func(t *testing.T, days int, draw []string) (*rig, *Server) {
		t.Helper()
		var s *Server
		r := start(t, func(c *Config) {
			c.Store, c.Bytes, c.Draw = store, filepath.Join(dir, "files"), draw
			c.Now = func() time.Time { return time.Now().AddDate(0, 0, days) }
		}, func(started *Server) { s = started })
		if id == "" {
			address, _, _ = strings.Cut(r.upload(broker, "/upload", "a.png", "image/png", drawing.String()).field(t, "get_url"), "?")
			id = path.Base(address)
		}
		r.feed.Store(fmt.Sprintf(`{"data":[{"dateModified":"2026-11-26T09:00:00.000001Z","documents":[
			{"documentType":"illustration","url":%q}]}]}`, address))
		return r, s
	}
	for n := range int64(6) {
		t.Run(fmt.Sprintf("process %d", n), func(t *testing.T) {
			r, s := process(t, int(n), []string{"/bin/sh", "-c", "kill -9 $$"})
			want := map[bool]file.Picture{true: file.Unmade, false: file.Wanted}[n == 5]
			var f file.File
			for end := time.Now().Add(time.Minute); f.Ended <= n && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				var err error
				f, err = s.store.Get(t.Context(), id)
				expect.OK(t, err)
			}
			if f.Ended != n+1 || f.Picture != want {
				t.Fatalf("got %q, ended %d times; want %q and %d", f.Picture, f.Ended, want, n+1)
			}
			r.get(nobody, address+"/320").is(t, "a picture that was not drawn", 404, "url/doc_id/Not Found")
		})
	}
	for _, want := range []int{1, 0} {
		if files, err := DrawAgain(t.Context(), store, secrets, nil); files != want || err != nil {
			t.Fatalf("got %d files and %v, want %d", files, err, want)
		}
	}
	r, _ := process(t, 6, DrawCommand())
	for end := time.Now().Add(time.Minute); r.get(nobody, address+"/320").status != 200; time.Sleep(5 * time.Millisecond) {
		expect.FatalIf(t, time.Now().After(end), "got no picture, want it drawn when nobody kills the child")
	}
}

const sandbox = "sandbox; default-src 'none'"

// TestPicturesAreCopied copies the pictures of a file twice. The bytes of the large picture do not exist, but the
// small one must be copied.
func TestPicturesAreCopied(t *testing.T) {
	from := expect.Get(openBytes(t.TempDir(), "", 0))(t)
	to := expect.Get(openBytes(t.TempDir(), "", 0))(t)
	id := strings.Repeat("0", 32)
	f := file.File{ID: id, Small: id + "-0000000000000001", Large: id + "-0000000000000002"}
	expect.OK(t, from.Put(t.Context(), f.Small, strings.NewReader("small")))
	for range 2 {
		expect.OK(t, copyPictures(t.Context(), from, to, f))
	}
	blob := expect.Get(to.Open(t.Context(), f.Small))(t)
	defer blob.Close()
	if got, err := io.ReadAll(blob); err != nil || string(got) != "small" {
		t.Errorf("got %q, %v, want the picture", got, err)
	}
}
