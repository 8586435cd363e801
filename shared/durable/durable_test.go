package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// tree returns the files of a directory, by name, with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.OK(t, err)
	all := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		expect.OK(t, err)
		all[entry.Name()] = string(text)
	}
	return all
}

func write(t *testing.T, file, text string, mode fs.FileMode) {
	t.Helper()
	expect.OK(t, errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode)))
}

func stat(t *testing.T, file string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(file)
	expect.OK(t, err)
	return info
}

var writers = []struct {
	name    string
	write   func(file string, data []byte) error
	fresh   error       // the error for a file that does not exist
	present error       // the error for a file that exists
	made    fs.FileMode // mode of a new file
	mode    fs.FileMode // mode of a file that had 0640 before
}{
	{"Create", Create, nil, fs.ErrExist, 0o600, 0o640},
	{"WriteFile", WriteFile, nil, nil, 0o600, 0o600},
	{"Replace", Replace, fs.ErrNotExist, nil, 0, 0o640},
}

// TestWriters runs each function with and without an existing file. The directory also has a file that a killed
// process has left. This file must not matter.
func TestWriters(t *testing.T) {
	for _, c := range writers {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file, left := filepath.Join(dir, "f"), "f"+Unfinished+"123"
			write(t, filepath.Join(dir, left), "half", 0o600)
			want := map[string]string{left: "half"}
			if err := c.write(file, []byte("new")); !errors.Is(err, c.fresh) {
				t.Errorf("without the file: got %v, want %v", err, c.fresh)
			} else if err == nil {
				want["f"] = "new"
				expect.Equal(t, stat(t, file).Mode(), c.made, "a new file: mode")
			}
			expect.NoDiff(t, cmp.Diff(want, tree(t, dir)), "without the file")
			write(t, file, "old", 0o640)
			want["f"] = "old"
			if err := c.write(file, []byte("new")); !errors.Is(err, c.present) {
				t.Errorf("with the file: got %v, want %v", err, c.present)
			} else if err == nil {
				want["f"] = "new"
			}
			expect.NoDiff(t, cmp.Diff(want, tree(t, dir)), "with the file")
			expect.Equal(t, stat(t, file).Mode(), c.mode, "with the file, mode")
		})
	}
}

func TestADirectoryInTheWayIsLeft(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	expect.OK(t, os.Mkdir(file, 0o700))
	for _, c := range writers {
		expect.Fails(t, c.write(file, []byte("new")), "%s", c.name)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || !entries[0].IsDir() {
			t.Errorf("%s: got %v, %v, want the directory only", c.name, entries, err)
		}
	}
}

func TestOneOfSeveralCreatesSucceeds(t *testing.T) {
	dir := t.TempDir()
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = Create(filepath.Join(dir, "f"), []byte(strings.Repeat("x", i))) })
	}
	group.Wait()
	made := -1
	for i, err := range errs {
		switch {
		case err == nil && made < 0:
			made = i
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("got %v, want %v", err, fs.ErrExist)
		}
	}
	expect.NoDiff(t, cmp.Diff(map[string]string{"f": strings.Repeat("x", made)}, tree(t, dir)), "files")
}

func TestAReplacedLinkStaysOne(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	write(t, target, "old", 0o600)
	link := filepath.Join(t.TempDir(), "link")
	expect.OK(t, os.Symlink(target, link))
	expect.OK(t, Replace(link, []byte("new")))
	if got, err := os.Readlink(link); err != nil || got != target {
		t.Errorf("got a link to %q, %v, want one to %s", got, err, target)
	}
	expect.NoDiff(t, cmp.Diff(map[string]string{"target": "new"}, tree(t, filepath.Dir(target))), "target")
}

func TestAReplacedFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		needtest.Missing(t, "chown", "only root may give files away")
	}
	file := filepath.Join(t.TempDir(), "f")
	write(t, file, "old", 0o600)
	expect.OK(t, os.Chown(file, 1234, 2345))
	expect.OK(t, Replace(file, []byte("new")))
	if got := stat(t, file).Sys().(*syscall.Stat_t); got.Uid != 1234 || got.Gid != 2345 {
		t.Errorf("got the owner %d:%d, want 1234:2345", got.Uid, got.Gid)
	}
}

// TestOnlyLeavingsAreRemoved asks for a temporary name beside a file, a directory, and names that people have chosen.
func TestOnlyLeavingsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "f"), filepath.Join(dir, "folder")
	leaves := func(of string) string {
		name := expect.Get(Temporary(of))(t)
		if of == folder {
			expect.OK(t, os.Mkdir(name, 0o700))
			name = filepath.Join(name, "secret")
		}
		write(t, name, "s", 0o600)
		return name
	}
	killed, killedFolder := leaves(file), leaves(folder)
	for _, name := range []string{"f.new", "f.new20261130", "f.newest", "f.new" + strings.Repeat("A", 27), "g.new" + strings.Repeat("A", 26)} {
		write(t, filepath.Join(dir, name), "kept", 0o600)
	}
	held := expect.Get(os.Create(expect.Get(Temporary(filepath.Join(dir, "h")))(t)))(t)
	expect.OK(t, Hold(held))
	for _, of := range []string{file, folder, filepath.Join(dir, "h")} {
		if name := expect.Get(Temporary(of))(t); filepath.Dir(name) != dir {
			t.Errorf("got %s, want a name beside %s", name, of)
		}
	}
	for _, name := range []string{killed, filepath.Dir(killedFolder)} {
		expect.ErrOf(t, fs.ErrNotExist, "%s, which a killed process left", name)(os.Stat(name))
	}
	expect.NilOf(t, "a file that a process holds")(os.Stat(held.Name()))
	expect.OK(t, held.Close())
	expect.Get(Temporary(filepath.Join(dir, "h")))(t)
	entries := expect.Get(os.ReadDir(dir))(t)
	expect.Equal(t, len(entries), 5, "files that people named, after all others have gone")
}
