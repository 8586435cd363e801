package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/export"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// change adds the asset with the number n to the feed, and makes a snapshot. It returns the newest whole copy in
// the given form.
func (s withSnapshots) change(t *testing.T, n int, text, form string) snapshot.Copy {
	t.Helper()
	id := fmt.Sprintf("%032x", n)
	s.list(t, id, fmt.Sprintf(`{"id":%q,"status":"active","rectificationPeriod":{},"title":%q}`, id, text))
	s.make(t)
	m := expect.Get(s.keep.NewestCopies())(t)
	for _, c := range m.Copies {
		if c.Name == form {
			return c
		}
	}
	t.Fatalf("got %+v, want a copy %s", m, form)
	return snapshot.Copy{}
}

// TestTheNewestWholeCopiesAreListed asks for the list before and after copies are made, and on conditions.
func TestTheNewestWholeCopiesAreListed(t *testing.T) {
	const path = "/data/manifest.json"
	newService(t).do(t, exchange{"GET", path, "", "", "", 404, "keeps no whole copies"})
	s := newWithSnapshots(t)
	s.do(t, exchange{"GET", path, "", "", "", 404, "There is no whole copy"})
	s.change(t, 1, "Готель", "assets.csv")
	m := expect.Get(s.keep.NewestCopies())(t)
	want := export.Manifest{Date: asset.FormatTime(m.Time(), time.UTC), Position: printPosition(m.Position, time.UTC)}
	for _, f := range m.Copies {
		want.Files = append(want.Files, export.File{
			Name: f.Name, Path: "/data/" + f.SHA256 + "/" + f.Name, SHA256: f.SHA256, Bytes: f.Bytes, Rows: f.Rows,
		})
	}
	answer := s.do(t, exchange{"GET", path, "", "", "", 200, ""})
	var got struct{ Data export.Manifest }
	expect.OK(t, json.Unmarshal(answer.Body.Bytes(), &got))
	if diff := cmp.Diff(want, got.Data); diff != "" || len(got.Data.Files) != len(export.Whole) {
		t.Errorf("the list of %d copies differs (-want +got):\n%s", len(export.Whole), diff)
	}
	tag := answer.Header().Get("ETag")
	if caching := answer.Header().Get("Cache-Control"); tag == "" || caching != "no-cache" {
		t.Errorf("got the tag %q and Cache-Control %q, want a tag and no-cache", tag, caching)
	}
	s.doWith(t, http.Header{"If-None-Match": {tag}}, exchange{"GET", path, "", "", "", 304, ""})
	s.doWith(t, http.Header{"If-None-Match": {"x"}}, exchange{"GET", path, "", "", "", 400, "If-None-Match"})
	s.doWith(t, http.Header{"If-Match": {`"x"`}}, exchange{"GET", path, "", "", "", 412, ""})
	s.change(t, 2, "Склад", "assets.csv")
	s.doWith(t, http.Header{"If-None-Match": {tag}}, exchange{"GET", path, "", "", "", 200, "sha256"})
}

// Promises: whole-address
func TestEachWholeCopyHasALastingAddress(t *testing.T) {
	none := "/data/" + strings.Repeat("0", 64) + "/assets.csv"
	for _, path := range []string{"/data/assets.csv", none} {
		newService(t).do(t, exchange{"GET", path, "", "", "", 404, "keeps no whole copies"})
	}
	s := newWithSnapshots(t)
	s.do(t, exchange{"GET", "/data/assets.csv", "", "", "", 404, "There is no whole copy"})
	for _, f := range export.Whole {
		made := s.change(t, 1+len(f.Name)*100, "Готель", f.Name)
		got := s.do(t, exchange{"GET", "/data/" + f.Name, "", "", "", 200, ""})
		h := got.Header()
		for name, want := range map[string]string{
			"ETag": `"` + made.SHA256 + `"`, "Content-Type": f.ContentType, "Cache-Control": "no-cache",
			"Content-Location": "/data/" + made.SHA256 + "/" + f.Name, "Content-Length": fmt.Sprint(made.Bytes),
			"Content-Disposition": `attachment; filename="` + f.Name + `"`,
		} {
			if h.Get(name) != want {
				t.Errorf("%s: got %s %q, want %q", f.Name, name, h.Get(name), want)
			}
		}
		own := s.do(t, exchange{"GET", h.Get("Content-Location"), "", "", "", 200, ""})
		if own.Body.String() != got.Body.String() || own.Header().Get("Cache-Control") != cacheParts {
			t.Errorf("%s: got other bytes, or %q, at the address with the hash", f.Name, own.Header().Get("Cache-Control"))
		}
		s.doWith(t, http.Header{"If-None-Match": {h.Get("ETag")}}, exchange{"GET", "/data/" + f.Name, "", "", "", 304, ""})
		if got := s.do(t, exchange{"HEAD", "/data/" + f.Name, "", "", "", 200, ""}); got.Body.Len() > 0 {
			t.Errorf("%s: got %d bytes for HEAD, want none", f.Name, got.Body.Len())
		}
	}
	s.do(t, exchange{"GET", "/data/assets.xlsx", "", "", "", 404, "there are assets.csv, items.csv,"})
	for _, path := range []string{"/data/lock", "/data/assets.xlsx", "/data/..%2flock", none} {
		got := s.do(t, exchange{"GET", path, "", "", "", 404, ""})
		if h := got.Header(); h.Get("Content-Disposition") != "" || h.Get("ETag") != "" {
			t.Errorf("%s: got headers of a file with a refusal: %v", path, h)
		}
	}
}

