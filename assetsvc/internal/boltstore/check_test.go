package boltstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/boltfile"
)

// twoAssets returns a store with a draft, a listed asset and a webhook, the store's path,
// and the id of the listed asset. The function facts is an argument for Check.
func twoAssets(t *testing.T) (s *Store, path, id string, facts func(registry.Record) (string, string, error)) {
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
		r := registry.Record{
			ID: id, Listed: listed, Sealed: "sealed", Owner: "one", Body: body, Change: []byte("c"),
		}
		if _, err := s.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), webhook.Endpoint{ID: "a1", Broker: "b1"}); err != nil {
		t.Fatal(err)
	}
	return s, path, id, func(r registry.Record) (string, string, error) {
		return strings.Trim(strings.TrimPrefix(string(r.Body), `{"assetID": `), `"}`), "one", nil
	}
}

func TestCheckReportsContradictionsBetweenBuckets(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(tx *bbolt.Tx, key []byte) error
		want   string // substring of the faults; "": no fault
	}{
		{"nothing is damaged", func(*bbolt.Tx, []byte) error { return nil }, ""},
		{"an asset is missing from the feed", func(tx *bbolt.Tx, _ []byte) error {
			key, _ := tx.Bucket(realBucket).Cursor().First()
			return tx.Bucket(realBucket).Delete(key)
		}, "not in the feed"},
		{"the feed has an entry without an asset", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(realBucket).Put(positionKey(1), make([]byte, idSize))
		}, "feed has 2 entries for 1 listed assets"},
		{"the newest number is too low", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(numberBucket).Put([]byte("2026-11-20"), positionKey(1))
		}, "UA-AR-DGF-2026-11-20-000002"},
		{"the newest position is too low", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(stateBucket).Put(lastKey, positionKey(1))
		}, "newest position is lower"},
		{"the end of an asset is missing", func(tx *bbolt.Tx, key []byte) error {
			return tx.Bucket(assetBucket).Put(key, tx.Bucket(assetBucket).Get(key)[:headerSize+10])
		}, "cannot be read"},
		{"a bit of an asset is flipped", flipBit, "cannot be read"},
		{"the record has a change without an asset", func(tx *bbolt.Tx, _ []byte) error {
			change := registry.Revision{Position: 1, Revision: 1}
			return errors.Join(
				tx.Bucket(changeBucket).Put(positionKey(1), encodeChange(make([]byte, idSize), change)),
				tx.Bucket(historyBucket).Put(historyKey(make([]byte, idSize), 1), nil))
		}, "that the asset does not have"},
		{"an asset is missing from the list of its owner", func(tx *bbolt.Tx, _ []byte) error {
			key, _ := tx.Bucket(brokerBucket).Cursor().First()
			return tx.Bucket(brokerBucket).Delete(key)
		}, "not in the list of its owner"},
		{"the list of a broker has an entry without an asset", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(brokerBucket).Put(enlistedAt("two", 1), make([]byte, idSize+1))
		}, "brokers has 3 entries for 2 assets of brokers"},
		{"a former program has no lists of brokers", func(tx *bbolt.Tx, _ []byte) error {
			return errors.Join(tx.DeleteBucket(brokerBucket), tx.Bucket(stateBucket).Delete(indexedKey))
		}, ""},
		{"a webhook cannot be read", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(webhookBucket).Put([]byte("a2"), []byte("half"))
		}, "webhook \"a2\" cannot be read"},
		{"a webhook is not among those of its broker", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(ownedBucket).Delete(owned("b1", "a1"))
		}, "not among those of its broker"},
		{"a broker has a webhook that is not there", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(webhookBucket).Delete([]byte("a1"))
		}, "has 1 entries for 0 webhooks"},
		{"a change is missing from the record", func(tx *bbolt.Tx, _ []byte) error {
			key, _ := tx.Bucket(changeBucket).Cursor().Last()
			return tx.Bucket(changeBucket).Delete(key)
		}, "is not in the record"},
		{"a change is missing from the history", func(tx *bbolt.Tx, _ []byte) error {
			key, _ := tx.Bucket(historyBucket).Cursor().First()
			return tx.Bucket(historyBucket).Delete(key)
		}, "is not in the history"},
		{"the history has an entry without a change", func(tx *bbolt.Tx, key []byte) error {
			return tx.Bucket(historyBucket).Put(historyKey(key, 1), nil)
		}, "history has 3 entries for 2 changes"},
		{"a bit of a change is flipped", func(tx *bbolt.Tx, _ []byte) error {
			key, value := tx.Bucket(changeBucket).Cursor().First()
			value = bytes.Clone(value)
			value[3] ^= 1
			return tx.Bucket(changeBucket).Put(key, value)
		}, "cannot be read"},
		{"a bit of a change's whole asset is flipped", func(tx *bbolt.Tx, _ []byte) error {
			key, value := tx.Bucket(changeBucket).Cursor().First()
			r, err := decodeChange(key, value, true)
			if err != nil {
				return err
			}
			id, _ := registry.ParseID(r.ID)
			r.Whole = []byte("whole")
			value = encodeChange(id, r)
			value[len(value)-1] ^= 1
			return tx.Bucket(changeBucket).Put(key, value)
		}, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, path, id, number := twoAssets(t)
			key, _ := registry.ParseID(id)
			err := s.file.Update(func(tx *bbolt.Tx) error { return c.damage(tx, key) })
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			assets, faults := Check(path, nil, number)
			got := fmt.Sprint(errors.Join(faults...))
			if c.want == "" && len(faults) != 0 || !strings.Contains(got, c.want) {
				t.Errorf("got faults %s, want %q", got, c.want)
			}
			if assets != 2 {
				t.Errorf("got %d assets, want 2", assets)
			}
		})
	}
}

