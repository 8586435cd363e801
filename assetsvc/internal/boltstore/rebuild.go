package boltstore

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/translog"
)

// rebuilt is the public log that follows from the record, up to the position of a head.
type rebuilt struct {
	tree   translog.Tree
	signed bool // the newest checkpoint signs this log
}

// rebuild makes the public log again from the record, up to the position of head. It passes every full part to the
// given function, in the order in which the log got the parts.
func rebuild(tx *bbolt.Tx, head publiclog.Head, each func(translog.Part) error) (r rebuilt, err error) {
	checkpoint := translog.Checkpoint{Root: (translog.Tree{}).Root()}
	if head.Checkpoint != nil {
		if checkpoint, err = translog.Unverified(head.Checkpoint); err != nil {
			return r, err
		}
	}
	r.signed = checkpoint.Size == 0
	var leaves [][]byte
	add := func() error {
		tree, full, err := r.tree.Append(leaves)
		if err != nil {
			return err
		}
		r.tree, leaves = tree, leaves[:0]
		r.signed = r.signed || tree.Size() == checkpoint.Size && tree.Root() == checkpoint.Root
		for _, part := range full {
			if err := each(part); err != nil {
				return err
			}
		}
		return nil
	}
	cursor := tx.Bucket(changeBucket).Cursor()
	for key, value := cursor.First(); key != nil && positionOf(key) <= head.Position; key, value = cursor.Next() {
		change, err := decodeChange(key, value, false)
		if err != nil {
			return r, fmt.Errorf("change at %d: %w", positionOf(key), err)
		}
		leaf, _, public, err := change.Leaf()
		if err != nil {
			return r, fmt.Errorf("leaf of the change at %d: %w", positionOf(key), err)
		}
		if !public {
			continue
		}
		leaves = append(leaves, leaf.Encode())
		if n := r.tree.Size() + int64(len(leaves)); n == checkpoint.Size || n%translog.TileWidth == 0 {
			if err := add(); err != nil {
				return r, err
			}
		}
	}
	return r, add()
}

// log checks that the public log follows from the record. If the file has no changes, it is a copy, and has no
// record to compare the log with.
func (c *checker) log() error {
	if key, _ := c.tx.Bucket(changeBucket).Cursor().First(); key == nil {
		return nil
	}
	head, err := decodeHead(c.tx.Bucket(stateBucket).Get(headKey))
	if err != nil {
		return c.fault("the head of the public log cannot be read")
	}
	parts := 0
	made, err := rebuild(c.tx, head, func(part translog.Part) error {
		parts++
		if !bytes.Equal(c.tx.Bucket(tileBucket).Get(tileKey(part.Tile)), part.Data) {
			return c.fault("%s of the public log does not match the record", part.Tile.Path())
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return err
	case err != nil:
		return c.fault("the public log cannot be compared with the record: %v", err)
	case !made.signed:
		return c.fault("the record does not make the signed public log")
	case !sameTree(made.tree, head.Tree):
		return c.fault("the newest leaves of the public log do not match the record")
	}
	return c.entries(tileBucket, parts, "parts of the public log")
}

// sameTree reports whether two trees are equal.
func sameTree(a, b translog.Tree) bool {
	x, err1 := a.MarshalBinary()
	y, err2 := b.MarshalBinary()
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// ErrOtherRecord is returned by RepairLog if the newest checkpoint does not sign the log that RepairLog makes from the
// record.
var ErrOtherRecord = errors.New("the record does not make the signed public log: restore a backup")

// RepairLog repairs the public log in the store at path. It makes the damaged parts again from the record, and returns
// how many it made. If the newest checkpoint does not sign the log that follows from the record, it changes nothing and
// returns ErrOtherRecord. It also returns the errors of boltfile.Open.
func RepairLog(path string, secrets [][]byte) (repaired int, err error) {
	file, err := boltfile.Open(path, fileOptions(secrets, nil))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = file.Update(func(tx *bbolt.Tx) error {
		state, tiles := tx.Bucket(stateBucket), tx.Bucket(tileBucket)
		head, err := decodeHead(state.Get(headKey))
		if err != nil {
			return err
		}
		made, err := rebuild(tx, head, func(part translog.Part) error {
			if key := tileKey(part.Tile); !bytes.Equal(tiles.Get(key), part.Data) {
				repaired++
				return tiles.Put(key, part.Data)
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case !made.signed:
			return ErrOtherRecord
		case sameTree(made.tree, head.Tree):
			return nil
		}
		repaired++
		head.Tree = made.tree
		value, err := encodeHead(head)
		if err != nil {
			return err
		}
		return state.Put(headKey, value)
	})
	if err != nil {
		return 0, err
	}
	return repaired, nil
}
