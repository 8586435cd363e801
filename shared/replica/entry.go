package replica

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"

	"asset-registry.example/client"

	"asset-registry/shared/boltfile"
)

const (
	idBytes       = 16
	positionBytes = 8
)

// Entry is an asset in the form in which the feed shows it.
type Entry struct {
	ID       string
	Position int64  // dateModified, in microseconds since the epoch
	Test     bool   // the asset is in test mode
	JSON     []byte // text of the asset, as the registry writes it
}

// parseEntry parses an entry. The entry keeps the given text itself, not a copy. The text must be one JSON
// value on one line, without repeated names. It must begin with the id and the dateModified, because programs
// that read a copy cut the text after these fields.
func parseEntry(text []byte) (Entry, error) {
	var head head
	if err := json.Unmarshal(text, &head); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	rest, ok := bytes.CutPrefix(text, fmt.Appendf(nil, `{"id":"%s","dateModified":"%s"`, head.ID, head.DateModified))
	if !ok || rest[0] != ',' && rest[0] != '}' || bytes.ContainsAny(text, "\r\n") {
		return Entry{}, fmt.Errorf("%w: it is not written as a registry writes it: %.100q", ErrEntry, text)
	}
	at, err := head.DateModified.Time()
	if err != nil || at.UnixMicro() <= 0 {
		return Entry{}, fmt.Errorf("%w: its dateModified is %.50q", ErrEntry, head.DateModified)
	}
	if _, err := keyOf(head.ID); err != nil {
		return Entry{}, err
	}
	return Entry{ID: head.ID, Position: at.UnixMicro(), Test: head.Mode == client.TestMode, JSON: text}, nil
}

// head has the fields of an entry that the copy needs.
type head struct {
	ID           string           `json:"id"`
	DateModified client.Timestamp `json:"dateModified"`
	Mode         client.Mode      `json:"mode"` // missing for most assets
}

// keyOf returns the key under which the bucket of assets has an id.
func keyOf(id string) ([]byte, error) {
	key, err := hex.DecodeString(id)
	if err != nil || len(key) != idBytes || hex.EncodeToString(key) != id {
		return nil, fmt.Errorf("%w: its id is %.50q", ErrEntry, id)
	}
	return key, nil
}

func positionKey(position int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(position)) }

// buckets are the bucket of assets and the buckets of their two feeds.
type buckets struct{ assets, real, test *bbolt.Bucket }

func bucketsOf(tx *bbolt.Tx) buckets {
	return buckets{tx.Bucket(assetsBucket), tx.Bucket(feedBucket), tx.Bucket(testBucket)}
}

// ahead is the maximum time by which a registry's clock may be ahead of this machine's clock.
const ahead = time.Minute

// Latest returns the latest position that is accepted for a change now.
func Latest() int64 { return time.Now().Add(ahead).UnixMicro() }

// The method `until` returns ErrEntry if the entry comes after the given position. An entry in the future could not be
// replaced, because all later states of the asset would have earlier positions.
func (e Entry) until(position int64) error {
	if e.Position > position {
		return fmt.Errorf("%w: asset %s is of %s, and may not be later than %s", ErrEntry, e.ID,
			timeOf(e.Position), timeOf(position))
	}
	return nil
}

func timeOf(position int64) string { return time.UnixMicro(position).UTC().Format(time.RFC3339Nano) }

// put stores an entry, unless the copy already has a later state of the asset.
func (b buckets) put(e Entry) error {
	key, err := keyOf(e.ID)
	if err != nil {
		return err
	}
	at := positionKey(e.Position)
	if old := b.assets.Get(key); old != nil {
		before, err := valueOf(key, old)
		if err != nil {
			return err
		}
		if before.Position > e.Position {
			return nil
		}
		for _, feed := range []*bbolt.Bucket{b.real, b.test} { // looks in both feeds, because the mode may have changed
			if old := positionKey(before.Position); bytes.Equal(feed.Get(old), key) {
				if err := feed.Delete(old); err != nil {
					return err
				}
			}
		}
	}
	feed, state := b.real, isReal
	if e.Test {
		feed, state = b.test, isTest
	}
	for _, feed := range []*bbolt.Bucket{b.real, b.test} {
		if other := feed.Get(at); other != nil {
			return fmt.Errorf("%w: asset %x is at the dateModified of %x in the copy", ErrOtherData, key, other)
		}
	}
	if err := feed.Put(at, key); err != nil {
		return err
	}
	return b.assets.Put(key, append(append(at[:positionBytes:positionBytes], state), e.JSON...))
}

// Values of the byte after the position of a stored asset.
const (
	isReal byte = iota
	isTest
)

