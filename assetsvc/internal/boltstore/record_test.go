package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/boltfile"
)

// storedChange returns a change, and its id as a key.
func storedChange(t *testing.T) (change registry.Revision, id []byte) {
	t.Helper()
	id, ok := registry.ParseID(storetest.NewID())
	if !ok {
		t.Fatal("got a malformed id")
	}
	return registry.Revision{
		ID: hex.EncodeToString(id), Position: 7, Revision: 3, Before: 5, Listed: true, Change: []byte("change"), Whole: []byte("whole"),
	}, id
}

// thirdFormat encodes a change as the third format did.
func thirdFormat(id []byte, r registry.Revision) []byte {
	value := encodeChange(id, registry.Revision{
		Position: r.Position, Revision: r.Revision, Before: r.Before, Listed: r.Listed, Test: r.Test, Change: r.Change,
	})
	value = append(value[:len(value)-sumSize], r.Whole...)
	value[0] &^= changeParts
	return binary.BigEndian.AppendUint32(value, changeSum(r.Position, value))
}

func TestChangesAreReadAsTheyWereWritten(t *testing.T) {
	both, id := storedChange(t)
	alone := both
	alone.Whole = nil
	for _, c := range []struct {
		name   string
		value  []byte
		whole  bool
		change registry.Revision
	}{
		{"all of it", encodeChange(id, both), true, both},
		{"without the whole asset", encodeChange(id, both), false, alone},
		{"there is no whole asset", encodeChange(id, alone), true, alone},
		{"of the third format", thirdFormat(id, both), true, both},
		{"of the third format, without the whole asset", thirdFormat(id, both), false, alone},
		{"of the third format, there is no whole asset", thirdFormat(id, alone), true, alone},
	} {
		got, err := decodeChange(positionKey(both.Position), c.value, c.whole)
		if diff := cmp.Diff(c.change, got); err != nil || diff != "" {
			t.Errorf("%s: got error %v; the change differs (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func TestDamageOfAChangeIsFound(t *testing.T) {
	change, id := storedChange(t)
	key := positionKey(change.Position)
	for name, value := range map[string][]byte{
		"this format": encodeChange(id, change), "the third format": thirdFormat(id, change),
	} {
		for at := range value {
			damaged := bytes.Clone(value)
			damaged[at] ^= 4
			if _, err := decodeChange(key, damaged, true); !errors.Is(err, boltfile.ErrDamaged) {
				t.Errorf("%s, byte %d: got %v, want %v", name, at, err, boltfile.ErrDamaged)
			}
		}
		for end := range value {
			if name == "this format" && end == changeHeader+len(change.Change)+sumSize {
				continue // a change without a Whole
			}
			if _, err := decodeChange(key, value[:end], true); !errors.Is(err, boltfile.ErrDamaged) {
				t.Errorf("%s, cut at %d: got %v, want %v", name, end, err, boltfile.ErrDamaged)
			}
		}
		if _, err := decodeChange(positionKey(8), value, true); !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%s, at another position: got %v, want %v", name, err, boltfile.ErrDamaged)
		}
	}
}

func TestAChangeIsReadWithoutItsWhole(t *testing.T) {
	change, id := storedChange(t)
	value := encodeChange(id, change)
	value[len(value)-1] ^= 1 // found only if the Whole is read
	if _, err := decodeChange(positionKey(change.Position), value, false); err != nil {
		t.Errorf("without the whole asset: got %v, want no error", err)
	}
	if _, err := decodeChange(positionKey(change.Position), value, true); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("with the whole asset: got %v, want %v", err, boltfile.ErrDamaged)
	}
}
