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
	"regexp"
	"time"

	"asset-registry/deploy/registry/certificate"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/durable"
)

// kept lists the files of a backup in the order in which they are written. The assets come first, so that
// the later tokens.db and files.db have each transfer and each file that an asset in the backup names. After files.db
// come the bytes of these files, and then an empty entry that marks their end.
var kept = []string{formatFile, secretFile, serverIDFile, assetsFile, tokensFile, filesFile}

// endOfFiles is the name of the empty entry that follows the bytes of all files.
const endOfFiles = filesDirectory + "/end"

// snapshot copies the file of a store, in the state of one moment. It calls the function `to` with the size of the
// file, and writes the file to the writer that this function returns.
type snapshot func(to func(size int64) (io.Writer, error)) error

// BackupOptions says what a backup contains in addition to the data.
type BackupOptions struct {
	Certificate bool // include the keys and the certificate of ACME
}

// Backup writes a backup of a data directory into a new file, completely or not at all, and records the backup in
// the data directory. The registry may be running or stopped. Only the file's owner can read the file, because it
// contains the secret.
func Backup(ctx context.Context, dir, file string, o BackupOptions) error {
	if err := takeWhole(ctx, dir, file, o); err != nil {
		return err
	}
	if _, err := noteBackup(dir, file, false); err != nil { // if only this fails, the backup is still valid
		warningsOnly().Warn("registry status will not tell of this backup", "error", err)
	}
	return nil
}

// takeWhole writes a backup into a new file, completely or not at all.
func takeWhole(ctx context.Context, dir, file string, o BackupOptions) error {
	if isWithin(dir, file) {
		return fmt.Errorf("%s is in the data directory: name another place for the backup", file)
	}
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("%s is there already: name another file", file)
	}
	temporary, err := durable.Temporary(file)
	if err != nil {
		return fmt.Errorf("create the backup: %w", err)
	}
	w, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create the backup: %w", err)
	}
	_ = durable.Hold(w) // a disk without locks lets no run remove it either
	if err := errors.Join(takeBackup(ctx, dir, w, o), w.Sync(), w.Close()); err != nil {
		return errors.Join(err, os.Remove(w.Name()))
	}
	return durable.Link(w.Name(), file) // fails if somebody has created the file meanwhile
}

// takeBackup asks the running registry for a backup. If no registry runs, takeBackup reads the files itself.
func takeBackup(ctx context.Context, dir string, w io.Writer, o BackupOptions) error {
	path := backupPath
	if o.Certificate {
		path += "?" + withCertificate
	}
	resp, err := ask(ctx, dir, http.MethodGet, path)
	if errors.Is(err, errNoneRuns) {
		if err := mustBeKnown(dir); err != nil {
			return err
		}
		return archive(w, dir, map[string]snapshot{
			assetsFile: stopped(dir, assetsFile),
			tokensFile: stopped(dir, tokensFile),
			filesFile:  stopped(dir, filesFile),
		}, o)
	}
	if err != nil {
		return failed(ctx, dir, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the registry makes no backup; see its log: it answered %d", resp.StatusCode)
	}
	_, err = io.Copy(w, resp.Body)
	if _, isFile := errors.AsType[*fs.PathError](err); err != nil && !isFile {
		return failed(ctx, dir, err)
	}
	return err
}

// failed asks the running registry why a backup failed. If it does not say, the error has the error of the call.
func failed(ctx context.Context, dir string, err error) error {
	resp, unasked := ask(ctx, dir, http.MethodGet, failurePath)
	if unasked != nil {
		return fmt.Errorf("ask the registry for a backup: %w", err)
	}
	defer resp.Body.Close()
	why, unasked := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusOK || unasked != nil || len(why) == 0 {
		return fmt.Errorf("the registry did not finish the backup; see its log: %w", err)
	}
	return fmt.Errorf("the registry did not finish the backup: %s", why)
}

// stopped returns the snapshot of a store. No process may have the store open.
func stopped(dir, name string) snapshot {
	return func(to func(size int64) (io.Writer, error)) error {
		return boltfile.SnapshotOf(filepath.Join(dir, name), to)
	}
}

// archive writes the data directory as a tar archive. It writes the snapshots of the stores; the keys of the map
// are the names of their files. It copies all other files.
func archive(w io.Writer, dir string, snapshots map[string]snapshot, o BackupOptions) error {
	t := tar.NewWriter(w)
	for _, name := range kept {
		_, err := os.Stat(filepath.Join(dir, name))
		if name == serverIDFile && errors.Is(err, fs.ErrNotExist) { // only a rotation of the secret makes it
			continue
		}
		if take, isStore := snapshots[name]; isStore {
			err = take(func(size int64) (io.Writer, error) { return t, writeHeader(t, name, size) })
		} else {
			err = archiveFile(t, dir, name)
		}
		if err != nil {
			return fmt.Errorf("back up %s: %w", name, err)
		}
		if name == filesFile {
			if err := archiveBytes(t, dir); err != nil {
				return fmt.Errorf("back up the bytes of files: %w", err)
			}
		}
	}
	if o.Certificate {
		if err := archiveCertificate(t, dir); err != nil {
			return fmt.Errorf("back up the certificate: %w", err)
		}
	}
	return t.Close()
}

// certificateForm matches the names of the ACME files in a backup. They come last in the archive. Older releases
// stop reading before them, so they can still restore the backup.
var certificateForm = regexp.MustCompile(`^` + certificateDirectory + `/` + certificate.FileForm + `$`)

// archiveCertificate writes the ACME files.
func archiveCertificate(t *tar.Writer, dir string) error {
	names, err := fs.Glob(os.DirFS(dir), certificateDirectory+"/*/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if certificateForm.MatchString(name) {
			if err := archiveFile(t, dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeHeader(t *tar.Writer, name string, size int64) error {
	return t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: time.Now(), Format: tar.FormatPAX})
}

// archiveBytes writes the bytes of all files, and then the entry that marks their end. If garbage collection
// removes a file during the backup, the archive lacks this file. If the bytes are in a bucket, archiveBytes writes
// none of them.
func archiveBytes(t *tar.Writer, dir string) error {
	if inBucket, err := has(dir, placeFile); err != nil {
		return err
	} else if inBucket {
		return writeHeader(t, endOfFiles, 0)
	}
	err := fs.WalkDir(os.DirFS(dir), filesDirectory, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || !blobForm.MatchString(name):
			return nil
		}
		if err = archiveFile(t, dir, name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return writeHeader(t, endOfFiles, 0)
}

// blobForm matches the names of files' bytes in a backup. It does not match uploads that are not finished.
var blobForm = regexp.MustCompile(`^` + filesDirectory + `/[0-9a-f]{2}/[0-9a-f]{32}-[0-9a-f]{16}$`)

// archiveFile writes a file that is not a store.
func archiveFile(t *tar.Writer, dir, name string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := writeHeader(t, name, info.Size()); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}