// TestCheckFindsAnOlderCopy puts the copies of assets from before a change back, as half a restore
// does. They can be read, but the feed, the lists and the record contradict them.
func TestCheckFindsAnOlderCopy(t *testing.T) {
	s, path, listed, facts := twoAssets(t)
	older := map[string][]byte{}
	err := s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(assetBucket).ForEach(func(key, value []byte) error {
			older[string(key)] = bytes.Clone(value)
			return nil
		})
	})
	if err != nil || len(older) != 2 {
		t.Fatalf("got %d copies, %v; want 2", len(older), err)
	}
	for key := range older {
		r, err := s.Get(t.Context(), hex.EncodeToString([]byte(key)), registry.AnySize)
		if err != nil {
			t.Fatal(err)
		}
		r.Body, r.Change = append(bytes.TrimSuffix(r.Body, []byte("}")), `, "title": "new"}`...), []byte("c2")
		if _, err := s.Replace(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range older {
		err := s.file.Update(func(tx *bbolt.Tx) error { return tx.Bucket(assetBucket).Put([]byte(key), value) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, faults := Check(path, nil, facts)
	for key := range older {
		id := hex.EncodeToString([]byte(key))
		if got := fmt.Sprint(errors.Join(faults...)); !strings.Contains(got, "asset "+id) {
			t.Errorf("asset %s, listed %t: got faults %s, want one that names it", id, id == listed, got)
		}
	}
}

// flipBit flips one bit of the stored asset.
func flipBit(tx *bbolt.Tx, key []byte) error {
	value := bytes.Clone(tx.Bucket(assetBucket).Get(key))
	value[len(value)-10] ^= 1
	return tx.Bucket(assetBucket).Put(key, value)
}

func TestADamagedAssetEndsWrites(t *testing.T) {
	s, _, id, _ := twoAssets(t)
	key, _ := registry.ParseID(id)
	if err := s.file.Update(func(tx *bbolt.Tx) error { return flipBit(tx, key) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), id, registry.AnySize); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("read: got %v, want %v", err, boltfile.ErrDamaged)
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("ready: got nil, want an error")
	}
	_, err := s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("{}")})
	if !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("write: got %v, want %v", err, boltfile.ErrDamaged)
	}
}

func TestALargeBodyIsNotReadForItsSize(t *testing.T) {
	stored := registry.Record{ID: storetest.NewID(), Position: 7, Revision: 2, Origin: "origin", Body: []byte(`{"a":1}`)}
	value := encode(stored)
	value[len(value)-1] ^= 1 // found only if the body is read to its end
	for _, c := range []struct {
		name string
		most int
		want error
	}{
		{"more than the limit", len(stored.Body) - 1, registry.ErrLarge},
		{"as much as the limit", len(stored.Body), boltfile.ErrDamaged},
	} {
		if _, err := decode(stored.ID, value, c.most); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}
