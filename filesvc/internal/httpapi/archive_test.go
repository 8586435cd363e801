package httpapi

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

const (
	ours    = "https://r.example/get/"
	archive = "0000000000000000000000000000000a" // id of the asset
)

// opening counts the files that are opened.
type opening struct {
	file.Bytes
	opened atomic.Int64
}

func (o *opening) Open(ctx context.Context, name string) (file.Blob, error) {
	o.opened.Add(1)
	return o.Bytes.Open(ctx, name)
}

// archiver is a file service with an asset whose documents a test writes.
type archiver struct {
	t        *testing.T
	dir      string
	store    *boltstore.Store
	bytes    opening
	files    *file.Service
	url      string
	versions []map[string]any
	err      error // of reading the documents
}

func newArchiver(t *testing.T) *archiver {
	t.Helper()
	a := &archiver{t: t, dir: t.TempDir()}
	a.bytes.Bytes = expect.Get(dirstore.Open(filepath.Join(a.dir, "files")))(t)
	r := newRig(t, &a.bytes, func(c *Config) {
		c.Base = filelink.Base("https://r.example")
		c.Documents = func(context.Context, string, string) ([]byte, error) {
			if a.err != nil {
				return nil, a.err
			}
			return json.Marshal(a.versions)
		}
	})
	a.files, a.store = r.files, r.store
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.sign(t, q, identity.Identity{})
		r.handler.ServeHTTP(w, q)
	}))
	a.url = server.URL + "/get/"
	t.Cleanup(server.Close)
	return a
}

// add stores a file that everybody can read, and a version of a document that names it.
func (a *archiver) add(document, title, name, text string) file.File {
	a.t.Helper()
	by := identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}
	f := expect.Get(a.files.Add(a.t.Context(), by, file.Upload{Body: strings.NewReader(text), Title: name}))(a.t)
	expect.OK(a.t, a.files.Name(a.t.Context(), f.ID, false))
	a.names(document, title, ours+f.ID, f.SHA256)
	return f
}

// The method `names` adds a version of a document.
func (a *archiver) names(document, title, url, sha256 string) {
	a.versions = append(a.versions, map[string]any{"id": document, "title": title, "url": url, "sha256": sha256,
		"dateModified": time.Unix(int64(1_800_000_000+len(a.versions)), 0).UTC()})
}

