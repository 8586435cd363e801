package standalone

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"asset-registry/shared/keyring"
)

// What lies in a data directory. The format file comes first, so that a
// directory is either empty, or ours.
const (
	formatFile = "FORMAT"
	secretFile = "secret"
	assetsFile = "assets.db"
	tokensFile = "tokens.db"

	// serverIDFile pins the default SERVER_ID once the secret has been rotated.
	serverIDFile = "server-id"

	format        = "asset-registry data 1"
	secretBytes   = 32
	unfinished    = ".new" // goes into the name of a file that is being written
	directoryMode = 0o700
)

// openData prepares a data directory, making it if there is none, and returns
// its secrets. It writes nothing into a directory that is not ours.
func openData(dir string) (keyring.Ring, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeDirectory(dir); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	found, err := os.ReadFile(filepath.Join(dir, formatFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), formatFile+unfinished) }); i >= 0 {
			return nil, fmt.Errorf("data directory %s is not the registry's: it holds %s and no %s; name an empty one, or one that does not exist", dir, entries[i].Name(), formatFile)
		}
		if err := writeFile(dir, formatFile, format); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("open data directory: %w", err)
	case strings.TrimSpace(string(found)) != format:
		return nil, fmt.Errorf("data directory %s is in format %q; this registry reads and writes %q", dir, strings.TrimSpace(string(found)), format)
	}
	return openSecret(dir)
}

// openSecret returns the directory's secrets, one made when there is none yet. A
// directory with assets that has lost its secret has lost their tokens: that is
// for a person to see.
func openSecret(dir string) (keyring.Ring, error) {
	path := filepath.Join(dir, secretFile)
	_, missing := os.Stat(path)
	if _, err := os.Stat(filepath.Join(dir, assetsFile)); missing != nil && err == nil {
		return nil, fmt.Errorf("data directory %s has assets but no file %s, without which no owner token is good: restore it", dir, secretFile)
	}
	if errors.Is(missing, fs.ErrNotExist) {
		if err := writeFile(dir, secretFile, newSecret()); err != nil {
			return nil, err
		}
	}
	return keyring.Read(path)
}

func newSecret() string {
	bits := make([]byte, secretBytes)
	rand.Read(bits) // never fails
	return hex.EncodeToString(bits)
}

// pinnedServerID returns the SERVER_ID that a rotation has pinned, "" for none.
func pinnedServerID(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, serverIDFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// makeDirectory makes a directory, and those above it, durably.
func makeDirectory(dir string) error {
	parent := filepath.Dir(dir)
	err := os.Mkdir(dir, directoryMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirectory(parent); err != nil {
			return err
		}
		err = os.Mkdir(dir, directoryMode)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncDirectory(parent)
}

// writeFile writes a line into a new file that is there whole and durably, or
// not at all. Of processes that start at the same time the first one's line
// stands: a secret that somebody uses is never replaced.
func writeFile(dir, name, line string) error {
	return writeNew(dir, name, line, func(written, path string) error {
		err := os.Link(written, path)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return errors.Join(err, os.Remove(written))
	})
}

// replaceFile does the same, and puts the file in the place of the one there is.
func replaceFile(dir, name, text string) error { return writeNew(dir, name, text, os.Rename) }

func writeNew(dir, name, text string, place func(written, path string) error) error {
	file, err := os.CreateTemp(dir, name+unfinished) // readable by its owner alone
	if err != nil {
		return fmt.Errorf("write into data directory: %w", err)
	}
	_, err = file.WriteString(text + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	} else {
		err = place(file.Name(), filepath.Join(dir, name))
	}
	if err := errors.Join(err, syncDirectory(dir)); err != nil {
		return fmt.Errorf("write into data directory: %w", err)
	}
	return nil
}

// syncDirectory makes durable which files there are.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