// TestADownloadNeverMixesCopies resumes downloads after newer copies were made. A resumed download must go on
// with the same copy, or begin again with a newer one.
// Promises: whole-resume
func TestADownloadNeverMixesCopies(t *testing.T) {
	s := newWithSnapshots(t)
	const form, path = "items.csv", "/data/assets.csv"
	first := s.change(t, 1, "Готель", "assets.csv")
	whole := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
	own := "/data/" + first.SHA256 + "/assets.csv"
	rest := http.Header{"Range": {"bytes=100-"}}
	resumed := http.Header{"Range": {"bytes=100-"}, "If-Range": {`"` + first.SHA256 + `"`}}
	ask := func(what, path string, h http.Header, status int, want string) {
		t.Helper()
		got := s.doWith(t, h, exchange{"GET", path, "", "", "", status, ""})
		if status < 400 && got.Body.String() != want {
			t.Errorf("%s: got %q, want %q", what, got.Body, want)
		}
		for _, name := range []string{"ETag", "Content-Disposition", "Content-Location"} {
			if value := got.Header().Get(name); status >= 400 && value != "" {
				t.Errorf("%s: got %s %q with a refusal, want none", what, name, value)
			}
		}
	}
	ask("the same copy", path, resumed, 206, whole[100:])
	ask("the same copy without If-Range", path, rest, 200, whole)
	ask("its own address", own, rest, 206, whole[100:])
	s.change(t, 2, "Склад", form)
	second := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
	expect.FatalIf(t, second == whole, "got the same copy after a change, want another")
	ask("after a newer copy", path, resumed, 206, whole[100:])
	ask("after a newer copy, without If-Range", path, rest, 200, second)
	ask("after a newer copy, without Range", path, http.Header{"If-Range": resumed["If-Range"]}, 200, second)
	ask("after a newer copy, several ranges", path,
		http.Header{"Range": {"bytes=0-1,4-5"}, "If-Range": resumed["If-Range"]}, 416, "")
	ask("after a newer copy, its own address", own, rest, 206, whole[100:])
	other := http.Header{"Range": {"bytes=100-"}, "If-Range": {`"../` + first.SHA256[3:] + `"`}}
	ask("If-Range with no hash", path, other, 200, second)
	s.change(t, 3, "Гараж", form)
	third := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
	ask("after the copy was removed", path, resumed, 200, third)
	ask("after the copy was removed, its own address", own, rest, 404, "")
	ask("several ranges", own[:6]+s.newest(t), http.Header{"Range": {"bytes=0-1,4-5"}}, 416, "")
}

// newest returns the last part of an address: the hash and the name of the newest table of assets.
func (s withSnapshots) newest(t *testing.T) string {
	t.Helper()
	at := s.do(t, exchange{"HEAD", "/data/assets.csv", "", "", "", 200, ""}).Header().Get("Content-Location")
	return strings.TrimPrefix(at, "/data/")
}

func TestSoManyWholeCopiesAreSentAtOnce(t *testing.T) {
	expect.Equal(t, maxCopyReaders, 128, "copies that are sent at once")
	s := newWithSnapshots(t)
	s.change(t, 1, "Готель", "assets.csv")
	s.api.snapshots.copiers = make(chan struct{}, 1)
	s.api.snapshots.copiers <- struct{}{}
	s.do(t, exchange{"GET", "/data/assets.csv", "", "", "", 503, ""})
	<-s.api.snapshots.copiers
	s.do(t, exchange{"GET", "/data/assets.csv", "", "", "", 200, ""})
	s.do(t, exchange{"GET", "/data/assets.csv", "", "", "", 200, ""})
}

// disturbed records an answer. Before the first write, it calls the function `first`.
type disturbed struct {
	*httptest.ResponseRecorder
	first func() error
}

func (w *disturbed) Write(p []byte) (int, error) {
	if first := w.first; first != nil {
		w.first = nil
		if err := first(); err != nil {
			return 0, err
		}
	}
	return w.ResponseRecorder.Write(p)
}

// oneCopy is a directory with one file. It opens this file for each copy and each segment.
type oneCopy struct {
	brokenSnapshots
	path string
}

