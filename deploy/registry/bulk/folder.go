package bulk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// maxFile is the maximum number of bytes that a file may have, by the default of the registry.
const maxFile = 100 << 20

// Folder contains the files of documents. No path leads out of it, not even through a symbolic link. A nil
// Folder has no files.
type Folder struct {
	root   *os.Root
	names  func() map[string]string // names of files in any form, by their composed form (NFC)
	sorted func() []string          // the composed names
}

// OpenFolder opens a folder.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open the folder of files: %w", err)
	}
	names := sync.OnceValue(func() map[string]string {
		names := map[string]string{}
		_ = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error { // what cannot be read has no names
			names[norm.NFC.String(name)] = name
			return nil
		})
		return names
	})
	return &Folder{root, names, sync.OnceValue(func() []string { return sortedKeys(names()) })}, nil
}

// Open implements fs.FS. A name is found in any normal form of Unicode: some systems write й in two parts.
func (f *Folder) Open(name string) (fs.File, error) { return f.root.Open(f.stored(name)) }

// matching returns the names of the files that a pattern of path.Match fits, in order. A nil Folder has none.
func (f *Folder) matching(pattern string) (found []string) {
	if f == nil {
		return nil
	}
	sorted := f.sorted()
	begin, _, _ := strings.Cut(pattern, "*")
	begin, _, _ = strings.Cut(begin, `\`)
	begin, _, _ = strings.Cut(begin, "?")
	first, _ := slices.BinarySearch(sorted, begin)
	for _, name := range sorted[first:] {
		if !strings.HasPrefix(name, begin) {
			break
		}
		if fits, err := path.Match(pattern, name); fits && err == nil {
			found = append(found, name)
		}
	}
	return found
}

// stored returns the name of a file as the folder has it.
func (f *Folder) stored(name string) string {
	if _, err := f.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(f.names()[norm.NFC.String(name)], name)
	}
	return name
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// check returns why a file cannot be uploaded, or nil if it can.
func (f *Folder) check(name string) error {
	switch {
	case f == nil:
		return errors.New("no folder of files is given: name it with --folder")
	case strings.ContainsAny(name, "\\:\x00") || !fs.ValidPath(name) || name == ".":
		return errors.New("a path is relative to the folder, with / between its names, without .. and drives")
	}
	info, err := f.root.Stat(f.stored(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file in the folder")
	case err != nil:
		return withoutPath(err)
	case !info.Mode().IsRegular():
		return errors.New("this is not a file")
	case info.Size() > maxFile:
		return fmt.Errorf("the file has %d bytes: at most %d are taken", info.Size(), maxFile)
	}
	return nil
}

// withoutPath returns the cause of an error, without the path that it names.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
