package registryctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"
)

// namedFile is a file that a command is given. If isOut is true, the command writes it.
type namedFile struct {
	name, path string
	isOut      bool
}

func isFile(tag *kong.Tag) bool { return tag.Has("in") || tag.Has("out") }

// distinct returns a fault for each file that a command would write although it has another use for the same file.
// A file without a path was not given; "-" is the standard input.
func distinct(files ...namedFile) error {
	var faults []error
	for i, a := range files {
		for _, b := range files[:i] {
			if a.path == "" || b.path == "" || a.path == "-" || b.path == "-" || !a.isOut && !b.isOut {
				continue
			}
			if isSame(a.path, b.path) {
				faults = append(faults, fmt.Errorf("%s and %s are the same file, %s: name two files", b.name, a.name, a.path))
			}
		}
	}
	return errors.Join(faults...)
}

// isSame reports whether two paths lead to one file. A file that does not exist is known by its folder and its name.
func isSame(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	switch {
	case errOne == nil && errOther == nil:
		return os.SameFile(one, other)
	case !errors.Is(errOne, fs.ErrNotExist) || !errors.Is(errOther, fs.ErrNotExist):
		return false
	}
	a, b = followed(a), followed(b)
	return a == b || filepath.Base(a) == filepath.Base(b) && isSame(filepath.Dir(a), filepath.Dir(b))
}

// mostLinks is the number of symbolic links after which followed ends.
const mostLinks = 40

// followed returns the file that a symbolic link leads to, also if that does not exist.
func followed(path string) string {
	path = filepath.Clean(path)
	for range mostLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = filepath.Clean(to)
	}
	return path
}
