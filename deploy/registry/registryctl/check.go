package registryctl

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"asset-registry/shared/command"
)

// checkValues returns a fault for each value that its flag or argument does not accept. An argument must not be
// empty. Tags declare further checks:
//
//   - complete:"a,b" lists the values; complete:"keys" and "brokers" name lists of the registry;
//   - least:"1" and most:"9" bound a number or a duration;
//   - "in" is for a file that must exist, "out" for a file whose folder must exist. With the value "later", the
//     command itself looks whether they exist.
//
// No file that the command writes may be another file of the same command, or one of the files that it reads besides.
func checkValues(line *kong.Context, files ...namedFile) error {
	var values []*kong.Value
	for _, flag := range line.Flags() {
		values = append(values, flag.Value)
	}
	if command := line.Selected(); command != nil {
		values = append(values, command.Positional...)
	}
	var faults []error
	for _, v := range values {
		if err := checkValue(v); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", nameOf(v), err))
		}
		if target := reflect.Indirect(v.Target); isFile(v.Tag) && target.Kind() == reflect.String {
			files = append(files, namedFile{nameOf(v), target.String(), v.Tag.Has("out")})
		}
	}
	return errors.Join(append(faults, distinct(files...))...)
}

// nameOf returns the name of a flag, or the name of an argument as the help writes it.
func nameOf(v *kong.Value) string {
	if v.Flag != nil {
		return "--" + v.Name
	}
	return strings.ToUpper(v.Name)
}

func checkValue(v *kong.Value) error {
	target := reflect.Indirect(v.Target)
	switch {
	case !target.IsValid(): // the flag was not given
		return nil
	case target.Kind() == reflect.Int, target.Kind() == reflect.Int64:
		if !v.Set {
			return nil
		}
		return checkNumber(v.Tag, target)
	case target.Kind() != reflect.String:
		return nil
	}
	text := target.String()
	if text == "" && v.Set && (v.Flag == nil || isFile(v.Tag)) {
		return errors.New("it must not be empty")
	}
	known := strings.Split(v.Tag.Get("complete"), ",")
	last := len(known) - 1
	isNamed := text != "" || v.Target.Kind() == reflect.Pointer
	if last > 0 && isNamed && !slices.Contains(known, text) {
		return fmt.Errorf("it must be %s or %s, got %q", strings.Join(known[:last], ", "), known[last], text)
	}
	if !isFile(v.Tag) || text == "" || text == "-" { // "-" is the standard input
		return nil
	}
	if err := command.File(text); err != nil || v.Tag.Get("in")+v.Tag.Get("out") == "later" {
		return err
	}
	return checkFile(text, v.Tag.Has("out"))
}

func checkNumber(tag *kong.Tag, target reflect.Value) error {
	least, most := numberOf(tag.Get("least"), target.Type()), numberOf(tag.Get("most"), target.Type())
	switch n := target.Int(); {
	case tag.Has("least") && n < least, tag.Has("most") && n > most:
		return fmt.Errorf("it must be %s, got %v", boundsOf(tag), target.Interface())
	}
	return nil
}

func boundsOf(tag *kong.Tag) string {
	if tag.Has("most") {
		return tag.Get("least") + " to " + tag.Get("most")
	}
	return tag.Get("least") + " or more"
}

// numberOf parses a bound that a tag declares.
func numberOf(text string, of reflect.Type) int64 {
	if of == reflect.TypeFor[time.Duration]() {
		d, _ := time.ParseDuration(text)
		return int64(d)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// checkFile looks at an existing file, or at the folder of a file to be written.
func checkFile(name string, isOut bool) error {
	if isOut {
		name = filepath.Dir(name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case isOut && !info.IsDir():
		return &os.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	case !isOut && info.IsDir():
		return &os.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	return nil
}

// checkAddress returns an error if the argument `address` is not the address of a server.
func checkAddress(flag, address string) error {
	u, err := url.Parse(address)
	if err == nil {
		_, err = strconv.ParseUint("0"+u.Port(), 10, 16)
	}
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		// The error does not quote the address, which may have a password.
		return fmt.Errorf("%s must be an address such as https://HOST or http://HOST:PORT", flag)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("%s must have no user, query or fragment: API keys have flags and settings of their own", flag)
	}
	return nil
}

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
