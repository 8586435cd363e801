package replica

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"

	"asset-registry.example/client"
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
