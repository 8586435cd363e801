// Package boltstore keeps the metadata of files in a bbolt file (file.Files, file.Readings).
package boltstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/boltfile"
)

// Each format names what the file contains, and how it is encoded.
const (
	format       = "asset-registry files 1"
	copiesFormat = "asset-registry copies of files 1"
)

const changeWithin = 10 * time.Second // time for one change; an upload has no deadline of its own

var (
	filesBucket = []byte("files") // id -> checksum (4 bytes) and JSON
	usageBucket = []byte("usage") // broker -> waiting files and bytes (8 bytes each)
	stateBucket = []byte("state")
	awaitBucket = []byte("await") // id of a file, "/" and id of an asset -> empty value
	goneBucket  = []byte("gone")  // SHA-256 of a removed file -> empty value
	ownBucket   = []byte("own")   // broker, a zero byte and id of a file -> empty value
)

// Keys in stateBucket.
var readingKey = []byte("reading") // JSON

// Store keeps files in one bbolt file.
type Store struct{ file *boltfile.File }

// Open opens the file at the given path, and creates it if it does not exist. The file must belong to one of the
// secrets.
func Open(path string, secrets [][]byte, log *slog.Logger) (*Store, error) {
	return open(path, options(secrets, log))
}

func open(path string, o boltfile.Options) (*Store, error) {
	f, err := boltfile.Open(path, o)
	if err != nil {
		return nil, err
	}
	if err := f.Update(listOwn); err != nil {
		return nil, errors.Join(fmt.Errorf("list files by their brokers: %w", err), f.Close())
	}
	return &Store{f}, nil
}

// listOwn makes ownBucket again unless it has exactly the files. A former version of the program, which an operator may
// have gone back to, knows no such bucket.
func listOwn(tx *bbolt.Tx) error {
	var keys [][]byte
	isWhole := true
	err := tx.Bucket(filesBucket).ForEach(func(id, value []byte) error {
		if f, err := decode(id, value); err == nil { // each read of a damaged file reports it
			keys = append(keys, ownKey(f.Broker, f.ID))
			isWhole = isWhole && tx.Bucket(ownBucket).Get(keys[len(keys)-1]) != nil
		}
		return nil
	})
	if err != nil || isWhole && tx.Bucket(ownBucket).Stats().KeyN == len(keys) {
		return err
	}
	if err := tx.DeleteBucket(ownBucket); err != nil {
		return err
	}
	own, err := tx.CreateBucket(ownBucket)
	for i := 0; err == nil && i < len(keys); i++ {
		err = own.Put(keys[i], []byte{})
	}
	return err
}

func ownKey(broker, id string) []byte { return []byte(broker + "\x00" + id) }

// OpenCopies does what Open does, for a file with the copies of another registry's files. Such a file belongs to no
// secret. Open refuses a file of OpenCopies, and OpenCopies refuses a file of Open, because a mirror removes files
// that its registry does not have.
func OpenCopies(path string) (*Store, error) {
	o := options(nil, nil)
	o.Format = copiesFormat
	return open(path, o)
}

func options(secrets [][]byte, log *slog.Logger) boltfile.Options {
	return boltfile.Options{
		Format: format, Buckets: [][]byte{filesBucket, usageBucket, stateBucket, awaitBucket, goneBucket},
		Added: [][]byte{ownBucket}, Secrets: secrets, Log: log,
	}
}

// Snapshot writes a copy of the file at one moment (boltfile.File.Snapshot).
func (s *Store) Snapshot(to func(size int64) (io.Writer, error)) error { return s.file.Snapshot(to) }

// Ready returns nil if the file can be read.
func (s *Store) Ready(ctx context.Context) error {
	_, err := s.Reading(ctx)
	return err
}

// Close closes the file.
func (s *Store) Close() error { return s.file.Close() }

func encode(f file.File) ([]byte, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode file %s: %w", f.ID, err)
	}
	return append(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(text)), text...), nil
}

func decode(id, value []byte) (f file.File, err error) {
	if len(value) < crc32.Size || binary.BigEndian.Uint32(value) != crc32.ChecksumIEEE(value[crc32.Size:]) {
		return f, fmt.Errorf("file %q: %w", id, boltfile.ErrDamaged)
	}
	if err := json.Unmarshal(value[crc32.Size:], &f); err != nil || f.ID != string(id) {
		return f, fmt.Errorf("file %q: %w", id, boltfile.ErrDamaged)
	}
	return f, nil
}

