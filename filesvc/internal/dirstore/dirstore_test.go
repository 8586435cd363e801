package dirstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

func TestConformance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	if _, err := Open(dir); err != nil { // another process
		t.Fatal(err)
	}
	s := expect.Get(Open(dir))(t)
	storetest.RunBytes(t, s)
}

// TestTidy checks that Tidy keeps a file that another process is writing, and the hidden files of a file system. It
// must remove a file that a killed process left.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	s := expect.Get(Open(dir))(t)
	before := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	for name, at := range map[string]time.Time{
		"written": before, "left": before.Add(-1), "left too": before.Add(-1), ".nfs1": before.Add(-1),
	} {
		name = filepath.Join(dir, unfinished, name)
		expect.OK(t, errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at)))
	}
	left := func() (names []string) {
		entries := expect.Get(os.ReadDir(filepath.Join(dir, unfinished)))(t)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Tidy(ended, before); !errors.Is(err, context.Canceled) || len(left()) != 4 {
		t.Errorf("after the end of its context: got %v and %q, want %v and all files", err, left(), context.Canceled)
	}
	expect.ErrOf(t, context.Canceled, "names after the end of the context")(s.Names(ended, "", 9))
	if err := s.Tidy(t.Context(), before); err != nil || !slices.Equal(left(), []string{".nfs1", "written"}) {
		t.Errorf("got %v and %q, want the hidden file and the one that is being written", err, left())
	}
	full := filepath.Join(dir, unfinished, "full")
	expect.OK(t, errors.Join(os.MkdirAll(filepath.Join(full, "x"), 0o700), os.Chtimes(full, before, before.Add(-1))))
	expect.Err(t, s.Tidy(t.Context(), before), syscall.ENOTEMPTY, "what cannot be removed")
}

const (
	blob = "00000000000000000000000000000000-0123456789abcdef"
	id   = "00000000000000000000000000000000"
)

// TestALostDirectoryIsAFault uses a store whose directory does not exist, as when its disk is not mounted. A reader
// must get the answer that the bytes do not exist, and a list of removals must be empty. All other calls must
// fail.
func TestALostDirectoryIsAFault(t *testing.T) {
	s := Existing(filepath.Join(t.TempDir(), "lost"))
	_, named := s.Names(t.Context(), "", 9)
	for what, err := range map[string]error{
		"put": s.Put(t.Context(), blob, strings.NewReader("x")), "remove": s.Remove(t.Context(), blob), "names": named,
		"tidy": s.Tidy(t.Context(), time.Now()), "note": s.NoteRemoval(t.Context(), file.File{ID: id}),
	} {
		expect.Err(t, err, fs.ErrNotExist, "%s", what)
	}
	expect.ErrOf(t, file.ErrNotFound, "open")(s.Open(t.Context(), blob))
	if ids, err := s.Removed(t.Context(), "", 9); err != nil || len(ids) != 0 {
		t.Errorf("removals: got %q and %v, want none", ids, err)
	}
}

// TestADamagedDirectoryIsAFault replaces each directory of a store by a file. The operations that need the directory
// must fail, and must not answer that there is nothing.
func TestADamagedDirectoryIsAFault(t *testing.T) {
	for _, c := range []struct {
		lost string
		do   map[string]func(context.Context, *Store) error
	}{
		{blob[:shardDigits], map[string]func(context.Context, *Store) error{
			"put":    func(ctx context.Context, s *Store) error { return s.Put(ctx, blob, strings.NewReader("x")) },
			"open":   func(ctx context.Context, s *Store) error { _, err := s.Open(ctx, blob); return err },
			"remove": func(ctx context.Context, s *Store) error { return s.Remove(ctx, blob) },
			"age":    func(ctx context.Context, s *Store) error { _, err := s.IsBefore(ctx, blob, time.Now()); return err },
			"names":  func(ctx context.Context, s *Store) error { _, err := s.Names(ctx, "", 9); return err },
		}},
		{unfinished, map[string]func(context.Context, *Store) error{
			"put":  func(ctx context.Context, s *Store) error { return s.Put(ctx, blob, strings.NewReader("x")) },
			"tidy": func(ctx context.Context, s *Store) error { return s.Tidy(ctx, time.Now()) },
		}},
		{removals, map[string]func(context.Context, *Store) error{
			"note":     func(ctx context.Context, s *Store) error { return s.NoteRemoval(ctx, file.File{ID: id}) },
			"removals": func(ctx context.Context, s *Store) error { _, err := s.Removals(ctx); return err },
			"removed":  func(ctx context.Context, s *Store) error { _, err := s.Removed(ctx, "", 9); return err },
		}},
	} {
		dir := t.TempDir()
		s := expect.Get(Open(dir))(t)
		lost := filepath.Join(dir, c.lost)
		expect.OK(t, errors.Join(os.Remove(lost), os.WriteFile(lost, nil, 0o600)))
		for what, do := range c.do {
			if err := do(t.Context(), s); err == nil || errors.Is(err, file.ErrNotFound) {
				t.Errorf("%s is a file, %s: got %v, want an error", c.lost, what, err)
			}
		}
	}
}

