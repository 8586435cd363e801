// Package dataformat says how stores and data directories refuse data of a format that they cannot read.
package dataformat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"asset-registry/shared/durable"
)

// UpgradesCommit is the last commit of this project that reads the formats before the
// first release.
const UpgradesCommit = "1a824b5de37c"

// Refusal returns the error of a store that cannot read its data. The first argument is the format of the data,
// and the second argument is the only format that the store can read. The error names the last version that
// reads the formats before the first release.
func Refusal(found, want string) error {
	return fmt.Errorf("the data have the format %q, not %q: "+
		"the commit %s is the last version that reads formats from before the first release", found, want, UpgradesCommit)
}

// File is the name of the file that holds the format of a data directory.
const File = "FORMAT"

// IsNew reports whether a directory does not exist, or is empty. It returns an error for a directory that is neither
// new nor of the format `want`.
func IsNew(dir, want string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("open data directory: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, File))
	found := strings.TrimSpace(string(text))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		isForeign := func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), File+durable.Unfinished) }
		if i := slices.IndexFunc(entries, isForeign); i >= 0 {
			const says = "data directory %s is not the registry's, it holds %s and no %s: name its own, or a new one"
			return false, fmt.Errorf(says, dir, entries[i].Name(), File)
		}
		return true, nil
	case err != nil:
		return false, fmt.Errorf("open data directory: %w", err)
	case found != want:
		return false, fmt.Errorf("data directory %s has format %q, but this program needs %q: "+
			"start the release that wrote it", dir, found, want)
	}
	return false, nil
}
