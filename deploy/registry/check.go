package registry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/keyring"
)

// ErrDamaged is returned for a data directory with damaged files.
var ErrDamaged = errors.New("the data is damaged: restore a backup, if no other command is named above")

// Check reads all files of a data directory, and writes for each file "ok" or its faults to w. It changes
// nothing. The registry must not run. It returns ErrDamaged if a file has a fault. If files is true, it also
// reads the bytes of all files of documents and compares their SHA-256; otherwise it only compares their
// lengths.
func Check(dir string, files bool, w io.Writer) error {
	if err := mustBeKnown(dir); err != nil {
		return err
	}
	var secrets [][]byte
	damaged := false
	for _, c := range []struct {
		name  string
		check func(path string) (says string, faults []error)
	}{
		{formatFile, checkFormat},
		{secretFile, func(path string) (string, []error) {
			ring, err := keyring.Read(path)
			if err != nil {
				return "", []error{err}
			}
			secrets = ring
			return "", nil
		}},
		{assetsFile, func(path string) (string, []error) {
			assets, faults := assetsvc.Check(path, secrets)
			return fmt.Sprintf(", assets: %d", assets), faults
		}},
		{tokensFile, func(path string) (string, []error) {
			records, keys, faults := authsvc.Check(path, secrets)
			return fmt.Sprintf(", token records: %d, keys: %d", records, keys), faults
		}},
		{filesFile, func(path string) (string, []error) {
			place, err := placeOf(dir)
			if err != nil {
				return "", []error{err}
			}
			c, faults := filesvc.Check(path, place, secrets, files)
			return fmt.Sprintf(", files: %d, bytes: %d, removed: %d", c.Files, c.Bytes, c.Removed), faults
		}},
	} {
		says, faults := c.check(filepath.Join(dir, c.name))
		if len(faults) == 0 {
			fmt.Fprintf(w, "%s: ok%s\n", c.name, says)
		}
		for _, fault := range faults {
			if errors.Is(fault, boltfile.ErrInUse) {
				return fmt.Errorf("%s: %w, or restore a backup and check that", c.name, fault)
			}
			if errors.Is(fault, fs.ErrPermission) {
				return fmt.Errorf("%s: %w", c.name, withRight(fault))
			}
			damaged = true
			fmt.Fprintf(w, "%s: %v\n", c.name, fault)
		}
	}
	if damaged {
		return ErrDamaged
	}
	return nil
}

// mustBeKnown returns an error for a directory that does not exist, is another program's, has another format, or cannot
// be read. If the format file alone is missing or unreadable, the directory is damaged.
func mustBeKnown(dir string) error {
	if err := mustBeOurs(dir, ""); err != nil {
		return err
	}
	fresh, err := isNew(dir)
	if fresh {
		return fmt.Errorf("%s is empty: name the data directory with --data", dir)
	}
	found, _ := os.ReadFile(filepath.Join(dir, formatFile)) // isNew tells an error
	ours, unknown := has(dir, assetsFile)
	if errors.Is(err, fs.ErrPermission) {
		return withRight(err)
	}
	isOther := strings.HasPrefix(string(found), "asset-registry ")
	if err != nil && unknown == nil && ours && !isOther {
		return nil
	}
	return errors.Join(err, unknown)
}

// RepairLog rebuilds the damaged parts of the public log in a data directory. It reads the changes from the
// record of changes, and writes to w how many parts it rebuilt. The registry must not run. If the record of
// changes does not give the tree that was signed, RepairLog changes nothing.
func RepairLog(dir string, w io.Writer) error {
	secrets, err := keyring.Read(filepath.Join(dir, secretFile))
	if err != nil {
		return err
	}
	repaired, err := assetsvc.RepairLog(filepath.Join(dir, assetsFile), secrets)
	if err != nil {
		return fmt.Errorf("repair the public log of %s: %w", filepath.Join(dir, assetsFile), err)
	}
	fmt.Fprintf(w, "public log: repaired parts: %d\n", repaired)
	return nil
}

// checkFormat checks the format file.
func checkFormat(path string) (string, []error) {
	found, err := os.ReadFile(path)
	if err != nil {
		return "", []error{err}
	}
	if text := strings.TrimSpace(string(found)); text != format {
		return "", []error{fmt.Errorf("got %q, want %q", text, format)}
	}
	return "", nil
}