// get asks for the archive. The error is that of reading the body.
func (a *archiver) get(method, asset string) (resp *http.Response, body []byte, err error) {
	a.t.Helper()
	q, err := http.NewRequestWithContext(a.t.Context(), method, a.url+asset+"/documents.zip", nil)
	expect.OK(a.t, err)
	resp, err = http.DefaultClient.Do(q)
	if err != nil {
		return &http.Response{}, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp, body, err
}

// TestAnArchiveHasTheFilesThatEverybodyReads has documents whose files belong into the archive, and documents of every
// other kind. HEAD must say the same, and open no file.
// Promises: archive-files, archive-names
func TestAnArchiveHasTheFilesThatEverybodyReads(t *testing.T) {
	a := newArchiver(t)
	a.add("1", "Старий план", "plan.pdf", "old")
	a.add("2", "Договір оренди", "скан.PDF", "lease")
	a.add("1", "План", "plan.pdf", "new")
	a.add("3", "план", "b.pdf", "same name in small letters")
	a.add("4", "../../etc/passwd", "x", "a path")
	a.add("5", "CON", "aux.txt", strings.Repeat("x", 200_000))
	a.add("6", "Порожній. . .", "empty.txt", "")
	gone := a.add("7", "removed", "r.pdf", "removed")
	expect.Get(a.files.Remove(t.Context(), identity.Identity{KeyID: "k9", Role: identity.Administrator}, gone.ID, "because"))(t)
	other := a.add("8", "other bytes than the document says", "o.pdf", "other")
	a.versions[len(a.versions)-1]["sha256"] = strings.Repeat("0", 64)
	a.names("9", "elsewhere", "https://r.example.com/get/"+other.ID, other.SHA256)
	a.names("10", "below", "https://r.example/get/x/"+other.ID, other.SHA256)
	a.names("11", "no such file", ours+strings.Repeat("0", 32), strings.Repeat("0", 64))
	a.names("12", "not come", ours+other.ID, "")
	secret := expect.Get(a.files.Add(t.Context(), identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker},
		file.Upload{Body: strings.NewReader("no document that is public names it"), Title: "s"}))(t)
	a.names("13", "secret", ours+secret.ID, secret.SHA256)

	head, _, err := a.get(http.MethodHead, archive)
	expect.OK(t, err)
	expect.Equal(t, a.bytes.opened.Load(), 0, "files that HEAD opened")
	resp, body, err := a.get(http.MethodGet, archive)
	expect.OK(t, err)
	for name, want := range map[string]string{"Content-Type": "application/zip", "Cache-Control": "no-store",
		"Content-Length": strconv.Itoa(len(body)), httpserver.TotalHeader: "6", "X-Content-Type-Options": "nosniff",
		"Content-Disposition": `attachment; filename="` + archive + `.zip"; filename*=UTF-8''` + archive + ".zip"} {
		expect.Equal(t, resp.Header.Get(name), want, "%s", name)
		expect.Equal(t, head.Header.Get(name), want, "%s of HEAD", name)
	}
	z := expect.Get(zip.NewReader(bytes.NewReader(body), int64(len(body))))(t)
	want := []struct{ name, text string }{
		{"01 Договір оренди.PDF", "lease"}, {"02 План.pdf", "new"}, {"03 план.pdf", "same name in small letters"},
		{"04 _.._etc_passwd.txt", "a path"}, {"05 CON.txt", strings.Repeat("x", 200_000)}, {"06 Порожній.txt", ""},
	}
	expect.Equal(t, len(z.File), len(want), "files")
	for i, f := range z.File[:min(len(z.File), len(want))] {
		r := expect.Get(f.Open())(t)
		text := expect.Get(io.ReadAll(r))(t)
		if f.Name != want[i].name || string(text) != want[i].text || f.Method != zip.Store {
			t.Errorf("got %q with %d bytes, method %d; want %q with %d, not compressed",
				f.Name, len(text), f.Method, want[i].name, len(want[i].text))
		}
	}
	expect.Equal(t, a.bytes.opened.Load(), 6, "files that GET opened")
}

// TestNamesInAnArchive has titles that some system cannot store.
// Promises: archive-names
func TestNamesInAnArchive(t *testing.T) {
	bad := regexp.MustCompile(`[<>:"/\\|?*\x00-\x1f\x7f\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]|[ .]$|^[ .]`)
	for title, want := range map[string]string{
		"a.pdf": "a.pdf", "A.PDF": "A.pdf", "a.docx": "a.docx.pdf", "": "scan.pdf", "...": "file.pdf", " . ": "file.pdf",
		"a/b\\c:d": "a_b_c_d.pdf", "тендер\u202egnp.exe": "тендерgnp.exe.pdf", "a\tb\nc": "a b c.pdf", "\xff\xfe": "__.pdf",
		"a\u0000b": "a_b.pdf", "nul.": "nul.pdf", "a\u2028b": "a b.pdf", "\u200b": "file.pdf",
		strings.Repeat("ї", 5000): strings.Repeat("ї", 90) + ".pdf", strings.Repeat("😀", 99): strings.Repeat("😀", 45) + ".pdf",
	} {
		got := titled(title, file.File{Title: "scan.pdf"})
		expect.Equal(t, got, want, "%q", title)
		if bad.MatchString(got) || len(got) > 250 || !utf8.ValidString(got) {
			t.Errorf("%q: got %q, which some system cannot store", title, got)
		}
	}
	for name, want := range map[string]string{
		"x": "t.jpg", "x.": "t.jpg", "x.toolongending": "t.jpg", "x.a b": "t.jpg", "x./..": "t.jpg", "x.JPEG": "t.JPEG",
	} {
		expect.Equal(t, titled("t", file.File{Title: name, Detected: "image/jpeg"}), want, "%q", name)
	}
	expect.Equal(t, titled("t", file.File{Title: "x", Detected: "no type"}), "t", "no type")
}

