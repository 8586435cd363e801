// Package dirstore keeps the bytes of files in a directory (file.Bytes). Several processes may
// share it.
package dirstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"asset-registry/filesvc/internal/disk"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/durable"
	"asset-registry/shared/filelink"
)

const (
	directoryMode = 0o700
	unfinished    = "new"     // directory of files that are being written
	removals      = "removed" // directory with the metadata of files that were taken down
	shardDigits   = 2         // a blob's directory is named after so many first digits of the blob's name
	shards        = 256
	bufferBytes   = 256 << 10
	syncBytes     = 16 << 20 // bytes of a blob that are synced together
)

// Store keeps each blob in a file that has the name of the blob.
type Store struct {
	dir  string
	disk *disk.Disk
}

// Open opens a directory, and creates it if it does not exist.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, directoryMode); err != nil {
		return nil, err
	}
	names := []string{unfinished, removals}
	for i := range shards {
		names = append(names, shard(i))
	}
	for _, name := range names {
		if err := makeDirectory(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return Existing(dir), errors.Join(durable.SyncDirectory(dir), durable.SyncDirectory(filepath.Dir(dir)))
}

// Existing returns the store in a directory that Open has made before. It creates nothing.
func Existing(dir string) *Store { return &Store{dir, disk.New()} }

func makeDirectory(dir string) error {
	if err := os.Mkdir(dir, directoryMode); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// shard returns the name of a directory of blobs.
func shard(i int) string { return fmt.Sprintf("%02x", i) }

func (s *Store) path(name string) (string, error) {
	if !file.IsBlob(name) {
		return "", fmt.Errorf("%q is no name of bytes", name)
	}
	return filepath.Join(s.dir, name[:shardDigits], name), nil
}

func (s *Store) Put(ctx context.Context, name string, from io.Reader) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	written := filepath.Join(s.dir, unfinished, name)
	w, err := disk.Do(ctx, s.disk, func() (*os.File, error) {
		return os.OpenFile(written, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	})
	if err != nil {
		return err
	}
	// The buffer makes writes large, although one read of a form gives only 4 KiB.
	to := &disk.Writer{Context: ctx, Disk: s.disk, File: w, Sync: syncBytes}
	large := bufio.NewWriterSize(struct{ io.Writer }{to}, bufferBytes)
	if _, err = large.ReadFrom(&ending{ctx, from}); err == nil {
		err = large.Flush()
	}
	if err == nil {
		err = s.disk.Try(ctx, w.Sync)
	}
	switch {
	case errors.Is(err, disk.ErrPending): // another call would hang, too; Tidy removes what is left
		return errors.Join(err, w.Close())
	case err != nil:
		remove := func() error { return errors.Join(w.Close(), os.Remove(written)) }
		return errors.Join(err, s.disk.Try(context.WithoutCancel(ctx), remove))
	}
	return s.disk.Try(ctx, func() error { return errors.Join(w.Close(), durable.Rename(written, path)) })
}

// ending is a reader that ends when a context is done.
type ending struct {
	ctx  context.Context
	from io.Reader
}

func (e *ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.from.Read(p)
}

// Open implements file.Bytes. A connection can send the file without a copy.
func (s *Store) Open(ctx context.Context, name string) (file.Blob, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, err
	}
	f, err := s.disk.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, file.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *Store) Remove(ctx context.Context, name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	return s.disk.Try(ctx, func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return durable.SyncDirectory(filepath.Dir(path))
	})
}

// Names implements file.Bytes. It reads one directory after the other.
func (s *Store) Names(ctx context.Context, after string, limit int) ([]string, error) {
	var found []string
	for i := 0; i < shards && len(found) < limit; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if shard(i) < after[:min(len(after), shardDigits)] {
			continue
		}
		entries, err := s.list(ctx, shard(i))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name := e.Name(); name > after && file.IsBlob(name) && len(found) < limit {
				found = append(found, name)
			}
		}
	}
	return slices.Clip(found), nil
}

// list returns the entries of one of the directories, sorted by name.
func (s *Store) list(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	return disk.Do(ctx, s.disk, func() ([]fs.DirEntry, error) { return os.ReadDir(filepath.Join(s.dir, dir)) })
}

func (s *Store) IsBefore(ctx context.Context, name string, at time.Time) (bool, error) {
	path, err := s.path(name)
	if err != nil {
		return false, err
	}
	info, err := disk.Do(ctx, s.disk, func() (fs.FileInfo, error) { return os.Stat(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.ModTime().Before(at), err
}

func (s *Store) Tidy(ctx context.Context, before time.Time) error {
	entries, err := s.list(ctx, unfinished)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := disk.Do(ctx, s.disk, e.Info)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case strings.HasPrefix(e.Name(), ".") || !info.ModTime().Before(before):
			continue
		}
		left := filepath.Join(s.dir, unfinished, e.Name())
		err = s.disk.Try(ctx, func() error { return os.Remove(left) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Store) NoteRemoval(ctx context.Context, f file.File) error {
	if !filelink.IsID(f.ID) {
		return fmt.Errorf("%q is no id of a file", f.ID)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, removals, f.ID)
	err = s.disk.Try(ctx, func() error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		return durable.Create(path, text)
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s *Store) Removals(ctx context.Context) (found []file.File, err error) {
	ids, err := s.Removed(ctx, "", math.MaxInt)
	if err != nil {
		return nil, err
	}
	return file.ReadRemovals(ids, func(id string) ([]byte, error) {
		path := filepath.Join(s.dir, removals, id)
		return disk.Do(ctx, s.disk, func() ([]byte, error) { return os.ReadFile(path) })
	})
}

func (s *Store) Removed(ctx context.Context, after string, limit int) (ids []string, err error) {
	entries, err := s.list(ctx, removals)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries { // a process that was killed leaves files with other names
		if id := e.Name(); id > after && filelink.IsID(id) && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

var _ file.Bytes = (*Store)(nil)
