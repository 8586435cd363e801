package filesvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/mongostore"
	"asset-registry/filesvc/internal/picture"
	"asset-registry/shared/errs"
	"asset-registry/shared/keyring"
)

// Snapshot writes a copy of the embedded store of metadata at one moment, while the service works. The copy can
// replace the store's file. Snapshot calls the given function with the size in bytes, and writes to the writer
// that the function returns. Snapshot returns an error if the store is in MongoDB.
func (s *Server) Snapshot(to func(size int64) (io.Writer, error)) error {
	store, embedded := s.store.(*boltstore.Store)
	if !embedded {
		return errors.New("the store is not a file: back up MongoDB with its own tools")
	}
	return store.Snapshot(to)
}

// Checked counts what Check has found without a fault.
type Checked struct {
	Files int   // files whose bytes are there
	Bytes int64 // bytes of these files

	Removed int // files that were taken down
}

// Check compares the metadata in the file `db` with the bytes at a place, and returns the faults of both. If
// `whole` is true, it reads all bytes and compares their SHA-256; otherwise it compares only lengths. No service
// may have the file `db` open. Check changes nothing.
func Check(db, place string, secrets [][]byte, whole bool) (c Checked, faults []error) {
	bytes, err := existingBytes(place, moveTimeout)
	if err != nil {
		return c, []error{err}
	}
	faults = boltstore.Check(db, secrets, func(f file.File) error {
		if f.State == file.Removed {
			c.Removed++
		}
		if f.State != file.Stored {
			return nil
		}
		if err := checkBytes(context.Background(), bytes, f, whole); err != nil {
			return err
		}
		c.Files++
		c.Bytes += f.Size
		return nil
	})
	return c, faults
}

// checkBytes returns an error if the bytes of a file are missing, or do not match its metadata.
func checkBytes(ctx context.Context, bytes file.Bytes, f file.File, whole bool) error {
	blob, err := openBlob(ctx, bytes, f)
	if err != nil {
		return err
	}
	defer blob.Close()
	size, err := file.SizeOf(blob)
	switch {
	case err == nil && size != f.Size:
		err = fmt.Errorf("got %d bytes, want %d", size, f.Size)
	case err == nil && whole:
		_, err = io.Copy(io.Discard, file.Verified(blob, f))
	}
	return errs.In(err, "file %s of %s", f.ID, f.Broker)
}

// openBlob opens the bytes of a file.
func openBlob(ctx context.Context, bytes file.Bytes, f file.File) (file.Blob, error) {
	blob, err := bytes.Open(ctx, f.Blob)
	if errors.Is(err, file.ErrNotFound) {
		err = errors.New("its bytes are missing")
	}
	return blob, errs.In(err, "file %s of %s", f.ID, f.Broker)
}

// CopyRemovals copies the notes about removed files from one store of bytes to another, and returns their number.
// Somebody may restore older metadata for the second store. Because of the notes, this cannot bring a removed file
// back.
func CopyRemovals(ctx context.Context, from, to string) (int, error) {
	former, err := existingBytes(from, moveTimeout)
	if err != nil {
		return 0, err
	}
	found, err := former.Removals(ctx)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	store, err := openBytes(to, "", moveTimeout)
	if err != nil {
		return 0, err
	}
	return noteRemovals(ctx, store, found)
}

// noteRemovals notes removed files in a store of bytes, and returns how many it has noted.
func noteRemovals(ctx context.Context, in file.Bytes, removed []file.File) (int, error) {
	for i, f := range removed {
		if err := in.NoteRemoval(ctx, f); err != nil {
			return i, err
		}
	}
	return len(removed), nil
}

// Renew opens the embedded store in the file `db`, and closes it again. After that, the store belongs to the newest
// secret. Renew does nothing if the file does not exist.
func Renew(db string, secrets keyring.Ring, log *slog.Logger) error {
	if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	store, err := boltstore.Open(db, secrets, log)
	if err != nil {
		return err
	}
	return store.Close()
}

// openStore opens the metadata for a command. The argument `address` is the same as Config.Store.
func openStore(ctx context.Context, address string, secrets keyring.Ring) (store, error) {
	c := Config{Store: address, Secrets: secrets, StoreTimeout: moveTimeout, Log: slog.New(slog.DiscardHandler)}
	k, err := c.kind()
	if err != nil {
		return nil, err
	}
	return k.open(ctx, c, func(error) {})
}

// DrawAgain lets the pictures be drawn that were given up, because their drawing was ended too often. With ids, it
// does this for the pictures of these files that are not made. It returns the number of files. A file service draws
// them when it starts. If the metadata are in a file, no service may have the file open.
func DrawAgain(ctx context.Context, address string, secrets keyring.Ring, ids []string) (files int, err error) {
	s, err := openStore(ctx, address, secrets)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return file.NewService(s, s, nil, file.Limits{}, time.Now).DrawAgain(ctx, ids)
}

const (
	moveTimeout = 30 * time.Second // time limit of one operation
	movePage    = 200              // files that are read together
)

// Move copies the metadata from the embedded store in the file `db` to a MongoDB database, and returns the number
// of files. After an interruption it may be called again. No service may have the file `db` open. The bytes stay
// where they are.
func Move(ctx context.Context, db, uri string) (files int, err error) {
	from, err := boltstore.Open(db, nil, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := mongostore.Open(ctx, uri, moveTimeout)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for after := ""; ; {
		page, err := from.Page(ctx, after, movePage)
		if err != nil || len(page) == 0 {
			return files, err
		}
		for _, f := range page {
			if err := copyFile(ctx, to, f); err != nil {
				return files, fmt.Errorf("copy file %s: %w", f.ID, err)
			}
			files++
		}
		after = page[len(page)-1].ID
	}
}

// copyFile creates a file in a store, and reads it back. If the store already has a file with this id, the two
// files must be equal.
func copyFile(ctx context.Context, to file.Files, f file.File) error {
	if err := to.Create(ctx, f); err != nil && !errors.Is(err, file.ErrExists) {
		return err
	}
	stored, err := to.Get(ctx, f.ID)
	if err != nil {
		return err
	}
	if stored != f {
		return errors.New("the database has another file of this id")
	}
	return nil
}

// DrawCommand returns the command for Config.Draw with which a program starts itself as a child. The program's
// main function must first check IsDrawing, and call Draw if it returns true. DrawCommand returns nil if the
// path of the program is not known.
func DrawCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, picture.Argument}
}

// IsDrawing reports whether a program was started with these arguments in order to draw a picture.
func IsDrawing(args []string) bool { return slices.Equal(args, []string{picture.Argument}) }

// Draw draws the picture on standard input, writes the result to standard output, and returns the exit code of
// the process.
func Draw() int { return picture.Child(os.Stdin, os.Stdout) }
