package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/randtest"
)

// illustration returns a PNG of 1,600 x 800 pixels. Each call returns different bytes.
func illustration(t *testing.T) string {
	t.Helper()
	p := image.NewRGBA(image.Rect(0, 0, 1600, 800))
	n := randtest.Uint32()
	p.SetRGBA(0, 0, color.RGBA{R: uint8(n), G: uint8(n >> 8), B: uint8(n >> 16), A: 255})
	var out bytes.Buffer
	if err := png.Encode(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// illustrate creates an asset with an illustration, and returns the file. It does not wait for the small versions
// of the picture.
func (a api) illustrate(t *testing.T) *keptFile {
	t.Helper()
	f := &keptFile{api: a, content: illustration(t), asset: a.publish(t, validAsset())}
	f.upload(t)
	f.document, _ = f.add(t, "broker", f.asset, "documents", validDocument().set("documentType", "illustration").
		set("title", "Фасад").set("format", "image/png").set("url", f.url).set("hash", f.hash()))
	return f
}

// bare returns the address of the file without a signature.
func (f *keptFile) bare() string {
	bare, _, _ := strings.Cut(f.url, "?")
	return bare
}

// awaitPictures waits until everybody can read the small versions of the file.
func (f *keptFile) awaitPictures(t *testing.T) {
	t.Helper()
	for side, want := range map[string]image.Point{"/320": {X: 320, Y: 160}, "/1200": {X: 1200, Y: 600}} {
		for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			resp, text := f.ask(t, "GET", f.bare()+side, "", "", nil)
			if resp.StatusCode == http.StatusOK {
				p, err := jpeg.Decode(strings.NewReader(text))
				if err != nil || p.Bounds().Size() != want || resp.Header.Get("Content-Type") != "image/jpeg" {
					t.Errorf("got %v as %s, want a JPEG of %v", err, resp.Header.Get("Content-Type"), want)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("got %d %s for 60 s, want the picture %s", resp.StatusCode, text, side)
			}
		}
	}
}

// testPictures gives an asset an illustration. Its document must have two thumbnails, which everybody can read.
// After the illustration was taken down, a read of each thumbnail must get 410 (docs/contract.md, "Files").
// Promises: thumbnails
func testPictures(t *testing.T, a api) {
	f := a.illustrate(t)
	document := f.do(t, call{method: "GET", path: f.document}).must(t, 200).data()
	want := []any{
		map[string]any{"url": f.bare() + "/320", "side": json.Number("320")},
		map[string]any{"url": f.bare() + "/1200", "side": json.Number("1200")},
	}
	if diff := cmp.Diff(want, document["thumbnails"]); diff != "" {
		t.Errorf("thumbnails of the document (-want +got):\n%s", diff)
	}
	former := api{a.base, "2.4"}.do(t, call{method: "GET", path: f.document}).must(t, 200).data()
	if former["thumbnails"] != nil {
		t.Errorf("got %v in version 2.4, want no thumbnails", former["thumbnails"])
	}
	if record := a.read(t, f.asset.id).must(t, 200).text; strings.Contains(record, "thumbnails") {
		t.Errorf("got %s, want a record without thumbnails", record)
	}
	a.as(t, "broker", f.asset, "PATCH", f.document, fields{"thumbnails": want}).fails(t, 400, "body/thumbnails")
	f.awaitPictures(t)
	resp, body := f.ask(t, "GET", f.bare()+"/100", "", "", nil)
	is(t, "another size", resp, body, http.StatusNotFound)
	resp, _ = f.ask(t, "GET", f.bare()+"/320", "", "", nil)
	for name, want := range map[string]string{
		"Cache-Control": "public, no-cache", "X-Content-Type-Options": "nosniff",
		"Cross-Origin-Resource-Policy": "cross-origin",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	f.takeDown(t)
	for _, side := range []string{"/320", "/1200"} {
		for _, method := range []string{"GET", "HEAD"} {
			resp, text := f.ask(t, method, f.bare()+side, "", "", nil)
			is(t, method+" of a picture of a removed file", resp, text, http.StatusGone)
		}
	}
}

// testPageWithPictures reads the page of an asset with an illustration. The page must show the picture. After the
// illustration was taken down, the page must show no picture.
func testPageWithPictures(t *testing.T, a api) {
	f := a.illustrate(t)
	f.awaitPictures(t)
	page := "/en/assets/" + f.asset.id
	resp, body := f.ask(t, "GET", page, "", "", nil)
	is(t, "the page", resp, body, http.StatusOK)
	path := strings.TrimPrefix(f.bare(), f.bare()[:strings.Index(f.bare(), "/get/")]) + "/1200"
	// A page leaves out a picture if it does not learn within a second that the picture can be read.
	for end := time.Now().Add(30 * time.Second); !strings.Contains(body, path) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		_, body = f.ask(t, "GET", page, "", "", nil)
	}
	for _, want := range []string{
		`<img src="` + path + `" width="1200" height="675" alt="Фасад" lang="uk">`, `<meta property="og:image" content="http`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("got the page\n%s\nwant %s in it", body, want)
		}
	}
	small := strings.TrimSuffix(path, "1200") + "320"
	results := "/en/?q=" + f.asset.id
	row := `<img src="` + small + `" width="320" height="320" loading="lazy" alt="">`
	for end := time.Now().Add(30 * time.Second); !strings.Contains(body, row); time.Sleep(50 * time.Millisecond) {
		if resp, body = f.ask(t, "GET", results, "", "", nil); time.Now().After(end) {
			t.Fatalf("got the results %d\n%s\nfor 30 s, want %s in them", resp.StatusCode, body, row)
		}
	}
	f.takeDown(t)
	resp, body = f.ask(t, "GET", small, "", "", nil)
	is(t, "the picture of a result after the removal", resp, body, http.StatusGone)
	resp, body = f.ask(t, "GET", page, "", "", nil)
	is(t, "the page after the removal", resp, body, http.StatusOK)
	if strings.Contains(body, "<img") || strings.Contains(body, "og:image") {
		t.Errorf("got the page\n%s\nwant no picture of a removed file", body)
	}
}