// TestABrokenArchiveIsNoArchive damages the bytes of a file. Of the first file the answer is a refusal as far as that is
// known before it, else the connection ends.
// Promises: archive-whole
func TestABrokenArchiveIsNoArchive(t *testing.T) {
	for at := range 3 {
		for name, damage := range map[string]func(text []byte) []byte{
			"other bytes": func(text []byte) []byte { text[len(text)/2]++; return text },
			"last byte":   func(text []byte) []byte { text[len(text)-1]++; return text },
			"fewer bytes": func(text []byte) []byte { return text[1:] },
			"more bytes":  func(text []byte) []byte { return append(text, 'x') },
			"no bytes":    func([]byte) []byte { return nil },
		} {
			a := newArchiver(t)
			var all []file.File
			for i, size := range []int{1, 100_000, 70_000} {
				all = append(all, a.add(fmt.Sprint(i), "t", "a.txt", strings.Repeat("x", size)))
			}
			if at == 0 && name == "fewer bytes" {
				continue // this is no bytes
			}
			found := expect.Get(filepath.Glob(filepath.Join(a.dir, "files", "*", all[at].Blob)))(t)
			text := expect.Get(os.ReadFile(found[0]))(t)
			expect.OK(t, os.Chmod(found[0], 0o600))
			expect.OK(t, os.WriteFile(found[0], damage(text), 0o600))
			resp, body, err := a.get(http.MethodGet, archive)
			_, opens := zip.NewReader(bytes.NewReader(body), int64(len(body)))
			if resp.StatusCode == http.StatusOK && (err == nil || opens == nil) || a.files.Counts.Unread.Load() == 0 {
				t.Errorf("file %d, %s: got %d with %d bytes and %v, want an answer that breaks off",
					at, name, resp.StatusCode, len(body), err)
			}
		}
	}
}

// TestArchivesAreBounded has as many files, and as many bytes, as an archive takes, and one more.
// Promises: archive-bounds
func TestArchivesAreBounded(t *testing.T) {
	a := newArchiver(t)
	status := func(want int, what string) {
		t.Helper()
		resp, _, err := a.get(http.MethodHead, archive)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: got %d and %v, want %d", what, resp.StatusCode, err, want)
		}
	}
	status(404, "no document")
	a.err = fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
	status(404, "no asset")
	a.err = io.ErrUnexpectedEOF
	status(503, "an asset service that is away")
	a.err = nil
	if resp, _, err := a.get(http.MethodHead, "x"); err != nil || resp.StatusCode != 404 {
		t.Errorf("no id: got %d and %v, want 404", resp.StatusCode, err)
	}
	whole := func(n int, size int64) {
		id := fmt.Sprintf("%032x", n)
		expect.OK(t, a.store.Create(t.Context(), file.File{ID: id, State: file.Stored, Named: true, SHA256: "s", Size: size,
			Revision: 1}))
		a.names(id, "t", ours+id, "s")
	}
	whole(1, 1<<30-1)
	whole(2, 1)
	status(200, "1 GiB")
	whole(3, 1)
	status(413, "a byte more")
	a.versions = a.versions[1:]
	for n := len(a.versions); n < 1000; n++ {
		whole(n+10, 0)
	}
	status(200, "1,000 files")
	whole(2000, 0)
	status(413, "a file more")
	expect.Equal(t, a.bytes.opened.Load(), 0, "files that were opened")
}