// get returns a file, or file.ErrNotFound.
func get(tx *bbolt.Tx, id string) (file.File, error) {
	value := tx.Bucket(filesBucket).Get([]byte(id))
	if value == nil {
		return file.File{}, file.ErrNotFound
	}
	return decode([]byte(id), value)
}

// put replaces the stored file `old` by the file `f`, and updates the counts of their brokers. A zero value of
// `old` or `f` stands for no file.
func put(tx *bbolt.Tx, old, f file.File) error {
	if f.ID == "" {
		if err := errors.Join(tx.Bucket(filesBucket).Delete([]byte(old.ID)),
			tx.Bucket(ownBucket).Delete(ownKey(old.Broker, old.ID))); err != nil {
			return err
		}
	} else {
		value, err := encode(f)
		if err != nil {
			return err
		}
		if err := tx.Bucket(filesBucket).Put([]byte(f.ID), value); err != nil {
			return err
		}
		if old.ID == "" {
			if err := tx.Bucket(ownBucket).Put(ownKey(f.Broker, f.ID), []byte{}); err != nil {
				return err
			}
		}
	}
	if f.State == file.Removed && f.SHA256 != "" {
		if err := tx.Bucket(goneBucket).Put([]byte(f.SHA256), []byte{}); err != nil {
			return err
		}
	}
	return errors.Join(count(tx, old, -1), count(tx, f, 1))
}

// count adds a file to the counts of its broker if the number `by` is 1, and subtracts it if the number is -1.
func count(tx *bbolt.Tx, f file.File, by int64) error {
	if f.ID == "" {
		return nil
	}
	has := usage(tx, f.Broker).Add(by, f.Usage())
	value := binary.BigEndian.AppendUint64(nil, uint64(has.Waiting))
	return tx.Bucket(usageBucket).Put(usageKey(f.Broker), binary.BigEndian.AppendUint64(value, uint64(has.Bytes)))
}

// usageKey returns the key of a broker. It is never empty, because bbolt refuses empty keys.
func usageKey(broker string) []byte { return []byte("/" + broker) }

func usage(tx *bbolt.Tx, broker string) (u file.Usage) {
	if value := tx.Bucket(usageBucket).Get(usageKey(broker)); len(value) == 16 {
		u.Waiting = int64(binary.BigEndian.Uint64(value))
		u.Bytes = int64(binary.BigEndian.Uint64(value[8:]))
	}
	return u
}

func (s *Store) Create(ctx context.Context, f file.File) error {
	return s.change(ctx, func(tx *bbolt.Tx) error {
		if tx.Bucket(filesBucket).Get([]byte(f.ID)) != nil {
			return file.ErrExists
		}
		return put(tx, file.File{}, f)
	})
}

func (s *Store) Get(ctx context.Context, id string) (file.File, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (file.File, error) { return get(tx, id) })
}

func (s *Store) Replace(ctx context.Context, f file.File) error {
	return s.guarded(ctx, f.ID, f.Revision-1, f)
}

func (s *Store) Delete(ctx context.Context, f file.File) error {
	return s.guarded(ctx, f.ID, f.Revision, file.File{})
}

// guarded replaces a file by the file `next`, if the stored file has the given revision.
func (s *Store) guarded(ctx context.Context, id string, revision int64, next file.File) error {
	return s.change(ctx, func(tx *bbolt.Tx) error {
		old, err := get(tx, id)
		if errors.Is(err, file.ErrNotFound) || err == nil && old.Revision != revision {
			return file.ErrStale
		}
		if err != nil {
			return err
		}
		return put(tx, old, next)
	})
}

func (s *Store) change(ctx context.Context, change func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// A client that leaves ends no change, so that Create leaves no file of which its caller does not know.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWithin)
	defer cancel()
	return s.file.Batch(ctx, change)
}

func (s *Store) Page(ctx context.Context, after string, limit int) ([]file.File, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) ([]file.File, error) {
		return boltfile.Page(tx.Bucket(filesBucket), nil, after, limit, decode)
	})
}

func (s *Store) Own(ctx context.Context, broker, after string, limit int) ([]file.File, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) ([]file.File, error) {
		find := func(id, _ []byte) (file.File, error) { return get(tx, string(id)) }
		return boltfile.Page(tx.Bucket(ownBucket), ownKey(broker, ""), after, limit, find)
	})
}

