package registry

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
	"asset-registry/shared/durable"
)

// Restore creates a data directory from a backup, completely or not at all. The directory must be empty or not
// exist. The argument `former` is the data directory of the registry before the restore. Files that were removed
// from that registry stay removed (docs/files.md, "Removal"). If `former` is "", no removals are copied. The
// argument `bucket` is the address of the bucket with the bytes of the files. It is "" if the backup has the bytes.
func Restore(ctx context.Context, file, dir, former, bucket string) (err error) {
	if bucket != "" {
		if err := checkBucket(bucket); err != nil {
			return fmt.Errorf("--bucket: %w", err)
		}
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("data directory %s is not empty: name another one", dir)
	}
	r, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer r.Close()
	dir = filepath.Clean(dir)
	if err := makeDirectory(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	temporary, err := durable.Temporary(dir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	held, err := os.Open(temporary)
	if err != nil {
		return err
	}
	defer held.Close()
	_ = durable.Hold(held) // a disk without locks lets no run remove it either
	if err := extract(r, temporary); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, name := range []string{assetsFile, tokensFile, filesFile} { // reads each store whole, to find damage
		if err := stopped(temporary, name)(func(int64) (io.Writer, error) { return io.Discard, nil }); err != nil {
			return fmt.Errorf("read %s: %s: %w", file, name, err)
		}
	}
	if bucket != "" {
		if err := setPlace(temporary, bucket); err != nil {
			return err
		}
	}
	if err := copyRemovals(ctx, former, temporary); err != nil {
		return fmt.Errorf("copy the removals of files: %w", err)
	}
	if err := copyEndings(ctx, former, temporary); err != nil {
		return fmt.Errorf("copy the endings of keys: %w", err)
	}
	if err := durable.SyncDirectory(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil { // replaces an empty directory
		return err
	}
	return durable.SyncDirectory(filepath.Dir(dir))
}

// copyRemovals copies the removals of files from the data directory `from` to the data directory `to`. If `to` has
// no files, it does nothing.
func copyRemovals(ctx context.Context, from, to string) error {
	if from == "" {
		return nil
	}
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("--former: %w", err)
	}
	former, err := placeOf(from)
	if err != nil {
		return err
	}
	here, err := placeOf(to)
	if err != nil || here == former {
		return err
	}
	_, err = filesvc.CopyRemovals(ctx, former, here)
	return err
}

// copyEndings copies what ended keys after the backup from the data directory `from`. Without such a directory, it lets
// the keys in the data directory `to` go on, although both of its stores went back.
func copyEndings(ctx context.Context, from, to string) error {
	there := false
	if from != "" {
		var err error
		if there, err = has(from, assetsFile); err != nil {
			return err
		}
	}
	if !there {
		return authsvc.Restored(ctx, filepath.Join(to, tokensFile))
	}
	return assetsvc.CopyEndings(ctx, filepath.Join(from, assetsFile), filepath.Join(to, assetsFile))
}

// extract writes the files of a backup into dir. It refuses an archive that lacks a required file or has an
// unexpected one.
func extract(r io.Reader, dir string) error {
	t := tar.NewReader(r)
	missing := slices.Clone(kept)
	for len(missing) > 0 {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it is no backup of the registry, or it is cut off: %s is missing: name another", missing[0])
		}
		if err != nil {
			return fmt.Errorf("it is no backup of the registry, or it is damaged, so name another one: %w", err)
		}
		if missing[0] == serverIDFile && header.Name != serverIDFile {
			missing = missing[1:]
		}
		if header.Name != missing[0] {
			return fmt.Errorf("it is no backup of the registry: it holds %q, not %s: name another", header.Name, missing[0])
		}
		missing = missing[1:]
		if err := extractOne(t, filepath.Join(dir, header.Name)); err != nil {
			return err
		}
	}
	return extractRest(t, dir)
}

// extractRest writes the bytes of files into dir, and the ACME files that stand behind them if the backup has them.
func extractRest(t *tar.Reader, dir string) error {
	form, made := blobForm, map[string]bool{}
	for {
		header, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && form == blobForm:
			return fmt.Errorf("the backup is cut off: %s is missing: name another one", endOfFiles)
		case errors.Is(err, io.EOF):
			for folder := range made {
				if err := durable.SyncDirectory(folder); err != nil {
					return err
				}
			}
			return nil
		case err != nil:
			return err
		case header.Name == endOfFiles && form == blobForm:
			form = certificateForm
			continue
		case !form.MatchString(header.Name):
			return fmt.Errorf("it is no backup of the registry: it holds %q behind its stores: name another", header.Name)
		}
		path := filepath.Join(dir, header.Name)
		if folder := filepath.Dir(path); !made[folder] {
			if err := makeDirectory(folder); err != nil {
				return err
			}
			made[folder] = true
		}
		if err := extractOne(t, path); err != nil {
			return err
		}
	}
}

// extractOne writes a new file.
func extractOne(from io.Reader, path string) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return errors.Join(err, w.Sync(), w.Close())
}
