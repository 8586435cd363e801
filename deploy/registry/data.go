package registry

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

// A data directory holds these files. The format file comes first, so that a
// directory is either empty, or ours. The secret comes last, under its name:
// until the stores are made, it has another one. So a directory with a secret
// whose stores are missing has lost them, and is refused.
const (
	formatFile      = "FORMAT"
	firstSecretFile = "secret.first" // of a first start that has not come to its end
	secretFile      = "secret"
	assetsFile      = "assets.db"
	tokensFile      = "tokens.db"

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

// openSecret returns the directory's secrets, one made when there is none yet.
func openSecret(dir string) (keyring.Ring, error) {
	for {
		switch there, err := has(dir, secretFile); {
		case err != nil:
			return nil, err
		case there:
			return openComplete(dir)
		}
		if err := makeFirstSecret(dir); err != nil {
			return nil, err
		}
		secret, err := keyring.Read(filepath.Join(dir, firstSecretFile))
		// If another process has come to the end of the first start meanwhile, its
		// secret stands.
		if there, failed := has(dir, secretFile); failed == nil && !there {
			return secret, err
		}
	}
}

// openComplete returns the secrets of a directory whose first start has come to
// its end, and refuses one that has lost a store: an empty one in its place
// would give out the same numbers again, to the same synchronisers.
func openComplete(dir string) (keyring.Ring, error) {
	for _, name := range []string{assetsFile, tokensFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, lost(dir, name, "is missing")
		case err != nil:
			return nil, fmt.Errorf("open data directory: %w", err)
		case info.Size() == 0:
			return nil, lost(dir, name, "is empty")
		}
	}
	return keyring.Read(filepath.Join(dir, secretFile))
}

func lost(dir, name, how string) error {
	return fmt.Errorf("data directory %s has a %s, but %s %s: restore a backup, "+
		"or remove the directory if nothing was ever stored", dir, secretFile, name, how)
}

// makeFirstSecret makes the secret of a first start, unless an interrupted one
// has left its own. A directory with stores that has lost its secret has lost
// their tokens: that is for a person to see.
func makeFirstSecret(dir string) error {
	if there, err := has(dir, firstSecretFile); there || err != nil {
		return err
	}
	for _, name := range []string{assetsFile, tokensFile} {
		stored, err := has(dir, name)
		if err != nil {
			return err
		}
		if !stored {
			continue
		}
		if there, err := has(dir, secretFile); there || err != nil { // another process has just finished
			return err
		}
		return fmt.Errorf("data directory %s has %s but no file %s, without which no owner token is good: restore it",
			dir, name, secretFile)
	}
	return writeFile(dir, firstSecretFile, newSecret())
}

func newSecret() string {
	bits := make([]byte, secretBytes)
	rand.Read(bits) // never fails
	return hex.EncodeToString(bits)
}

// finish ends a first start: the stores are made, and the secret gets its name.
// Of a later start there is nothing to finish.
func finish(dir string) error {
	first := filepath.Join(dir, firstSecretFile)
	err := os.Link(first, filepath.Join(dir, secretFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		if err = syncDirectory(dir); err == nil {
			err = os.Remove(first)
		}
	}
	if err := errors.Join(err, syncDirectory(dir)); err != nil {
		return fmt.Errorf("write into data directory: %w", err)
	}
	return nil
}

func has(dir, name string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("open data directory: %w", err)
	}
	return err == nil, nil
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
