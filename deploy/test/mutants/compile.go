package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// compile writes a copy of the package that contains the mutants, and compiles the tests with the copy instead of
// the original. The function `change` returns the source of a file with its mutants.
func (t *trial) compile(change func(file string, source []byte) ([]byte, error)) error {
	files, err := filepath.Glob(t.tests[0] + "/*.go")
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || !t.holds(file) {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		changed, err := change(file, source)
		if err != nil {
			return err
		}
		if err := t.replace(replace, file, changed); err != nil {
			return err
		}
	}
	if len(t.mutants) == 0 {
		return fmt.Errorf("found no place for a change in %d files", len(files))
	}
	added := fmt.Appendf(nil, helper, t.name, len(t.mutants)+1)
	if err := t.replace(replace, t.tests[0]+"/zz_mutants.go", added); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.work+"/overlay.json", overlay, 0o600); err != nil {
		return err
	}
	for i, folder := range t.tests {
		path := filepath.Join(t.work, strconv.Itoa(i)+".test")
		build := exec.Command("go", "test", "-c", "-overlay", t.work+"/overlay.json", "-o", path, "./"+folder)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the tests of %s: %w\n%s", folder, err, out)
		}
		t.programs = append(t.programs, program{path: path, folder: folder})
	}
	return nil
}

// replace writes a text into a new file, which the compiler reads instead of the original file. It adds the names
// of both files to the map `with`.
func (t *trial) replace(with map[string]string, file string, text []byte) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	with[path] = filepath.Join(t.work, strconv.Itoa(len(with))+".go")
	return os.WriteFile(with[path], text, 0o600)
}
