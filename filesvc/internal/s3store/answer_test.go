package s3store

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

// TestALyingStore has a real store behind a proxy that changes the answers to one kind of request. Each operation must
// fail, and give no byte that is not at its place.
func TestALyingStore(t *testing.T) {
	const text = "0123456789"
	server := s3test.Start(t, true, "files")
	direct := open(t, server.Address("files"))
	expect.OK(t, errors.Join(direct.Put(t.Context(), blob(1), strings.NewReader(text)),
		direct.Put(t.Context(), blob(2), strings.NewReader(text)), direct.NoteRemoval(t.Context(), removed)))
	says := func(status int, text string, header ...string) func(*http.Response) error {
		return func(r *http.Response) error {
			r.StatusCode = status
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			r.ContentLength = int64(len(text))
			r.Body = io.NopCloser(strings.NewReader(text))
			return nil
		}
	}
	without := func(name string) func(*http.Response) error {
		return func(r *http.Response) error {
			r.Header.Del(name)
			if name == "Content-Length" { // the proxy then sends chunks
				r.ContentLength = -1
			}
			return nil
		}
	}
	readFrom := func(at int64) func(*Store) error {
		return func(s *Store) error {
			b, err := s.Open(t.Context(), blob(1))
			if err != nil {
				return err
			}
			defer b.Close()
			if _, err := b.Seek(at, io.SeekStart); err != nil {
				return err
			}
			got, err := io.ReadAll(b)
			if !strings.HasPrefix(text[at:], string(got)) {
				t.Errorf("got the bytes %q from %d on, want a beginning of %q", got, at, text[at:])
			}
			return err
		}
	}
	whole, part := readFrom(0), readFrom(3)
	put := func(s *Store) error { return s.Put(t.Context(), blob(3), bytes.NewReader([]byte(text))) }
	remove := func(s *Store) error { return s.Remove(t.Context(), blob(1)) }
	names := func(s *Store) error { _, err := s.Names(t.Context(), "", 9); return err }
	noted := func(s *Store) error { _, err := s.Removals(t.Context()); return err }
	other := file.File{ID: strings.Repeat("2", 32), State: file.Removed}
	note := func(s *Store) error { return s.NoteRemoval(t.Context(), other) }
	const page = "<!DOCTYPE html><html><body>Sign in</body></html>"
	two := "<ListBucketResult><Contents><Key>" + blob(2) + "</Key></Contents><Contents><Key>" + blob(1) +
		"</Key></Contents></ListBucketResult>"
	for _, c := range []struct {
		name, method string
		do           func(*Store) error
		lie          func(*http.Response) error
	}{
		{"a part: the whole", "GET", part, says(200, text)},
		{"a part: as many bytes from the beginning", "GET", part, says(200, text[:7])},
		{"a part: another part", "GET", part, says(206, text[2:9], "Content-Range", "bytes 2-8/10")},
		{"a part: the end is missing", "GET", part, says(206, text[3:8], "Content-Range", "bytes 3-7/10")},
		{"a part: of another object", "GET", part, says(206, text[3:8], "Content-Range", "bytes 3-7/8")},
		{"a part: more bytes than its range", "GET", part, says(206, text[3:]+"x", "Content-Range", "bytes 3-9/10")},
		{"a part: in another unit", "GET", part, says(206, text[3:], "Content-Range", "items 3-9/10")},
		{"a part: without a range", "GET", part, without("Content-Range")},
		{"a part: without a length", "GET", part, without("Content-Length")},
		{"the whole: a part", "GET", whole, says(206, text, "Content-Range", "bytes 0-9/10")},
		{"the whole: fewer bytes", "GET", whole, says(200, text[:9])},
		{"the whole: more bytes", "GET", whole, says(200, text+"x")},
		{"the whole: no content", "GET", whole, says(204, "")},
		{"the whole: compressed", "GET", whole, says(200, text, "Content-Encoding", "gzip")},
		{"the whole: a page", "GET", whole, says(203, page[:10])},
		{"the whole: without a length", "GET", whole, without("Content-Length")},
		{"the length: none", "HEAD", whole, without("Content-Length")},
		{"the length: without a tag", "HEAD", whole, without("ETag")},
		{"the length: without a date", "HEAD", whole, without("Last-Modified")},
		{"a note: a page says that it exists", "HEAD", note, says(200, "", "ETag", "")},
		{"an upload: a page", "PUT", put, says(200, page, "ETag", "")},
		{"an upload: no content", "PUT", put, says(204, "")},
		{"a list: a page", "GET", names, says(200, page)},
		{"a list: an error", "GET", names, says(200, "<Error><Code>SlowDown</Code></Error>")},
		{"a list: nothing", "GET", names, says(200, "")},
		{"a list: text", "GET", noted, says(200, "OK")},
		{"a list: not sorted", "GET", names, says(200, two)},
		{"a list: cut off", "GET", names, says(200, "<ListBucketResult><Contents>")},
		{"a list: a page before a removal", "GET", remove, says(200, page)},
		{"a list: of something else", "GET", remove, says(200, "<ListBucketResult></ListBucketResult>")},
		{"a removal: accepted", "DELETE", remove, says(200, "")},
	} {
		s := openBehind(t, server, func(r *http.Response) error {
			if r.Request.Method != c.method {
				return nil
			}
			return c.lie(r)
		})
		expect.Fault(t, c.do(s), fault.Unavailable, "%s", c.name)
	}
}