// TestADirectoryThatCannotBeMade opens stores in places where their directories cannot be made. Each time, Open must
// fail.
func TestADirectoryThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	// Linux takes paths of at most 4095 bytes. A directory with a path of 4093 bytes can have no shard, and one with a
	// path of 4092 bytes can have no directory of unfinished files.
	long := func(length int) string {
		path := dir
		for length > len(path)+256 {
			path += "/" + strings.Repeat("x", 200)
		}
		return path + "/" + strings.Repeat("x", length-len(path)-1)
	}
	for _, at := range []string{filepath.Join(dir, "file", "store"), long(4093), long(4092)} {
		expect.FailsOf(t, "a path of %d bytes", len(at))(Open(at))
	}
}

// TestADamagedRemovalIsAFault damages the removal of a file. The store must not answer that nothing was removed.
func TestADamagedRemovalIsAFault(t *testing.T) {
	for what, damage := range map[string]func(path string) error{
		"a text that is no removal": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
		"a directory":               func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		dir := t.TempDir()
		s := expect.Get(Open(dir))(t)
		path := filepath.Join(dir, removals, id)
		expect.OK(t, errors.Join(s.NoteRemoval(t.Context(), file.File{ID: id, State: file.Removed}), damage(path)))
		got, err := s.Removals(t.Context())
		if err == nil || (what == "a directory") != errors.Is(err, syscall.EISDIR) {
			t.Errorf("%s: got %v and %v, want an error that says what is wrong", what, got, err)
		}
	}
}

// TestANameIsWrittenOnce puts bytes under a name under which other bytes are being written. It must fail, and the
// other bytes must stay.
func TestANameIsWrittenOnce(t *testing.T) {
	s := expect.Get(Open(t.TempDir()))(t)
	from, to := io.Pipe()
	first := make(chan error)
	go func() { first <- s.Put(t.Context(), blob, from) }()
	if _, err := to.Write([]byte("first")); err != nil { // returns when the first call reads
		t.Fatal(err)
	}
	expect.Err(t, s.Put(t.Context(), blob, strings.NewReader("second")), fs.ErrExist, "")
	expect.OK(t, errors.Join(to.Close(), <-first))
	b := expect.Get(s.Open(t.Context(), blob))(t)
	defer b.Close()
	if text, err := io.ReadAll(b); err != nil || string(text) != "first" {
		t.Errorf("got %q and %v, want the first bytes", text, err)
	}
}

// TestWhatOthersLeaveIsNoName puts entries that a store did not make into its directories. No list may have these
// entries.
func TestWhatOthersLeaveIsNoName(t *testing.T) {
	dir := t.TempDir()
	s := expect.Get(Open(dir))(t)
	expect.OK(t, s.Put(t.Context(), blob, strings.NewReader("x")))
	expect.OK(t, s.NoteRemoval(t.Context(), file.File{ID: id, State: file.Removed}))
	for _, name := range []string{"00/00.txt", "00/lost+found", removals + "/" + id + ".new1", removals + "/x"} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	if names, err := s.Names(t.Context(), "", 9); err != nil || !slices.Equal(names, []string{blob}) {
		t.Errorf("names: got %q and %v, want the one of the bytes", names, err)
	}
	if ids, err := s.Removed(t.Context(), "", 9); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("removals: got %q and %v, want the one that was noted", ids, err)
	}
}
