package bulk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// maxFile is the maximum number of bytes that a file may have, by the default of the registry.
const maxFile = 100 << 20

// Folder contains the files of documents. No path leads out of it, not even through a symbolic link. A nil
// Folder has no files.
type Folder struct{ root *os.Root }

// OpenFolder opens a folder.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open the folder of files: %w", err)
	}
	return &Folder{root}, nil
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
	info, err := f.root.Stat(name)
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