// valueOf parses an entry of the bucket of assets. The entry shares memory with the argument `value`.
func valueOf(key, value []byte) (Entry, error) {
	if len(key) != idBytes || len(value) <= positionBytes || value[positionBytes] > isTest {
		return Entry{}, fmt.Errorf("%w: asset %x has no position", ErrUnsound, key)
	}
	position := binary.BigEndian.Uint64(value)
	if position > math.MaxInt64 {
		return Entry{}, fmt.Errorf("%w: asset %x has no position", ErrUnsound, key)
	}
	return Entry{
		ID: hex.EncodeToString(key), Position: int64(position), Test: value[positionBytes] == isTest,
		JSON: value[positionBytes+1:],
	}, nil
}

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

// Get returns an asset of the copy. ok is false if the copy does not have the asset.
func (r *Replica) Get(id string) (e Entry, ok bool, err error) {
	key, err := keyOf(id)
	if err != nil {
		return Entry{}, false, fmt.Errorf("%q is not the id of an asset", id)
	}
	err = r.file.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(assetsBucket).Get(key)
		if value == nil {
			return nil
		}
		found, err := valueOf(key, value)
		e, ok = found, err == nil
		e.JSON = bytes.Clone(found.JSON)
		return err
	})
	return e, ok, err
}

// Walk calls the function `visit` with each asset, in the order of ids, until visit returns an error. The JSON
// of an entry is valid only during the call.
func (r *Replica) Walk(visit func(Entry) error) error {
	var refused error
	err := r.From("", func(e Entry) bool {
		refused = visit(e)
		return refused == nil
	})
	return cmp.Or(err, refused)
}

// Changes calls the function `visit` with each asset that changed after a position, in the order of
// positions, until visit returns false. The text is valid only during the call.
func (r *Replica) Changes(after int64, visit func(position int64, id string, text []byte) bool) error {
	_, err := r.Feed(FeedQuery{After: after, Real: true, Test: true, Texts: true}, func(e Entry) bool {
		return visit(e.Position, e.ID, e.JSON)
	})
	return err
}

// Text returns the text of an asset, or nil if the copy does not have the asset.
func (r *Replica) Text(id string) ([]byte, error) {
	e, _, err := r.Get(id)
	return e.JSON, err
}

// Sample returns the ids of count assets that are chosen at random. If the copy has fewer assets, it returns
// the ids of all.
func (r *Replica) Sample(count int) ([]string, error) {
	var ids []string
	seen := 0
	err := r.file.View(func(tx *bbolt.Tx) error {
		take := func(_, id []byte) error {
			seen++
			if len(ids) < count {
				ids = append(ids, fmt.Sprintf("%x", id))
			} else if at := rand.IntN(seen); at < count {
				ids[at] = fmt.Sprintf("%x", id)
			}
			return nil
		}
		b := bucketsOf(tx)
		return errors.Join(b.real.ForEach(take), b.test.ForEach(take))
	})
	return ids, err
}

// Check reads the whole copy. It returns the number of assets. The error wraps ErrUnsound if the copy violates K1, or
// if the text of an entry has another id or position than the entry.
func (r *Replica) Check() (assets int, err error) {
	err = r.file.View(func(tx *bbolt.Tx) error {
		b, entries := bucketsOf(tx), 0
		if err := b.assets.ForEach(func(key, value []byte) error {
			assets++
			return b.check(key, value)
		}); err != nil {
			return err
		}
		count := func(_, _ []byte) error { entries++; return nil }
		if err := errors.Join(b.real.ForEach(count), b.test.ForEach(count)); err != nil {
			return err
		}
		if entries != assets {
			return fmt.Errorf("%w: %d assets have %d entries in the feed", ErrUnsound, assets, entries)
		}
		return nil
	})
	return assets, err
}

// check checks an entry of the bucket of assets. It returns an error if the text of the entry is the text of another
// asset, or if the feed does not have the asset at its position.
func (b buckets) check(key, value []byte) error {
	e, err := valueOf(key, value)
	if err != nil {
		return err
	}
	text, err := parseEntry(e.JSON)
	if err != nil || text.ID != e.ID || text.Position != e.Position || text.Test != e.Test {
		return fmt.Errorf("%w: asset %s has the text of another entry", ErrUnsound, e.ID)
	}
	feed := b.real
	if e.Test {
		feed = b.test
	}
	if !bytes.Equal(feed.Get(positionKey(e.Position)), key) {
		return fmt.Errorf("%w: the feed has no entry of asset %s", ErrUnsound, e.ID)
	}
	return nil
}
