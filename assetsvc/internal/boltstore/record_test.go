package boltstore

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
)

// storedChange returns a change, and the id of its asset as a key.
func storedChange(t *testing.T) (change registry.Revision, id []byte) {
	t.Helper()
	id, ok := registry.ParseID(storetest.NewID())
	expect.FatalIf(t, !ok, "got a malformed id")
	return registry.Revision{
		ID: hex.EncodeToString(id), Position: 7, Revision: 3, Before: 5, Listed: true, Change: []byte("change"), Whole: []byte("whole"),
	}, id
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
	value := encodeChange(id, change)
	for at := range value {
		damaged := bytes.Clone(value)
		damaged[at] ^= 4
		expect.ErrOf(t, boltfile.ErrDamaged, "byte %d", at)(decodeChange(key, damaged, true))
	}
	for end := range value {
		if end == changeHeader+len(change.Change)+sumSize {
			continue // a change without a Whole may end here
		}
		expect.ErrOf(t, boltfile.ErrDamaged, "cut at %d", end)(decodeChange(key, value[:end], true))
	}
	expect.ErrOf(t, boltfile.ErrDamaged, "at another position")(decodeChange(positionKey(8), value, true))
}

func TestAChangeIsReadWithoutItsWhole(t *testing.T) {
	change, id := storedChange(t)
	value := encodeChange(id, change)
	value[len(value)-1] ^= 1 // this damage is noticed only if the Whole is read
	expect.NilOf(t, "without the whole asset")(decodeChange(positionKey(change.Position), value, false))
	expect.ErrOf(t, boltfile.ErrDamaged, "with the whole asset")(decodeChange(positionKey(change.Position), value,
		true))
}
