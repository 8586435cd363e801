package filesvc

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
)

// TestPictures has an illustration that names a file. A child process, which runs this test program, draws the
// pictures of the file. Readers must get the pictures only after the illustration names the file.
func TestPictures(t *testing.T) {
	r := start(t, func(c *Config) { c.Draw = DrawCommand() })
	var drawing bytes.Buffer
	if err := png.Encode(&drawing, image.NewGray(image.Rect(0, 0, 3000, 1500))); err != nil {
		t.Fatal(err)
	}
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
	if err != nil || p.Bounds().Size() != image.Pt(320, 160) {
		t.Fatalf("got %v, want a JPEG of 320 x 160", err)
	}
	for name, want := range map[string]string{
		"Content-Type": "image/jpeg", "Cache-Control": "public, no-cache", "Content-Security-Policy": sandbox,
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
	} {
		if got := got.header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	if again := r.get(nobody, bare+"/320", "If-None-Match", got.header.Get("ETag")); again.status != 304 {
		t.Errorf("got %d, want 304", again.status)
	}
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

const sandbox = "sandbox; default-src 'none'"

// TestPicturesAreCopied copies the pictures of a file twice. The bytes of the large picture do not exist, but the
// small one must be copied.
func TestPicturesAreCopied(t *testing.T) {
	from, err := openBytes(t.TempDir(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	to, err := openBytes(t.TempDir(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("0", 32)
	f := file.File{ID: id, Small: id + "-0000000000000001", Large: id + "-0000000000000002"}
	if err := from.Put(t.Context(), f.Small, strings.NewReader("small")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := copyPictures(t.Context(), from, to, f); err != nil {
			t.Fatal(err)
		}
	}
	blob, err := to.Open(t.Context(), f.Small)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	if got, err := io.ReadAll(blob); err != nil || string(got) != "small" {
		t.Errorf("got %q, %v, want the picture", got, err)
	}
}
