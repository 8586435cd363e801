// Package boltstore keeps token records in one bbolt file.
package boltstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"asset-registry/authsvc/internal/token"
)

const (
	lockTimeout = time.Second // how long to wait for another process to let go of the file
	batchDelay  = time.Millisecond
)

// format names what the file holds and how.
const format = "asset-registry tokens 1"

var (
	metaBucket   = []byte("meta")
	recordBucket = []byte("records")
	formatKey    = []byte("format")
)

// Store is a token.Store in one file.
type Store struct{ db *bbolt.DB }

// Open opens the file at path, or makes it. It fails when another process has
// it open, and when it is not a file of this store's.
func Open(path string) (*Store, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open tokens: %s is in use by another process", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open tokens: %s: %w", path, err)
	}
	db.MaxBatchDelay = batchDelay
	if err := db.Update(prepare); err != nil {
		return nil, errors.Join(fmt.Errorf("open tokens: %s: %w", path, err), db.Close())
	}
	return &Store{db}, nil
}

func prepare(tx *bbolt.Tx) error {
	if meta := tx.Bucket(metaBucket); meta != nil {
		if found := string(meta.Get(formatKey)); found != format {
			return fmt.Errorf("the file is %q, not %q", found, format)
		}
		return nil
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return errors.New("the file is of another program")
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucket(recordBucket); err != nil {
		return err
	}
	return meta.Put(formatKey, []byte(format))
}

// stored is the file form of a record, whose asset id is its key.
type stored struct {
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Generation   int64  `json:"generation"`
}

// Load returns an asset's record, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (r token.Record, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		r, err = load(tx, assetID)
		return err
	})
	return r, err
}

func load(tx *bbolt.Tx, assetID string) (token.Record, error) {
	text := tx.Bucket(recordBucket).Get([]byte(assetID))
	if text == nil {
		return token.Record{}, token.ErrNotFound
	}
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return token.Record{}, fmt.Errorf("decode tokens of asset %s: %w", assetID, err)
	}
	return token.Record{AssetID: assetID, Broker: s.Broker, OwnerHash: s.OwnerHash, TransferHash: s.TransferHash, Generation: s.Generation}, nil
}

// Save stores r durably unless there is a record of the same or a newer
// generation, and returns the one that stands afterwards.
func (s *Store) Save(ctx context.Context, r token.Record) (token.Record, error) {
	if err := ctx.Err(); err != nil {
		return token.Record{}, err
	}
	text, err := json.Marshal(stored{Broker: r.Broker, OwnerHash: r.OwnerHash, TransferHash: r.TransferHash, Generation: r.Generation})
	if err != nil {
		return token.Record{}, fmt.Errorf("encode tokens of asset %s: %w", r.AssetID, err)
	}
	var standing token.Record
	err = s.db.Batch(func(tx *bbolt.Tx) error {
		var err error
		standing, err = load(tx, r.AssetID)
		if err == nil && standing.Generation >= r.Generation {
			return nil
		}
		if err != nil && !errors.Is(err, token.ErrNotFound) {
			return err
		}
		standing = r
		return tx.Bucket(recordBucket).Put([]byte(r.AssetID), text)
	})
	if err != nil {
		return token.Record{}, fmt.Errorf("save tokens of asset %s: %w", r.AssetID, err)
	}
	return standing, nil
}

// Ready returns nil while the file is open.
func (s *Store) Ready(context.Context) error {
	return s.db.View(func(*bbolt.Tx) error { return nil })
}

// Close waits for writes under way and closes the file.
func (s *Store) Close() error { return s.db.Close() }
