package registry

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"asset-registry/shared/durable"
)

// Restore creates a data directory from a backup, completely or not at all. The
// directory must be empty or not exist.
func Restore(file, dir string) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("data directory %s is not empty: name another one", dir)
	}
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	dir = filepath.Clean(dir)
	if err := makeDirectory(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+durable.Unfinished) // its mode is 0700
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := extract(r, temporary); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, name := range []string{assetsFile, tokensFile} { // a snapshot reads the whole store
		if err := stopped(temporary, name)(func(int64) (io.Writer, error) { return io.Discard, nil }); err != nil {
			return fmt.Errorf("read %s: %s: %w", file, name, err)
		}
	}
	if err := durable.SyncDirectory(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil { // replaces an empty directory
		return err
	}
	return durable.SyncDirectory(filepath.Dir(dir))
}

// extract writes the files of a backup into dir. It refuses an archive that lacks a
// file or holds another one.
func extract(r io.Reader, dir string) error {
	t := tar.NewReader(r)
	missing := slices.Clone(kept)
	for len(missing) > 0 {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it is no backup of the registry, or it is cut off: %s is missing", missing[0])
		}
		if err != nil {
			return err
		}
		if missing[0] == serverIDFile && header.Name != serverIDFile {
			missing = missing[1:]
		}
		if header.Name != missing[0] {
			return fmt.Errorf("it is no backup of the registry: it holds %q instead of %s", header.Name, missing[0])
		}
		missing = missing[1:]
		w, err := os.OpenFile(filepath.Join(dir, header.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, t)
		if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
			return err
		}
	}
	return nil
}
