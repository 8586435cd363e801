package replica

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/shared/boltfile"
)

// FeedQuery asks for a part of the feed of a copy.
type FeedQuery struct {
	After      int64 // exclusive; of a descending feed, entries are before it. 0: from the start
	Descending bool
	Real, Test bool // which entries: those in test mode, those not, or both
	Texts      bool // return Entry.JSON too
}

// Feed calls visit for entries in the order of their positions until it returns false. It
// reads the copy as of one moment, at which it had everything up to upto. It leaves out
// entries after upto, which files of a snapshot may have. The JSON of an entry is valid
// during the call only.
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

// Upto returns the position of a state in microseconds since the epoch, 0 before the first
// change.
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

// entryAt returns the entry at a place, with its text if that is wanted.
func entryAt(p boltfile.Place, b buckets, text bool) (Entry, error) {
	if !text {
		e, err := valueOf(p.ID, append(bytes.Clone(p.Position), isReal))
		e.Test = p.Test
		return e, err
	}
	return valueOf(p.ID, b.assets.Get(p.ID))
}

// over iterates over the places that q asks for, in its order.
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

// From calls visit for entries in the order of ids, from an id on, until it returns false.
// An id that is malformed is the lowest. The JSON of an entry is valid during the call only.
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
