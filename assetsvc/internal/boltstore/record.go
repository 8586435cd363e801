package boltstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// A stored change has these parts (numbers are big-endian):
//
//   - the flags (1 byte), the asset's id (16), the revision (8), the position that
//     the change was made from (8) and the length of the Change (4);
//   - the Change;
//   - a checksum (4 bytes) of all the parts above and the position of the change;
//   - if the change has the complete asset (a Whole), the Whole, and a checksum (4 bytes) of the
//     Whole and the position.
//
// So a change can be read without its Whole, which may be as large as an asset. The key of a change is its
// position.
const changeHeader = 1 + idSize + 8 + 8 + 4

// Bits of the flags of a change.
const (
	changeListed = 1 << iota
	changeTest
)

func encodeChange(id []byte, r registry.Revision) []byte {
	flags := byte(0)
	if r.Listed {
		flags |= changeListed
	}
	if r.Test {
		flags |= changeTest
	}
	value := make([]byte, 0, changeHeader+len(r.Change)+sumSize+len(r.Whole)+sumSize)
	value = append(append(value, flags), id...)
	value = binary.BigEndian.AppendUint64(value, uint64(r.Revision))
	value = binary.BigEndian.AppendUint64(value, uint64(r.Before))
	value = binary.BigEndian.AppendUint32(value, uint32(len(r.Change)))
	value = append(value, r.Change...)
	value = binary.BigEndian.AppendUint32(value, changeSum(r.Position, value))
	if len(r.Whole) == 0 {
		return value
	}
	value = append(value, r.Whole...)
	return binary.BigEndian.AppendUint32(value, changeSum(r.Position, r.Whole))
}

func changeSum(position int64, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(value, castagnoli), castagnoli, positionKey(position))
}

// hasSum reports whether value has, at the index end, the checksum of all bytes in front of this index.
func hasSum(position int64, value []byte, end int) bool {
	return end >= 0 && end+sumSize <= len(value) &&
		binary.BigEndian.Uint32(value[end:]) == changeSum(position, value[:end])
}

// decodeChange returns a copy of a stored change. If whole is false, the copy has no Whole, and the stored Whole
// is not read.
func decodeChange(key, value []byte, whole bool) (registry.Revision, error) {
	if len(key) != positionSize || len(value) < changeHeader {
		return registry.Revision{}, errCorrupt
	}
	position := positionOf(key)
	end := changeHeader + int(binary.BigEndian.Uint32(value[changeHeader-4:]))
	if !hasSum(position, value, end) {
		return registry.Revision{}, errCorrupt
	}
	r := registry.Revision{
		ID:       hex.EncodeToString(value[1 : 1+idSize]),
		Position: position,
		Revision: positionOf(value[1+idSize:]),
		Before:   positionOf(value[1+idSize+8:]),
		Listed:   value[0]&changeListed != 0,
		Test:     value[0]&changeTest != 0,
		Change:   bytes.Clone(value[changeHeader:end]),
	}
	if rest := value[end+sumSize:]; whole && len(rest) > 0 {
		if !hasSum(position, rest, len(rest)-sumSize) {
			return registry.Revision{}, errCorrupt
		}
		r.Whole = bytes.Clone(rest[:len(rest)-sumSize])
	}
	return r, nil
}

// note adds a change to the record. r is the asset after the change; the argument `before` is the position that
// the asset had until then.
func (t *transaction) note(id []byte, r registry.Record, before int64) error {
	value := encodeChange(id, registry.Revision{
		Position: r.Position, Revision: r.Revision, Before: before,
		Listed: r.Listed, Test: r.Test, Change: r.Change, Whole: r.Whole,
	})
	if err := t.changes.Put(positionKey(r.Position), value); err != nil {
		return err
	}
	return t.history.Put(historyKey(id, r.Position), nil)
}

// historyKey returns the key of a change in the history of its asset. The keys of one asset stand together, in
// the order of positions.
func historyKey(id []byte, position int64) []byte {
	return append(bytes.Clone(id), positionKey(position)...)
}

// Log returns changes of an asset, the newest first, or registry.ErrNotFound.
func (s *Store) Log(ctx context.Context, id string, q registry.LogQuery) (log []registry.Revision, err error) {
	key, ok := registry.ParseID(id)
	if !ok {
		return nil, registry.ErrNotFound
	}
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		value := tx.Bucket(assetBucket).Get(key)
		if value == nil {
			return registry.ErrNotFound
		}
		if h, err := decodeHeader(value); err != nil || h.removed {
			return cmp.Or(err, registry.ErrRemoved)
		}
		changes := tx.Bucket(changeBucket)
		cursor := tx.Bucket(historyBucket).Cursor()
		for at := seekBefore(cursor, key, q.Before); bytes.HasPrefix(at, key) && len(log) < q.Limit; {
			r, err := decodeChange(at[idSize:], changes.Get(at[idSize:]), q.Whole)
			if err != nil {
				return fmt.Errorf("change of asset %s at %d: %w", id, positionOf(at[idSize:]), err)
			}
			log = append(log, r)
			at, _ = cursor.Prev()
		}
		return nil
	})
	return log, err
}

// seekBefore moves the cursor to the last key in an asset's history whose position is less than the argument
// `before`, and returns the key. If `before` is 0, it moves to the last key of the history. If there is no such
// key, the returned key belongs to another asset.
func seekBefore(cursor *bbolt.Cursor, id []byte, before int64) []byte {
	end := historyKey(id, before)
	if before == 0 {
		end = append(bytes.Clone(id), bytes.Repeat([]byte{0xff}, positionSize)...)
	}
	at, _ := cursor.Seek(end)
	if at == nil {
		at, _ = cursor.Last()
	}
	if bytes.Compare(at, end) >= 0 {
		at, _ = cursor.Prev()
	}
	return at
}

// Changes returns changes of all assets, in the order of their positions.
func (s *Store) Changes(ctx context.Context, q registry.ChangesQuery) (page registry.ChangesPage, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		if last := tx.Bucket(stateBucket).Get(lastKey); last != nil {
			page.Upto = positionOf(last)
		}
		size := 0
		cursor := tx.Bucket(changeBucket).Cursor()
		for key, value := cursor.Seek(positionKey(q.After + 1)); key != nil; key, value = cursor.Next() {
			size += len(value)
			if len(page.Changes) == q.Limit || len(page.Changes) > 0 && size > q.Bytes {
				page.Upto, page.More = page.Changes[len(page.Changes)-1].Position, true
				return nil
			}
			r, err := decodeChange(key, value, q.Whole)
			if err != nil {
				return fmt.Errorf("change at %d: %w", positionOf(key), err)
			}
			page.Changes = append(page.Changes, r)
		}
		return nil
	})
	return page, err
}

func (s *Store) Rewrite(ctx context.Context, old registry.Revision, change, whole []byte) (done bool, err error) {
	key, ok := registry.ParseID(old.ID)
	if err := ctx.Err(); err != nil || !ok {
		return false, err
	}
	err = s.file.Update(func(tx *bbolt.Tx) error {
		changes, at := tx.Bucket(changeBucket), positionKey(old.Position)
		value := changes.Get(at)
		if value == nil {
			return nil
		}
		r, err := decodeChange(at, value, false)
		if err != nil {
			return fmt.Errorf("change at %d: %w", old.Position, err)
		}
		if done = r.ID == old.ID && bytes.Equal(r.Change, old.Change); !done {
			return nil
		}
		r.Change, r.Whole = change, whole
		return changes.Put(at, encodeChange(key, r))
	})
	return done && err == nil, err
}
