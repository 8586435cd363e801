package registry

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
	"asset-registry/shared/keyring"
)

// The files of a data directory. The first start writes the format file before all others, so a directory without
// it must be empty. Then it writes the secret under a temporary name, creates the stores, and renames the secret.
// So a directory that has a secret but no stores has lost its stores, and is refused.
const (
	formatFile      = dataformat.File
	firstSecretFile = "secret.first" // the secret during the first start
	secretFile      = "secret"
	assetsFile      = "assets.db"
	tokensFile      = "tokens.db"
	filesFile       = "files.db" // metadata about the files of documents

	// filesDirectory contains the bytes of the files of documents.
	filesDirectory = "files"

	// logKeyFile has the secret keys of the public log. A backup does not contain it. Restored data may be older than
	// the trees that these keys have signed, so a restored registry makes a new key and begins a new log.
	logKeyFile = "log.key"

	// certificateDirectory has the ACME keys. A backup contains them only on request.
	certificateDirectory = "acme"

	// snapshotDirectory has copies of all listed assets for synchronisers. A backup does not contain it: the
	// registry makes new ones.
	snapshotDirectory = "snapshots"

	// searchDirectory has the index of searches. A backup does not contain it: the registry makes it from the
	// feed.
	searchDirectory = "search"

	// backupFile has the record of the last backup (LastBackup).
	backupFile = "backup.json"

	// serverIDFile keeps the default SERVER_ID after the secret was rotated, so that it does not change.
	serverIDFile = "server-id"

	format        = "asset-registry data 1"
	secretBytes   = 32
	directoryMode = 0o700
)

// mustBeOurs returns an error if the directory lacks the file, and so is not a data directory of the registry. With the
// format file, the format must be the one of this registry, too.
func mustBeOurs(dir, file string) error {
	_, err := os.Stat(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s is no data directory of the registry: name it with --data; registry serve creates it", dir)
	}
	if err == nil && file == formatFile {
		_, err = isNew(dir)
	}
	return withRight(err)
}

// withRight adds to an error the command that has the right, if the user lacks it.
func withRight(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run the command as root or as the user of the registry", err)
	}
	return err
}

// openData creates a data directory if it does not exist, and returns its secrets. If the directory contains files
// that the registry did not write, openData writes nothing and returns an error.
func openData(dir string) (keyring.Ring, error) {
	fresh, err := isNew(dir)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := makeDirectory(dir); err != nil {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
		if err := writeFile(dir, formatFile, format); err != nil {
			return nil, err
		}
	}
	return openSecret(dir)
}

// isNew reports whether a directory does not exist, or is empty. It returns an error for a directory that is neither
// new nor one of this registry.
func isNew(dir string) (bool, error) { return dataformat.IsNew(dir, format) }

// openSecret returns the secrets of a data directory. At the first start it creates a secret.
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
		// If another process has finished the first start meanwhile, the loop reads the secret of that process.
		if there, failed := has(dir, secretFile); failed == nil && !there {
			return secret, err
		}
	}
}

// openComplete returns the secrets of a directory whose first start is finished. It
// refuses a directory that has lost a store: a new, empty store would give the same
// feed numbers again, and synchronisers would miss changes.
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
	bytes, err := has(dir, filesDirectory)
	if err != nil {
		return nil, err
	}
	if there, err := has(dir, filesFile); err != nil {
		return nil, err
	} else if bytes && !there {
		return nil, lost(dir, filesFile, "is missing")
	}
	return keyring.Read(filepath.Join(dir, secretFile))
}

// lost returns the error for a missing or empty store.
func lost(dir, name, how string) error {
	return fmt.Errorf("data directory %s has a %s, but %s %s: restore a backup, "+
		"or remove the directory if it never held data", dir, secretFile, name, how)
}

// makeFirstSecret creates the secret of a first start. If an interrupted start has left one, it does nothing. If
// there are stores but no secret, it returns an error: without the secret no owner token is valid, so an operator
// must restore it.
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
		if there, err := has(dir, secretFile); there || err != nil { // another process has just finished the start
			return err
		}
		return fmt.Errorf("data directory %s has %s but no file %s, and no owner token is valid without it: restore it",
			dir, name, secretFile)
	}
	return writeFile(dir, firstSecretFile, newSecret())
}

func newSecret() string {
	bits := make([]byte, secretBytes)
	rand.Read(bits) // rand.Read never returns an error
	return hex.EncodeToString(bits)
}

// finishFirstStart gives the secret its final name after the stores were created. At a later start it does
// nothing.
func finishFirstStart(dir string) error {
	first := filepath.Join(dir, firstSecretFile)
	err := os.Link(first, filepath.Join(dir, secretFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		if err = durable.SyncDirectory(dir); err == nil {
			err = os.Remove(first)
		}
	}
	return errs.In(errors.Join(err, durable.SyncDirectory(dir)), "write into data directory")
}

// The function `has` reports whether the directory holds the file.
func has(dir, name string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("open data directory: %w", err)
	}
	return err == nil, nil
}

// pinnedServerID returns the SERVER_ID that a rotation has pinned, or "".
func pinnedServerID(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, serverIDFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// makeDirectory creates a directory and its missing parents, and syncs them to disk.
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
	return durable.SyncDirectory(parent)
}

// writeFile writes a line into a new file, completely or not at all, and syncs it. If the file exists, it is not
// changed. So if several processes start together, all of them use the secret of the first one.
func writeFile(dir, name, line string) error {
	err := durable.Create(filepath.Join(dir, name), []byte(line+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write into data directory: %w", err)
	}
	return nil
}

// replaceFile replaces the lines of a file, completely or not at all, and syncs it.
func replaceFile(dir, name, text string) error {
	return errs.In(durable.Replace(filepath.Join(dir, name), []byte(text+"\n")), "write into data directory")
}
