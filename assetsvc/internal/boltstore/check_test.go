package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/boltfile"
)

// twoAssets is a store of two assets, one of them listed, and where their numbers are.
func twoAssets(t *testing.T) (s *Store, path, id string, number func(registry.Record) (string, error)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "assets.db")
	s, err := Open(path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, listed := range []bool{false, true} {
		n, err := s.NextNumber(t.Context(), "2026-11-20")
		if err != nil {
			t.Fatal(err)
		}
		id = storetest.NewID()
		body := fmt.Appendf(nil, `{"assetID": "UA-AR-DGF-2026-11-20-%06d"}`, n)
		if _, err := s.Create(t.Context(), registry.Record{ID: id, Listed: listed, Sealed: "sealed", Body: body, Change: []byte("c")}); err != nil {
			t.Fatal(err)
		}
	}
	return s, path, id, func(r registry.Record) (string, error) {
		return strings.Trim(strings.TrimPrefix(string(r.Body), `{"assetID": `), `"}`), nil
	}
}

func TestCheckComparesTheBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(tx *bbolt.Tx, key []byte) error
		says   string // "" for no fault
	}{
		"as it was written": {func(*bbolt.Tx, []byte) error { return nil }, ""},
		"an asset out of the feed": {func(tx *bbolt.Tx, _ []byte) error {
			key, _ := tx.Bucket(realBucket).Cursor().First()
			return tx.Bucket(realBucket).Delete(key)
		}, "not in the feed"},
		"a feed of no asset": {func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(realBucket).Put(positionKey(1), make([]byte, idSize))
		}, "feed has 2 entries, and 1 assets belong there"},
		"numbers behind": {func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(numberBucket).Put([]byte("2026-11-20"), positionKey(1))
		}, "UA-AR-DGF-2026-11-20-000002"},
		"positions behind": {func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(stateBucket).Put(lastKey, positionKey(1))
		}, "newest position is behind"},
		"an asset cut off": {func(tx *bbolt.Tx, key []byte) error {
			return tx.Bucket(assetBucket).Put(key, tx.Bucket(assetBucket).Get(key)[:headerSize+10])
		}, "cannot be read"},
		"a flipped byte": {func(tx *bbolt.Tx, key []byte) error {
			value := append([]byte(nil), tx.Bucket(assetBucket).Get(key)...)
			value[len(value)-10] ^= 1
			return tx.Bucket(assetBucket).Put(key, value)
		}, "cannot be read"},
		"a change of no asset": {func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(logBucket).Put(logKey(make([]byte, idSize), 1), positionKey(1))
		}, "that the asset has not"},
	} {
		t.Run(name, func(t *testing.T) {
			s, path, id, number := twoAssets(t)
			key, _ := keyOf(id)
			err := s.file.Update(func(tx *bbolt.Tx) error { return c.damage(tx, key) })
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			assets, faults := Check(path, nil, number)
			if got := errors.Join(faults...); c.says == "" && got != nil || c.says != "" && (got == nil || !strings.Contains(got.Error(), c.says)) {
				t.Errorf("got %v, want it to say %q", got, c.says)
			}
			if assets != 2 {
				t.Errorf("got %d assets, want 2", assets)
			}
		})
	}
}

func TestAnAssetThatIsNotWhatWasWrittenEndsWrites(t *testing.T) {
	s, _, id, _ := twoAssets(t)
	key, _ := keyOf(id)
	if err := s.file.Update(func(tx *bbolt.Tx) error {
		value := append([]byte(nil), tx.Bucket(assetBucket).Get(key)...)
		value[len(value)-10] ^= 1
		return tx.Bucket(assetBucket).Put(key, value)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), id, registry.AnySize); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("read: got %v, want %v", err, boltfile.ErrDamaged)
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("it says that it is ready")
	}
	if _, err := s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("{}")}); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("write: got %v, want %v", err, boltfile.ErrDamaged)
	}
}

func TestRecordsOfEarlierVersionsAreRead(t *testing.T) {
	r := registry.Record{ID: storetest.NewID(), Position: 7, Revision: 2, Listed: true, Sealed: "sealed", Origin: "origin", Body: []byte(`{}`)}
	value := encode(r)
	value = value[:len(value)-sumSize]
	value[16] &^= sumFlag
	got, err := decode(r.ID, value, registry.AnySize)
	if err != nil || string(got.Body) != "{}" || got.Sealed != r.Sealed || got.Origin != r.Origin {
		t.Errorf("got %+v, %v; want %+v", got, err, r)
	}
	value[len(value)-1] = 'x'
	if _, err := decode(r.ID, value, registry.AnySize); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("with a body that is no JSON: got %v, want %v", err, boltfile.ErrDamaged)
	}
}
