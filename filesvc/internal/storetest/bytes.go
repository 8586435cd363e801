package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"asset-registry/filesvc/internal/file"
)

// name returns a name for bytes. Each number gives a different name.
func name(n int) string { return fmt.Sprintf("%032x-%016x", n, n) }

// RunBytes tests an empty store of bytes.
func RunBytes(t *testing.T, s file.Bytes) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, file.Bytes)
	}{
		{"bytes are as they were stored", testBytes},
		{"a part of the bytes can be read", testParts},
		{"bytes of a reader that fails are not there", testFailingReader},
		{"bytes are not there before their end has come", testHalf},
		{"names are in order", testNames},
		{"only good names are taken", testBadNames},
		{"bytes know their age", testAge},
		{"removals are noted once", testRemovals},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

func read(t *testing.T, s file.Bytes, name string) string {
	t.Helper()
	b, err := s.Open(t.Context(), name)
	must(t, err)
	defer b.Close()
	text, err := io.ReadAll(b)
	must(t, err)
	size, err := file.SizeOf(b)
	must(t, err)
	equal(t, size, int64(len(text)))
	return string(text)
}

func testBytes(t *testing.T, s file.Bytes) {
	for i, text := range []string{"", "x", strings.Repeat("0123456789abcdef", 1<<16)} {
		n := name(100 + i)
		must(t, s.Put(t.Context(), n, iotest.HalfReader(strings.NewReader(text))))
		equal(t, read(t, s, n) == text, true)
		must(t, s.Remove(t.Context(), n))
		must(t, s.Remove(t.Context(), n))
		_, err := s.Open(t.Context(), n)
		is(t, err, file.ErrNotFound)
	}
}

func testParts(t *testing.T, s file.Bytes) {
	must(t, s.Put(t.Context(), name(1), strings.NewReader("0123456789")))
	b, err := s.Open(t.Context(), name(1))
	must(t, err)
	defer b.Close()
	_, err = b.Seek(7, io.SeekStart)
	must(t, err)
	text, err := io.ReadAll(b)
	must(t, err)
	equal(t, string(text), "789")
	_, err = b.Seek(0, io.SeekStart)
	must(t, err)
	must(t, iotest.TestReader(b, []byte("0123456789"))) // it reads and seeks from the middle, too
	if _, err := b.Seek(-1, io.SeekStart); err == nil {
		t.Error("seek before the first byte: got no error, want one")
	}
	must(t, s.Remove(t.Context(), name(1)))
}

func testFailingReader(t *testing.T, s file.Bytes) {
	cause := errors.New("the checksum is wrong")
	err := s.Put(t.Context(), name(2), io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(cause)))
	is(t, err, cause)
	_, err = s.Open(t.Context(), name(2))
	is(t, err, file.ErrNotFound)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	is(t, s.Put(ended, name(2), strings.NewReader("abc")), context.Canceled)
	names, err := s.Names(t.Context(), "", 10)
	must(t, err)
	equal(t, len(names), 0)
	must(t, s.Put(t.Context(), name(2), strings.NewReader("abc"))) // the name must be usable after a failure
	must(t, s.Remove(t.Context(), name(2)))
}

func testHalf(t *testing.T, s file.Bytes) {
	from, to := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { must(t, s.Put(t.Context(), name(3), from)) })
	_, err := to.Write([]byte("half"))
	must(t, err)
	_, err = s.Open(t.Context(), name(3))
	is(t, err, file.ErrNotFound)
	names, err := s.Names(t.Context(), "", 10)
	must(t, err)
	equal(t, len(names), 0)
	must(t, s.Put(t.Context(), name(4), strings.NewReader("half"))) // the same bytes meanwhile
	must(t, to.Close())
	wg.Wait()
	for _, n := range []string{name(3), name(4)} {
		equal(t, read(t, s, n), "half")
		must(t, s.Remove(t.Context(), n))
	}
}