func (s oneCopy) Copy(string, string) (*os.File, error) { return os.Open(s.path) }

func (s oneCopy) Segment(string) (*os.File, error) { return os.Open(s.path) }

// TestADownloadIsWholeOrBroken does something to a copy when its first bytes are sent. An incomplete answer must end
// with the end of the connection, and the log must name the cause.
func TestADownloadIsWholeOrBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy")
	remove := func() error { return os.Remove(path) }
	var log bytes.Buffer
	s := newWithSnapshotsLogging(t, &log)
	s.api.ServeSnapshots(oneCopy{path: path})
	copied := "/data/" + strings.Repeat("0", 64) + "/assets.csv"
	segment := "/api/2.5/snapshot/segments/" + strings.Repeat("0", 64) + ".ndjson.zst"
	for _, c := range []struct {
		name   string
		at     string
		size   int
		first  func() error
		broken string // part of the log line; "": the answer is complete
	}{
		{"in one part", copied, copyPart, nil, ""},
		{"in two parts", copied, copyPart + 1, nil, ""},
		{"removed during the only part", copied, copyPart, remove, ""},
		{"removed during the first part", copied, copyPart + 1, remove, errRemoved.Error()},
		{"cut off", copied, copyPart + 1, func() error { return os.Truncate(path, 1) }, io.ErrUnexpectedEOF.Error()},
		{"for a client that leaves", copied, copyPart + 1, func() error { return io.ErrClosedPipe }, io.ErrClosedPipe.Error()},
		{"a segment", segment, segmentBuffer + 1, nil, ""},
		{"a segment for a client that leaves", segment, segmentBuffer + 1, func() error { return io.ErrClosedPipe },
			io.ErrClosedPipe.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.OK(t, os.WriteFile(path, []byte(randomText(2 * c.size)[:c.size]), 0o600))
			log.Reset()
			w := &disturbed{httptest.NewRecorder(), c.first}
			func() {
				defer func() {
					if got := recover(); (got == http.ErrAbortHandler) != (c.broken != "") {
						t.Errorf("got the panic %v, want the end of the connection: %t", got, c.broken != "")
					}
				}()
				s.answer(t, w, nil, exchange{"GET", c.at, "", "", "", 0, ""})
			}()
			if got := w.Body.Len(); w.Code != 200 || (got == c.size) != (c.broken == "") {
				t.Errorf("got %d and %d of %d bytes, want 200 and all: %t", w.Code, got, c.size, c.broken == "")
			}
			if !strings.Contains(log.String(), c.broken) || strings.Contains(log.String(), `"error"`) != (c.broken != "") {
				t.Errorf("got the log %s, want the error %q", log.String(), c.broken)
			}
		})
	}
}

// slowly starts a server of the service, which ends with the test. The function that it returns asks for a path on a
// connection of its own, which takes the given number of bytes before somebody reads them.
func (s service) slowly(t *testing.T, buffer int) (ask func(path string) net.Conn) {
	t.Helper()
	signed := expect.Get(s.signer.Sign(identity.Identity{}))(t)
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- httpserver.Serve(ctx, listener, s.handler, slog.New(slog.DiscardHandler), httpserver.ServeOptions{})
	}()
	t.Cleanup(func() {
		stop()
		expect.Try(t, <-served)
	})
	return func(path string) net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Error(err)
			return nil
		}
		expect.Try(t, conn.(*net.TCPConn).SetReadBuffer(buffer))
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s: %s\r\n\r\n", path, identity.Header, signed)
		return conn
	}
}

// TestARemovedCopyIsNotSentOn has a slow client, whose copy is removed during the download. The download must
// end: while it lasts, the file of the copy stays on the disk.
// Promises: whole-bounds
func TestARemovedCopyIsNotSentOn(t *testing.T) {
	s := newWithSnapshots(t)
	s.api.downloads = httpserver.Pace{Bytes: 64 << 10, Within: time.Hour, All: time.Hour} // cuts no client off
	for n := range 4 {
		s.list(t, fmt.Sprintf("%032x", 100+n), fmt.Sprintf(`{"status":"active","title":%q}`, randomText(3<<20)))
	}
	made := s.change(t, 1, "Готель", "assets.csv")
	conn := s.slowly(t, 64<<10)("/data/assets.csv")
	defer conn.Close()
	resp := expect.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ContentLength != made.Bytes {
		t.Fatalf("got %d and %d bytes, want 200 and %d", resp.StatusCode, resp.ContentLength, made.Bytes)
	}
	for n := range 2 { // the copy is removed when there are two newer ones
		s.change(t, 2+n, "Склад", "assets.csv")
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil || n >= made.Bytes {
		t.Errorf("got %d of %d bytes and %v, want an end in the middle", n, made.Bytes, err)
	}
}
