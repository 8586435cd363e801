package replica

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"

	"asset-registry/deploy/registry/client"
)

const (
	idBytes       = 16
	positionBytes = 8
)

// Entry is an asset as the feed shows it.
type Entry struct {
	ID       string
	Position int64  // dateModified, in microseconds since the epoch
	JSON     []byte // as the registry writes it
}

// parseEntry reads the entry that text holds. The entry keeps text.
func parseEntry(text []byte) (Entry, error) {
	var head struct {
		ID           string           `json:"id"`
		DateModified client.Timestamp `json:"dateModified"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	at, err := head.DateModified.Time()
	if err != nil || at.UnixMicro() <= 0 {
		return Entry{}, fmt.Errorf("%w: its dateModified is %.50q", ErrEntry, head.DateModified)
	}
	if _, err := keyOf(head.ID); err != nil {
		return Entry{}, err
	}
	return Entry{ID: head.ID, Position: at.UnixMicro(), JSON: text}, nil
}

// keyOf returns the key of an id in the bucket of assets.
func keyOf(id string) ([]byte, error) {
	key, err := hex.DecodeString(id)
	if err != nil || len(key) != idBytes || hex.EncodeToString(key) != id {
		return nil, fmt.Errorf("%w: its id is %.50q", ErrEntry, id)
	}
	return key, nil
}

func positionKey(position int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(position)) }

// put stores an entry, unless the copy has a later state of the asset.
func (e Entry) put(assets, feed *bbolt.Bucket) error {
	key, err := keyOf(e.ID)
	if err != nil {
		return err
	}
	at := positionKey(e.Position)
	if old := assets.Get(key); old != nil {
		before, err := valueOf(key, old)
		if err != nil {
			return err
		}
		if before.Position > e.Position {
			return nil
		}
		if before.Position != e.Position {
			if err := feed.Delete(positionKey(before.Position)); err != nil {
				return err
			}
		}
	}
	if other := feed.Get(at); other != nil && !bytes.Equal(other, key) {
		return fmt.Errorf("%w: assets %x and %x have the same dateModified", ErrEntry, other, key)
	}
	if err := feed.Put(at, key); err != nil {
		return err
	}
	return assets.Put(key, append(at[:positionBytes:positionBytes], e.JSON...))
}

// valueOf returns the entry that the bucket of assets holds. It shares memory with value.
func valueOf(key, value []byte) (Entry, error) {
	if len(key) != idBytes || len(value) < positionBytes {
		return Entry{}, fmt.Errorf("%w: asset %x has no position", ErrUnsound, key)
	}
	position := binary.BigEndian.Uint64(value)
	if position > math.MaxInt64 {
		return Entry{}, fmt.Errorf("%w: asset %x has no position", ErrUnsound, key)
	}
	return Entry{ID: hex.EncodeToString(key), Position: int64(position), JSON: value[positionBytes:]}, nil
}