// testNames lists ten names, two at a time. No listing may be longer, and each name must come once, in order.
func testNames(t *testing.T, s file.Bytes) {
	var all []string
	for i := range 10 { // the names of two beginnings, 00 and 3c, are on more than one page
		n := fmt.Sprintf("%02x%030x-0123456789abcdef", i/4*60, i%4)
		all = append(all, n)
		must(t, s.Put(t.Context(), n, strings.NewReader("x")))
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		names, err := s.Names(t.Context(), after, 2)
		must(t, err)
		if len(names) > 2 {
			t.Fatalf("got %q, want at most two names", names)
		}
		if len(names) == 0 {
			break
		}
		got = append(got, names...)
	}
	equal(t, got, all)
	for _, n := range all {
		must(t, s.Remove(t.Context(), n))
	}
}

func testBadNames(t *testing.T, s file.Bytes) {
	for _, n := range []string{"", "..", "../x", strings.Repeat("0", 32), name(4) + "/..", strings.ToUpper(name(0xabc))} {
		_, opened := s.Open(t.Context(), n)
		_, aged := s.IsBefore(t.Context(), n, time.Now())
		for what, err := range map[string]error{
			"put": s.Put(t.Context(), n, strings.NewReader("x")), "open": opened, "age": aged,
			"remove": s.Remove(t.Context(), n),
		} {
			if err == nil || !strings.Contains(err.Error(), "is no name of bytes") {
				t.Errorf("%s %q: got %v, want an error that says what is wrong with the name", what, n, err)
			}
		}
	}
}

func testAge(t *testing.T, s file.Bytes) {
	must(t, s.Put(t.Context(), name(5), strings.NewReader("x")))
	for _, c := range []struct {
		name string
		at   time.Time
		want bool
	}{
		{name(5), time.Now().Add(time.Hour), true}, {name(5), time.Now().Add(-time.Hour), false},
		{name(6), time.Now().Add(time.Hour), false},
	} {
		got, err := s.IsBefore(t.Context(), c.name, c.at)
		must(t, err)
		equal(t, got, c.want)
	}
	must(t, s.Tidy(t.Context(), time.Now().Add(time.Hour)))
	equal(t, read(t, s, name(5)), "x")
	must(t, s.Remove(t.Context(), name(5)))
}

func testRemovals(t *testing.T, s file.Bytes) {
	none, err := s.Removals(t.Context())
	must(t, err)
	equal(t, len(none), 0)
	first := file.File{
		ID: strings.Repeat("2", 32), SHA256: strings.Repeat("a", 64), Size: 7, State: file.Removed,
		RemovedBy: "k", Reason: "x",
		Touched: time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC),
	}
	second := first
	second.ID = strings.Repeat("1", 32)
	must(t, s.NoteRemoval(t.Context(), first))
	must(t, s.NoteRemoval(t.Context(), second))
	again := first
	again.Reason = "another"
	must(t, s.NoteRemoval(t.Context(), again))
	got, err := s.Removals(t.Context())
	must(t, err)
	equal(t, got, []file.File{second, first})
	for _, c := range []struct {
		after string
		limit int
		want  []string
	}{
		{"", 1, []string{second.ID}}, {"", 9, []string{second.ID, first.ID}}, {second.ID, 1, []string{first.ID}},
		{first.ID, 1, nil},
	} {
		ids, err := s.Removed(t.Context(), c.after, c.limit)
		must(t, err)
		equal(t, ids, c.want)
	}
	names, err := s.Names(t.Context(), "", 10)
	must(t, err)
	equal(t, len(names), 0)
	for _, id := range []string{"", "../x", strings.Repeat("A", 32)} {
		if err := s.NoteRemoval(t.Context(), file.File{ID: id, State: file.Removed}); err == nil {
			t.Errorf("the removal of %q: got no error, want one", id)
		}
	}
}
