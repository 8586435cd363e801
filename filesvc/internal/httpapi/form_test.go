package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// boundary is the boundary between the parts of forms in these tests.
const boundary = "x"

// part returns a part of a form.
func part(head, body string) string {
	return "--" + boundary + "\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + body + "\r\n"
}

const end = "--" + boundary + "--\r\n"

// FuzzForm reads forms of random bytes. If a form is accepted, its file must be the file that mime/multipart
// finds, and its fields must be within the limits. For any other form, the error must be a fault of the client.
func FuzzForm(f *testing.F) {
	text := part(`name="title"`, "акт")
	data := part(`name="data"`, `{"a":[1]}`)
	file := part(`name="file"; filename="a.txt"`, "content")
	for _, seed := range []string{
		"", end, file, file + end, text + data + file + end, file + text + end, file + file + end, data + end,
		part(`name="file"; filename*=UTF-8''%D0%B0`, "\r\n--"+boundary) + end, part(`name="data"`, "null") + file + end,
		strings.Repeat(text, maxParts) + file + end, part(`name="b"`, strings.Repeat("b", maxField)) + file + end,
		"--" + boundary + "\r\n" + strings.Repeat("A: b\r\n", 20000) + "\r\n" + end, text[:20], file[:len(file)-4],
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &http.Request{Header: http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}}}
		form := expect.Get(openForm(r, bytes.NewReader(body)))(t)
		form.fields = map[string]json.RawMessage{}
		var got []byte
		upload, err := form.file()
		if err == nil {
			if got, err = io.ReadAll(upload.Body); err != nil {
				err = bodyFault(err)
			}
		}
		if err != nil {
			kinds := []fault.Kind{fault.Invalid, fault.TooLarge, fault.NotFound} // NotFound: the form has no file
			if kind := fault.KindOf(err); !slices.Contains(kinds, kind) {
				t.Errorf("got %v of kind %d, want a fault of the sender", err, kind)
			}
			return
		}
		if form.kept > maxField || form.count > maxParts {
			t.Errorf("got %d bytes of fields in %d parts, want at most %d in %d", form.kept, form.count, maxField, maxParts)
		}
		for name, value := range form.fields {
			expect.ErrorIf(t, !json.Valid(value), "field %q: got %q, want JSON", name, value)
		}
		if want, err := fileIn(body); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got the file %q, want %q, %v", got, want, err)
		}
	})
}

// TestAHeadIsBounded reads heads of parts. No more than maxField bytes may reach the reader of parts.
func TestAHeadIsBounded(t *testing.T) {
	for size, want := range map[int]fault.Kind{maxField: -1, maxField + 1: fault.TooLarge} {
		b := &bounded{from: strings.NewReader(strings.Repeat("x", size)), isHead: true}
		text, err := io.ReadAll(b)
		if got := fault.KindOf(err); (err == nil) != (want == -1) || err != nil && got != want || len(text) > maxField {
			t.Errorf("%d bytes: got %d bytes and %v, want kind %d", size, len(text), err, want)
		}
	}
	whole := make([]byte, 2*maxField) // one read of all bytes
	b := &bounded{from: bytes.NewReader(whole), isHead: true}
	if n, err := b.Read(whole); n != 0 || fault.KindOf(err) != fault.TooLarge {
		t.Errorf("one read: got %d bytes and %v, want none and a fault", n, err)
	}
}

// TestFaultsOfBodies has the reasons for which a body cannot be read. The client must learn its own faults. An error
// with another reason stays as it is.
func TestFaultsOfBodies(t *testing.T) {
	away := errors.New("the disk is away")
	given := fault.New(fault.TooLarge, fault.Body, "file", "It is too large.")
	for _, c := range []struct {
		err  error
		says string
	}{
		{os.ErrDeadlineExceeded, "The body did not arrive in time."},
		{cut(os.ErrDeadlineExceeded), "The body did not arrive in time."},
		{multipart.ErrMessageTooLarge, "A part of the form has too many headers."},
		{cut(errors.New("reset")), "The body ended before it was complete."},
		{given, "It is too large."}, {away, ""},
	} {
		got := bodyFault(c.err)
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.says) ||
			(c.says == "") != (fault.KindOf(got) == fault.Internal) {
			t.Errorf("%v: got %v, want %q", c.err, got, c.says)
		}
	}
}

// fileIn returns the file of a form as mime/multipart reads it.
func fileIn(body []byte) ([]byte, error) {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return nil, errors.Join(errors.New("there is no file"), err)
		}
		text, err := io.ReadAll(p)
		if err != nil || p.FormName() == fileField && p.FileName() != "" {
			return text, err
		}
	}
}
