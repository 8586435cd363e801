package replica

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/shared/boltfile"
)

// FeedQuery says which part of a copy's feed to read.
type FeedQuery struct {
	After      int64 // entries start after this position, or before it if Descending; 0: from the start
	Descending bool
	Real, Test bool // include real assets, and include assets in test mode
	Texts      bool // Entry.JSON is set
}

// Feed calls the function `visit` with entries, in the order of their positions, until visit returns false. It reads
// the copy as it is at one moment. At that moment, the copy has every entry up to the position that Feed returns. The
// copy may also have some later entries from files of a snapshot. Feed skips these entries. The JSON of an entry is
// valid only during the call.
func (r *Replica) Feed(q FeedQuery, visit func(Entry) bool) (upto int64, err error) {
	err = r.file.View(func(tx *bbolt.Tx) error {
		state, err := stateOf(tx)
		if err != nil {
			return err
		}
		if upto, err = state.Upto(); err != nil {
			return err
		}
		b := bucketsOf(tx)
		for next := q.over(b); ; {
			at := next()
			if at.Position == nil || bytes.Compare(at.Position, positionKey(upto)) > 0 && !q.Descending {
				return nil
			}
			if bytes.Compare(at.Position, positionKey(upto)) > 0 {
				continue
			}
			e, err := entryAt(at, b, q.Texts)
			if err != nil {
				return err
			}
			if !visit(e) {
				return nil
			}
		}
	})
	return upto, err
}

// Upto returns the position of a state, in microseconds since the epoch. It is 0 before the first change.
func (s State) Upto() (int64, error) {
	if s.Position.Offset == "" {
		return 0, nil
	}
	at, err := s.Position.Offset.Time()
	if err != nil {
		return 0, fmt.Errorf("%w: its position: %w", ErrUnsound, err)
	}
	return at.UnixMicro(), nil
}

// entryAt returns the entry at a place. The entry has its JSON only if the argument `text` is true.
func entryAt(p boltfile.Place, b buckets, text bool) (Entry, error) {
	if !text {
		e, err := valueOf(p.ID, append(bytes.Clone(p.Position), isReal))
		e.Test = p.Test
		return e, err
	}
	return valueOf(p.ID, b.assets.Get(p.ID))
}

// The method `over` returns a function. Each call of the function returns the next place for the query q, in the order
// of the query.
func (q FeedQuery) over(b buckets) (next func() boltfile.Place) {
	real, test := boltfile.Feed{Bucket: b.real}, boltfile.Feed{Bucket: b.test, Test: true}
	switch {
	case q.Real && q.Test:
		return boltfile.Places(q.After, q.Descending, real, test)
	case q.Test:
		return boltfile.Places(q.After, q.Descending, test)
	default:
		return boltfile.Places(q.After, q.Descending, real)
	}
}

// From calls the function `visit` with entries in the order of ids, beginning with the given id, until visit
// returns false. A malformed id counts as the lowest one. The JSON of an entry is valid only during the call.
func (r *Replica) From(id string, visit func(Entry) bool) error {
	from, err := hex.DecodeString(id)
	if err != nil {
		from = nil
	}
	return r.file.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(assetsBucket).Cursor()
		for key, value := cursor.Seek(from); key != nil; key, value = cursor.Next() {
			e, err := valueOf(key, value)
			if err != nil {
				return err
			}
			if !visit(e) {
				return nil
			}
		}
		return nil
	})
}
