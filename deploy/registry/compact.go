package registry

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"asset-registry/shared/boltfile"
)

// Compact rewrites the stores of a data directory without their free pages. Free pages still contain erased
// values until they are used again. For each file it writes the sizes before and after to w. The registry must
// not run. Each file is replaced completely or not at all.
func Compact(dir string, w io.Writer) error {
	if err := mustBeOurs(dir, formatFile); err != nil {
		return err
	}
	for _, name := range []string{assetsFile, tokensFile, filesFile} {
		if there, err := has(dir, name); err == nil && !there && isOptional(name) {
			continue
		}
		before, after, err := boltfile.Compact(filepath.Join(dir, name))
		if errors.Is(err, boltfile.ErrInUse) {
			return fmt.Errorf("%s: %w: stop the registry", name, boltfile.ErrInUse)
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s: %d bytes before, %d after\n", name, before, after); err != nil {
			return err
		}
	}
	return nil
}