// Recount implements file.Files. A transaction changes a file and its count, so there is nothing to do.
func (s *Store) Recount(context.Context) error { return nil }

func (s *Store) Usage(ctx context.Context, broker string) (file.Usage, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (file.Usage, error) { return usage(tx, broker), nil })
}

func (s *Store) IsRemoved(ctx context.Context, sha256 string) (is bool, err error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (bool, error) {
		return tx.Bucket(goneBucket).Get([]byte(sha256)) != nil, nil
	})
}

func (s *Store) Reading(ctx context.Context) (file.Reading, error) {
	return boltfile.Read(ctx, s.file, reading)
}

func reading(tx *bbolt.Tx) (r file.Reading, err error) {
	value := tx.Bucket(stateBucket).Get(readingKey)
	if value == nil {
		return r, nil
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("reading: %w", boltfile.ErrDamaged)
	}
	return r, nil
}

func (s *Store) SetReading(ctx context.Context, r file.Reading) error {
	return s.change(ctx, func(tx *bbolt.Tx) error {
		next, err := reading(tx)
		if err != nil {
			return err
		}
		next.Position = max(next.Position, r.Position)
		if !r.Complete.IsZero() {
			next.Complete, next.Began = r.Complete.UTC().Truncate(time.Millisecond), r.Began
		}
		return putReading(tx, next)
	})
}

func (s *Store) PassHour(ctx context.Context, hours int64) error {
	return s.change(ctx, func(tx *bbolt.Tx) error {
		next, err := reading(tx)
		if err != nil || next.Hours != hours {
			return err
		}
		next.Hours++
		return putReading(tx, next)
	})
}

func putReading(tx *bbolt.Tx, r file.Reading) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return tx.Bucket(stateBucket).Put(readingKey, value)
}

func awaitKey(n file.Naming) []byte { return []byte(n.File + "/" + n.Asset) }

func (s *Store) Await(ctx context.Context, n file.Naming) error {
	return s.change(ctx, func(tx *bbolt.Tx) error { return tx.Bucket(awaitBucket).Put(awaitKey(n), []byte{}) })
}

func (s *Store) Settle(ctx context.Context, n file.Naming) error {
	return s.change(ctx, func(tx *bbolt.Tx) error { return tx.Bucket(awaitBucket).Delete(awaitKey(n)) })
}

func (s *Store) Awaiting(ctx context.Context, after file.Naming, limit int) ([]file.Naming, error) {
	naming := func(key, _ []byte) (file.Naming, error) {
		id, asset, _ := strings.Cut(string(key), "/")
		return file.Naming{File: id, Asset: asset}, nil
	}
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) ([]file.Naming, error) {
		return boltfile.Page(tx.Bucket(awaitBucket), nil, string(awaitKey(after)), limit, naming)
	})
}

var (
	_ file.Files    = (*Store)(nil)
	_ file.Readings = (*Store)(nil)
	_ file.Awaited  = (*Store)(nil)
)

// maxFaults is the largest number of faults that a check reports.
const maxFaults = 100

// Check returns the faults of a store that no process has open. It also calls the function `check` for each file in
// the store, and returns the errors of this function. It does not change the store.
func Check(path string, secrets [][]byte, check func(file.File) error) []error {
	return boltfile.Check(path, options(secrets, nil), func(tx *bbolt.Tx) (faults []error) {
		counted := map[string]file.Usage{}
		cursor := tx.Bucket(filesBucket).Cursor()
		for id, value := cursor.First(); id != nil && len(faults) < maxFaults; id, value = cursor.Next() {
			f, err := decode(id, value)
			if err == nil {
				counted[f.Broker] = counted[f.Broker].Add(1, f.Usage())
				err = check(f)
			}
			if err != nil {
				faults = append(faults, err)
			}
		}
		if len(faults) > 0 {
			return faults
		}
		for broker, want := range counted {
			if got := usage(tx, broker); got != want {
				faults = append(faults, fmt.Errorf("%w: %s has %d waiting files and %d bytes, and %d and %d are counted",
					boltfile.ErrDamaged, broker, want.Waiting, want.Bytes, got.Waiting, got.Bytes))
			}
		}
		return faults
	})
}
