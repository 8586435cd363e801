// Package replica keeps a copy of a registry in a directory.
//
// # Data
//
// The directory has one bbolt file, copy.db. Its buckets:
//
//   - assets: the key is the id, 16 bytes. The value has the position of the newest change,
//     one byte for the mode, and the entry of the feed as the registry writes it with
//     opt_fields=* and mode=_all_.
//   - feed, feed-test: the key is the position, 8 bytes, and the value is the id. The bucket
//     feed-test has the assets in test mode, and the bucket feed has all others.
//   - segments: the hashes of the snapshot files that are already in the copy. The bucket is
//     empty again once the copy has all files of the snapshot.
//   - state: one State as JSON.
//
// # Invariants
//
//   - K1, agreement. Each asset has exactly one entry in its feed, at its position, and the
//     feeds have no other entries. Check verifies this.
//   - K2, no loss. If State.Loading is false, the copy has each asset whose newest
//     change is at or before State.Position, in that state or a later one.
//   - K3, forward. An asset is never replaced by an earlier state.
//   - K4, one set of data. All entries come from the data that State.Position.ServerID
//     names.
//   - K5, atomic. Entries, the hashes of the files that they come from, and the
//     position change in one transaction. So the process may be killed at any moment.
//   - K6, bounded. Memory does not grow with the number of assets.
//
// K2 also holds if the files come from several snapshots. Once the copy has all files of one
// snapshot, it has all assets of this snapshot. The position of the snapshot then becomes the
// position of the copy (docs/snapshot.md, S1). If two snapshots share a file, the file is read
// only once.
//
// # Failures
//
//   - The process is killed, the registry is down, or the disk is full: another run continues.
//     It does not read again the snapshot files that are already in the copy.
//   - A file of the snapshot is gone: the newest snapshot is used instead.
//   - A file of the snapshot is damaged: nothing from this file is stored (client.ErrSegment).
//   - The registry has other data: nothing is stored, and the error is ErrOtherData.
//   - The copy is damaged: boltfile refuses it, and Check finds entries that disagree.
package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"asset-registry.example/client"

	"asset-registry/shared/boltfile"
	"asset-registry/shared/errs"
)

// FileName is the name of a copy's file in its directory.
const FileName = "copy.db"

const format = "registry-copy-2"

var (
	assetsBucket   = []byte("assets")
	feedBucket     = []byte("feed")
	testBucket     = []byte("feed-test")
	segmentsBucket = []byte("segments")
	stateBucket    = []byte("state")
	stateKey       = []byte("state")
)

// Errors of a copy.
var (
	ErrNotStored = errors.New("the copy cannot be stored")
	ErrOtherData = errors.New("the registry has other data than the copy")
	ErrEntry     = errors.New("the registry sent an entry that is not one of its feed")
	ErrAnswer    = errors.New("the answer is not one of a registry")
	ErrUnsound   = errors.New("the copy contradicts itself")
	ErrNoCopy    = errors.New("the directory has no copy")
)

// State says how complete and how new a copy is.
type State struct {
	Origin   string          `json:"origin"`   // address of the registry
	Position client.Position `json:"position"` // position in the feed; the copy has everything up to it
	Loading  bool            `json:"loading"`  // some files of a snapshot are missing
	Complete bool            `json:"complete"` // the copy has once reached the end of the feed
}

// Replica is an open copy. It is safe for concurrent use, and only one process may have
// it open.
type Replica struct {
	file  *boltfile.File
	state State // the stored state; only Apply changes it
}

// Open opens the copy in a directory. It creates the directory and the copy if they do not exist.
func Open(dir string) (*Replica, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the copy: %w", err)
	}
	r := &Replica{}
	var err error
	r.file, err = boltfile.Open(filepath.Join(dir, FileName), boltfile.Options{
		Format: format, Buckets: [][]byte{assetsBucket, feedBucket, testBucket, segmentsBucket, stateBucket},
	})
	if err != nil {
		return nil, fmt.Errorf("open the copy: %w", err)
	}
	if r.state, err = boltfile.Read(context.Background(), r.file, stateOf); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return r, nil
}

// OpenExisting opens a copy. It returns ErrNoCopy if the directory has no copy.
func OpenExisting(dir string) (*Replica, error) {
	if _, err := os.Stat(filepath.Join(dir, FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoCopy, dir)
	}
	return Open(dir)
}

// Remove removes the copy in a directory. The copy must not be open in any process.
func Remove(dir string) error {
	err := os.Remove(filepath.Join(dir, FileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the copy: %w", err)
	}
	return nil
}

// Close closes the copy.
func (r *Replica) Close() error { return r.file.Close() }

// State returns the state of the copy. No other goroutine may change the copy at the same time.
func (r *Replica) State() State { return r.state }

func stateOf(tx *bbolt.Tx) (s State, err error) {
	text := tx.Bucket(stateBucket).Get(stateKey)
	if text == nil {
		return s, nil
	}
	err = json.Unmarshal(text, &s)
	return s, errs.In(err, "%w: its state", ErrUnsound)
}

// Change is a change of a copy that is applied completely or not at all.
type Change struct {
	Entries  []Entry
	Segments []string // hashes of the files that the entries come from
	State    State
}

// Apply applies a change.
func (r *Replica) Apply(c Change) error {
	var sound error
	err := r.file.Update(func(tx *bbolt.Tx) error {
		sound = c.put(tx)
		return sound
	})
	if sound != nil {
		return sound
	}
	if err != nil {
		return notStored(err)
	}
	r.state = c.State
	return nil
}

// notStored returns ErrNotStored, with err as the reason.
func notStored(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		err = number // without boltfile's text, which is for clients of a registry
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}

func (c Change) put(tx *bbolt.Tx) error {
	to := bucketsOf(tx)
	if c.State.Loading {
		to.assets.FillPercent = 0.95 // pages can be full, because entries come in the order of ids
	}
	for _, e := range c.Entries {
		if err := to.put(e); err != nil {
			return err
		}
	}
	for _, hash := range c.Segments {
		if err := tx.Bucket(segmentsBucket).Put([]byte(hash), nil); err != nil {
			return err
		}
	}
	if !c.State.Loading {
		if err := clearBucket(tx, segmentsBucket); err != nil {
			return err
		}
	}
	text, err := json.Marshal(c.State)
	if err != nil {
		return err
	}
	return tx.Bucket(stateBucket).Put(stateKey, text)
}

// clearBucket removes all keys of a bucket.
func clearBucket(tx *bbolt.Tx, name []byte) error {
	if first, _ := tx.Bucket(name).Cursor().First(); first == nil {
		return nil
	}
	if err := tx.DeleteBucket(name); err != nil {
		return err
	}
	_, err := tx.CreateBucket(name)
	return err
}

// Loaded returns the hashes of the snapshot files that are already in the copy.
func (r *Replica) Loaded() (map[string]bool, error) {
	found := map[string]bool{}
	err := r.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(segmentsBucket).ForEach(func(hash, _ []byte) error {
			found[string(hash)] = true
			return nil
		})
	})
	return found, err
}
