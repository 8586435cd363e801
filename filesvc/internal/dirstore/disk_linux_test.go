package dirstore

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

// TestAFullDiskKeepsWhatItHas fills the disk in the middle of a Put. The bytes that were stored before must stay.
func TestAFullDiskKeepsWhatItHas(t *testing.T) {
	const kept, refused = "00000000000000000000000000000000-0000000000000000", "00000000000000000000000000000000-0000000000000001"
	dir := disktest.New(t, 8)
	s := expect.Get(Open(filepath.Join(dir, "files")))(t)
	expect.OK(t, s.Put(t.Context(), kept, strings.NewReader("kept")))
	large := func() io.Reader { return io.LimitReader(zeros{}, 16<<20) }
	for range 3 { // a failure must leave nothing that takes up room
		if err := s.Put(t.Context(), refused, large()); !errors.Is(err, file.ErrFull) {
			t.Fatalf("got %v, want %v", err, file.ErrFull)
		}
	}
	disktest.Fill(t, dir)
	expect.Err(t, s.Put(t.Context(), refused, strings.NewReader("x")), file.ErrFull, "")
	expect.ErrOf(t, file.ErrNotFound, "")(s.Open(t.Context(), refused))
	b := expect.Get(s.Open(t.Context(), kept))(t)
	defer b.Close()
	if text, err := io.ReadAll(b); err != nil || string(text) != "kept" {
		t.Errorf("got %q and %v, want the file that was kept", text, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "files", unfinished)); err != nil || len(left) > 0 {
		t.Errorf("got %v and %v, want no unfinished file", left, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
