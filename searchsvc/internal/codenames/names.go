// Package codenames reads and holds names for codes. Some are built in, and an operator supplies further ones
// (docs/search.md, "Names of codes").
package codenames

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/codenames"
	"asset-registry/shared/ukrainian"
)

// Limits of the lists.
const (
	MaxBytes = 8 << 20 // bytes of all files together
	MaxName  = 250     // characters of a name; the rest is cut off
	maxCode  = 64      // bytes of a code
)

// Name is the name of a code. Either text may be empty.
type Name struct{ Uk, En string }

// In returns the name in a language. If the English name is missing, it returns the Ukrainian one. It returns ""
// if the code has neither; it never returns the English name instead of the Ukrainian one.
func (n Name) In(lang string) string {
	if lang == "en" {
		return cmp.Or(n.En, n.Uk)
	}
	return n.Uk
}

// Lists has the names from the operator's lists, and those that are built in. The zero value has no names. Lists never
// change.
type Lists struct {
	of map[string]map[string]entry // the outer keys are schemes, the inner keys are results of keyOf
}

// entry is a code of a list, and its name.
type entry struct {
	code string
	Name
}

// Of returns the name of a code of a scheme. If the scheme is a classification, the argument `code` may also be the
// beginning of a code. Then Of returns the name of that division, group or class.
func (l Lists) Of(scheme, code string) Name { return l.of[scheme][keyOf(scheme, code)].Name }

// Each calls the function f for each code of a scheme that has a name, in the order of the codes.
func (l Lists) Each(scheme string, f func(code string, name Name)) {
	entries := slices.SortedFunc(maps.Values(l.of[scheme]), func(a, b entry) int { return cmp.Compare(a.code, b.code) })
	for _, e := range entries {
		f(e.code, e.Name)
	}
}

// Classification does what Of does, if the caller does not know to which classification the code belongs.
func (l Lists) Classification(code string) Name {
	for _, scheme := range classifications {
		if name := l.Of(scheme, code); name != (Name{}) {
			return name
		}
	}
	return Name{}
}

// classifications are the schemes of classifications. No code belongs to both of them.
var classifications = []string{"CAV-PS", "CPV"}

// keyOf returns the key of a code in the map Lists.of. For a code of a classification, the key has the digits of the
// code without zeros at the end, but at least two digits. All codes below the code begin with these digits.
func keyOf(scheme, code string) string {
	prefix, ok := assetfilter.CodePrefix(code)
	if !ok || !slices.Contains(classifications, scheme) {
		return code
	}
	return prefix[:max(2, len(strings.TrimRight(prefix, "0")))]
}

//go:embed builtin
var builtin embed.FS

// Read reads the lists in a directory: files SCHEME.txt and files of names. They replace the names that are built in.
// If dir is "", only the latter are there. The error names every fault.
func Read(dir string) (l Lists, err error) {
	r := reader{left: MaxBytes, lists: Lists{of: map[string]map[string]entry{}}}
	own, err := fs.Sub(builtin, "builtin")
	if err == nil {
		err = r.readAll(own, "builtin")
	}
	if dir != "" && err == nil {
		r.left = MaxBytes
		err = r.readAll(os.DirFS(dir), dir)
	}
	return r.lists, err
}

// readAll reads the files of a directory with the given name. The error has at most one fault for each file of a known
// kind.
func (r *reader) readAll(dir fs.FS, name string) error {
	files, err := fs.ReadDir(dir, ".") // sorted by name
	if fault, isPath := errors.AsType[*fs.PathError](err); isPath {
		fault.Path = name
	}
	if err != nil {
		return fmt.Errorf("read names of codes: %w", err)
	}
	var faults []error
	// JSON files come last, so that their names replace the names in the other files.
	slices.SortStableFunc(files, func(a, b os.DirEntry) int { return cmp.Compare(kindOf(a.Name()), kindOf(b.Name())) })
	for _, file := range files {
		text, err := r.read(dir, file.Name())
		if err == nil {
			err = r.add(file.Name(), text)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("names of codes %s: %w", filepath.Join(name, file.Name()), err))
		}
	}
	return errors.Join(faults...)
}

// kindOf returns 0 for SCHEME.txt files, which have codes with names, 1 for JSON files of names, and 2 for other
// files.
func kindOf(file string) int {
	if scheme, isText := strings.CutSuffix(file, ".txt"); isText && slices.Contains(codenames.Schemes, scheme) {
		return 0
	}
	if _, _, ok := codenames.File(file); ok {
		return 1
	}
	return 2
}

// reader reads lists.
type reader struct {
	lists Lists
	left  int // bytes that may still be read
}

// read returns the text of a file of names. It ignores files of other kinds, because the asset service refuses
// them.
func (r *reader) read(dir fs.FS, name string) ([]byte, error) {
	if kindOf(name) > 1 {
		return nil, nil
	}
	if info, err := fs.Stat(dir, name); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("this is no file")) // not opened, because opening a named pipe would block
	}
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, int64(r.left)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > r.left {
		return nil, fmt.Errorf("the files have more than %d bytes together", MaxBytes)
	}
	r.left -= len(text)
	return text, nil
}

// add adds the names of a file.
func (r *reader) add(file string, text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("the text is not UTF-8; save the file as UTF-8")
	}
	text = []byte(strings.TrimPrefix(string(text), "\uFEFF"))
	switch kindOf(file) {
	case 0:
		scheme := strings.TrimSuffix(file, ".txt")
		for line := range strings.Lines(string(text)) {
			code, name, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " ")
			if !strings.HasPrefix(code, "#") {
				r.name(scheme, "uk", code, name)
			}
		}
	case 1:
		scheme, lang, _ := codenames.File(file)
		var names map[string]string
		if err := json.Unmarshal(text, &names); err != nil {
			return fmt.Errorf(`it must be an object of codes and names such as {"03111000-2": "Насіння"}: %w`, err)
		}
		for _, code := range slices.Sorted(maps.Keys(names)) { // if codes have the same key, the last (longest) code wins
			if code == "" || len(code) > maxCode {
				return fmt.Errorf("%.100q is no code: a code has 1 to %d bytes", code, maxCode)
			}
			r.name(scheme, lang, code, names[code])
		}
	}
	return nil
}

// name sets the name of a code. It ignores an empty name.
func (r *reader) name(scheme, lang, code, name string) {
	if name = Tidy(name, MaxName); name == "" {
		return
	}
	if r.lists.of[scheme] == nil {
		r.lists.of[scheme] = map[string]entry{}
	}
	key := keyOf(scheme, code)
	known := r.lists.of[scheme][key]
	known.code = code
	if lang == "en" {
		known.En = name
	} else {
		known.Uk = name
	}
	r.lists.of[scheme][key] = known
}

// Tidy returns a text in one line, with at most the given number of characters, and without invisible
// characters.
func Tidy(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
	return Cut(strings.Join(strings.Fields(text), " "), most)
}

// Cut returns at most the given number of characters of a text. An ellipsis stands for the rest.
func Cut(text string, most int) string {
	if short := ukrainian.Cut(text, most); short != text {
		return strings.TrimSpace(short) + "…"
	}
	return text
}
