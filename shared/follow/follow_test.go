package follow

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

const at = "2026-11-20T12:00:00.000007+00:00"

func TestReaderReadsWhatWasAppended(t *testing.T) {
	long := `{"title":"` + strings.Repeat("x", 3*bufferSize) + `"}`
	var text []byte
	text = AppendBookmark(text, 0, at)
	text = AppendEntry(text, 1, at, []byte(`{"id":"a b"}`))
	text = AppendEntry(text, 2, at, []byte(long))
	text = AppendEntry(text, 3, at, []byte(`{}`))
	text = AppendGap(text, 4, at)
	text = AppendBookmark(text, 5, at)
	want := []Message{{BookmarkKind, 0, at}, {EntryKind, 1, at}, {EntryKind, 2, at}, {EntryKind, 3, at},
		{GapKind, 4, at}, {BookmarkKind, 5, at}}
	for _, read := range []struct {
		name string
		most int // maximum number of bytes of data that are read; -1: the data are not read
		data []string
	}{
		{"all data", len(long), []string{`{"id":"a b"}`, long, `{}`}},
		{"data up to a size", len(long) - 1, []string{`{"id":"a b"}`, "", `{}`}},
		{"no data", -1, nil},
	} {
		t.Run(read.name, func(t *testing.T) {
			r := NewReader(iotest.HalfReader(bytes.NewReader(text)))
			var got []Message
			var data []string
			for {
				m, err := r.Next()
				if err == io.EOF {
					break
				}
				expect.OK(t, err)
				got = append(got, m)
				if m.Kind == EntryKind && read.most >= 0 {
					d, err := r.Data(read.most)
					expect.OK(t, err)
					data = append(data, string(d))
				}
			}
			expect.NoDiff(t, cmp.Diff(want, got), "the messages")
			expect.NoDiff(t, cmp.Diff(read.data, data), "the data")
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"no message", "", io.EOF},
		{"the end inside a number", "12", io.ErrUnexpectedEOF},
		{"the end inside an offset", "12 2026", io.ErrUnexpectedEOF},
		{"the end before the data", "12 2026 ", io.ErrUnexpectedEOF},
		{"the end inside the data", `12 2026 {"id":`, io.ErrUnexpectedEOF},
		{"the end inside a gap", "12 2026 !", io.ErrUnexpectedEOF},
		{"no offset", "12\n", errMalformed},
		{"no number", "x 2026\n", errMalformed},
		{"a very long number", strings.Repeat("1", 100) + " 2026\n", errMalformed},
		{"data that are no object", "12 2026 [1]\n", errMalformed},
		{"a gap with more", "12 2026 !!\n", errMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.text))
			m, err := r.Next()
			if err == nil {
				_, err = r.Data(100)
			}
			expect.ErrorIf(t, err == io.EOF && c.want == io.ErrUnexpectedEOF || !errors.Is(err, c.want),
				"got %v, %v; want %v", m, err, c.want)
		})
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("1 2026 {\"id\":\"a\"}\n2 2026\n3 2026 !\n"), 10)
	f.Add([]byte("1 2026 {"), 0)
	f.Add([]byte("1 "+strings.Repeat("\xff", maxWord)+"\n"), 0)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		r := NewReader(bytes.NewReader(text))
		var again []byte
		for {
			m, err := r.Next()
			if err != nil {
				break
			}
			switch m.Kind {
			case BookmarkKind:
				again = AppendBookmark(again, m.Position, m.Offset)
			case GapKind:
				again = AppendGap(again, m.Position, m.Offset)
			case EntryKind:
				data, err := r.Data(len(text))
				if err != nil {
					return
				}
				again = AppendEntry(again, m.Position, m.Offset, data)
			}
		}
		// The variable `again` has the messages that were read. They must be well formed, and there must not be more
		// messages than lines in the input.
		if count(t, again) > bytes.Count(text, []byte{'\n'}) {
			t.Errorf("got %d messages of %d lines", count(t, again), bytes.Count(text, []byte{'\n'}))
		}
	})
}

// count returns the number of messages. All must be well formed.
func count(t *testing.T, text []byte) (n int) {
	r := NewReader(bytes.NewReader(text))
	for ; ; n++ {
		if _, err := r.Next(); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatalf("message %d of %q: got %v, want none", n, text, err)
		}
	}
}
