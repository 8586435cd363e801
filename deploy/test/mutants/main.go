// Command mutants makes small changes in the code of a package, one at a time, and reports the changes that no test
// notices. docs/contributing.md explains its output.
//
//	mutants [PACKAGE...]
//
// PACKAGE is a folder that guards.txt lists, such as gateway/internal/apikey, or a file in such a folder. Without
// arguments, it tries all of these folders, and then the guards of the stores that stores.txt lists. The argument
// "stores" stands for all of these guards, and "stores:" with a part of a file's path for the guards in that file.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	lists  = "deploy/test/mutants/"
	stores = "stores"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(packages []string) error {
	guards, err := rows(lists+"guards.txt", " ")
	if err != nil {
		return err
	}
	same, err := rows(lists+"same.txt", " | ")
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		for _, row := range guards {
			packages = append(packages, row[0])
		}
		packages = append(packages, stores)
	}
	var failed []string
	for _, p := range packages {
		if name, file, _ := strings.Cut(p, ":"); name == stores {
			switch survived, err := tryStores(file); {
			case err != nil:
				return fmt.Errorf("%s: %w", p, err)
			case survived > 0:
				failed = append(failed, p)
			}
			continue
		}
		folder, file := filepath.Clean(p), ""
		if strings.HasSuffix(folder, ".go") {
			folder, file = filepath.Dir(folder), filepath.Base(folder)
		}
		at := slices.IndexFunc(guards, func(row []string) bool { return row[0] == folder })
		if at < 0 {
			return fmt.Errorf("%s is not in %sguards.txt", folder, lists)
		}
		r, err := try(guards[at], file, same)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if r.survived > 0 || r.stale > 0 {
			failed = append(failed, p)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("changes survived in %s", strings.Join(failed, ", "))
	}
	return nil
}

// rows returns the fields of each line of a file. It skips comments. The parameter `between` is the text that
// separates two fields.
func rows(path, between string) ([][]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("run this from the root of the repository: %w", err)
	}
	var all [][]string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, strings.Split(line, between))
		}
	}
	return all, nil
}
