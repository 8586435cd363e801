package registry

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"asset-registry/shared/boltfile"
	"asset-registry/shared/durable"
)

// kept lists the files of a backup, in their order. Assets come before tokens, so
// that a backup has every transfer that one of its assets names. The file of the
// server's id is optional.
var kept = []string{formatFile, secretFile, serverIDFile, assetsFile, tokensFile}

// snapshot writes a store's file as it is at one moment. It calls to with the size
// of the file, and writes to the returned writer.
type snapshot func(to func(size int64) (io.Writer, error)) error

// Backup writes a backup of a data directory into a new file, completely or not at
// all. The registry may run or not. Only the file's owner can read it, because it
// holds the secret.
func Backup(ctx context.Context, dir, file string) error {
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("%s is there already: name another file", file)
	}
	w, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+durable.Unfinished) // its mode is 0600
	if err != nil {
		return err
	}
	if err := errors.Join(takeBackup(ctx, dir, w), w.Sync(), w.Close()); err != nil {
		return errors.Join(err, os.Remove(w.Name()))
	}
	return durable.Link(w.Name(), file) // fails if the file exists by now
}

// takeBackup asks the running registry for a backup. If none runs, it reads the
// files itself.
func takeBackup(ctx context.Context, dir string, w io.Writer) error {
	client := controlClient(dir)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://registry"+backupPath, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if isStopped(err) {
		return archive(w, dir, map[string]snapshot{
			assetsFile: stopped(dir, assetsFile),
			tokensFile: stopped(dir, tokensFile),
		})
	}
	if err != nil {
		return fmt.Errorf("ask the registry for a backup: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the registry did not finish the backup; see its log: %w", err)
	}
	return nil
}

// stopped returns the snapshot of a store that no process has open.
func stopped(dir, name string) snapshot {
	return func(to func(size int64) (io.Writer, error)) error {
		return boltfile.SnapshotOf(filepath.Join(dir, name), to)
	}
}

// archive writes the directory as a tar archive. The stores come from snapshots, by
// file name; other files are copied.
func archive(w io.Writer, dir string, snapshots map[string]snapshot) error {
	t := tar.NewWriter(w)
	for _, name := range kept {
		_, err := os.Stat(filepath.Join(dir, name))
		if name == serverIDFile && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		entry := func(size int64) (io.Writer, error) {
			header := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: time.Now(), Format: tar.FormatPAX}
			return t, t.WriteHeader(header)
		}
		take, isStore := snapshots[name]
		if !isStore {
			take = func(to func(int64) (io.Writer, error)) error { return copyFile(filepath.Join(dir, name), to) }
		}
		if err := take(entry); err != nil {
			return fmt.Errorf("back up %s: %w", name, err)
		}
	}
	return t.Close()
}

// copyFile is the snapshot of a small file that is not a store.
func copyFile(path string, to func(size int64) (io.Writer, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	w, err := to(int64(len(text)))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
