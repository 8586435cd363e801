package filesvc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/s3store"
	"asset-registry/shared/errs"
	"asset-registry/shared/keyring"
)

// IsBucket reports whether a place of bytes is the address of a bucket, instead of a directory.
func IsBucket(place string) bool { return s3store.IsAddress(place) }

// CheckPlace returns an error if a place of bytes is neither a directory nor the address of a bucket. It opens
// nothing.
func CheckPlace(place string) error {
	if place == "" {
		return errors.New("the directory of the files has no name")
	}
	if !IsBucket(place) {
		return nil
	}
	_, err := openBucket(place, "", DefaultTimeout)
	return err
}

func openBucket(place, spool string, timeout time.Duration) (file.Bytes, error) {
	a, err := s3store.Parse(place)
	if err != nil {
		return nil, err
	}
	return s3store.Open(a, spool, timeout)
}

// openBytes opens the store of bytes at a place. It creates a directory that does not exist. The argument `spool`
// is the same as Config.Spool.
func openBytes(place, spool string, timeout time.Duration) (file.Bytes, error) {
	if IsBucket(place) {
		return openBucket(place, spool, timeout)
	}
	return dirstore.Open(place)
}

// existingBytes returns the store of bytes at a place. It creates nothing.
func existingBytes(place string, timeout time.Duration) (file.Bytes, error) {
	if IsBucket(place) {
		return openBucket(place, "", timeout)
	}
	return dirstore.Existing(place), nil
}

// Copying has the store and the two places for CopyBytes.
type Copying struct {
	Store    string       // store of the metadata, as in Config.Store
	Secrets  keyring.Ring // secrets of the services; needed if the metadata are in a file
	From, To string       // a directory, or the address of a bucket
}

// Copied counts what CopyBytes did.
type Copied struct {
	Files, Present, Removals int   // files copied; files that were there before; removals copied
	Bytes                    int64 // bytes of the copied files
}

// copiesAtOnce is how many files are copied at the same time.
const copiesAtOnce = 8

// CopyBytes copies the bytes of all files, and the removals, from one place to another. It compares each file
// with its SHA-256, and changes nothing at the first place. After an interruption it may be called again: it
// keeps files that are already there with the right length. No service may write to the store meanwhile.
func CopyBytes(ctx context.Context, c Copying) (done Copied, err error) {
	if err := errors.Join(CheckPlace(c.From), CheckPlace(c.To)); err != nil {
		return done, err
	}
	if c.From == c.To {
		return done, errors.New("the files are there already")
	}
	files, err := openStore(ctx, c.Store, c.Secrets)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	from, err := existingBytes(c.From, moveTimeout)
	if err != nil {
		return done, err
	}
	to, err := openBytes(c.To, "", moveTimeout)
	if err != nil {
		return done, err
	}
	if err := to.Tidy(ctx, time.Now()); err != nil { // otherwise Put fails for a file that a killed run left unfinished
		return done, err
	}
	removed, err := from.Removals(ctx) // the removals come first, so that a copy that fails has them, too
	if err != nil {
		return done, err
	}
	if done.Removals, err = noteRemovals(ctx, to, removed); err != nil {
		return done, err
	}
	for after := ""; ; {
		page, err := files.Page(ctx, after, movePage)
		if err != nil || len(page) == 0 {
			return done, err
		}
		if err := copyPage(ctx, from, to, page, &done); err != nil {
			return done, err
		}
		after = page[len(page)-1].ID
	}
}

// copyPage copies the bytes of a page of files, several at the same time.
func copyPage(ctx context.Context, from, to file.Bytes, page []file.File, done *Copied) error {
	var copied, present, bytes atomic.Int64
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for _, f := range page {
		if f.State != file.Stored {
			continue
		}
		group.Go(func() error {
			if err := copyPictures(within, from, to, f); err != nil {
				return err
			}
			if checkBytes(within, to, f, false) == nil {
				present.Add(1)
				return nil
			}
			if err := copyBlob(within, from, to, f); err != nil {
				return err
			}
			copied.Add(1)
			bytes.Add(f.Size)
			return nil
		})
	}
	err := group.Wait()
	done.Files += int(copied.Load())
	done.Present += int(present.Load())
	done.Bytes += bytes.Load()
	return err
}

// copyPictures copies those pictures of a file that the second place does not have yet.
func copyPictures(ctx context.Context, from, to file.Bytes, f file.File) error {
	for _, name := range []string{f.Small, f.Large} {
		if name == "" {
			continue
		}
		if there, err := to.Open(ctx, name); err == nil {
			if err := there.Close(); err != nil {
				return err
			}
			continue
		}
		blob, err := from.Open(ctx, name)
		if errors.Is(err, file.ErrNotFound) {
			continue // a picture may be missing
		}
		if err == nil {
			err = errors.Join(to.Put(ctx, name, blob), blob.Close())
		}
		if err != nil {
			return fmt.Errorf("copy a picture of file %s of %s: %w", f.ID, f.Broker, err)
		}
	}
	return nil
}

// copyBlob copies the bytes of a file. If they do not match the metadata, it returns an error and stores
// nothing.
func copyBlob(ctx context.Context, from, to file.Bytes, f file.File) error {
	blob, err := openBlob(ctx, from, f)
	if err != nil {
		return err
	}
	defer blob.Close()
	return errs.In(to.Put(ctx, f.Blob, file.Verified(blob, f)), "copy file %s of %s", f.ID, f.Broker)
}
