package boltstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
)

// twoAssets returns a store with a draft, a listed asset and a webhook; the path of the store; and the id of the
// listed asset. The function `facts` is an argument for Check.
func twoAssets(t *testing.T) (s *Store, path, id string, facts func(registry.Record) (string, string, error)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "assets.db")
	s = expect.Get(Open(path, Options{Now: time.Now}))(t)
	t.Cleanup(func() { s.Close() })
	for _, listed := range []bool{false, true} {
		n := expect.Get(s.NextNumber(t.Context(), "2026-11-20"))(t)
		id = storetest.NewID()
		body := fmt.Appendf(nil, `{"assetID": "UA-AR-DGF-2026-11-20-%06d"}`, n)
		r := registry.Record{
			ID: id, Listed: listed, Sealed: "sealed", Owner: "one", Body: body, Change: []byte("c"),
		}
		expect.Get(s.Create(t.Context(), r))(t)
	}
	for _, e := range []webhook.Endpoint{{ID: "a1", Broker: "b1"}, {ID: "admin", ByAdmin: true}} {
		expect.OK(t, s.Put(t.Context(), e))
	}
	return s, path, id, func(r registry.Record) (string, string, error) {
		return strings.Trim(strings.TrimPrefix(string(r.Body), `{"assetID": `), `"}`), "one", nil
	}
}

func TestCheckReportsContradictionsBetweenBuckets(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(tx *bbolt.Tx, key []byte) error
		want   string // part of the text of the faults; "": no fault
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
		{"the newest position is missing", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(stateBucket).Delete(lastKey)
		}, "newest position is lower"},
		{"the number of a day is missing", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(numberBucket).Delete([]byte("2026-11-20"))
		}, "the newest number of its day is lower"},
		{"the newest change belongs to another asset", func(tx *bbolt.Tx, _ []byte) error {
			key, value := tx.Bucket(changeBucket).Cursor().Last()
			value = bytes.Clone(value)
			value[1] ^= 1
			return tx.Bucket(changeBucket).Put(key, value)
		}, "is not in the record"},
		{"the end of an asset is missing", func(tx *bbolt.Tx, key []byte) error {
			return tx.Bucket(assetBucket).Put(key, tx.Bucket(assetBucket).Get(key)[:headerSize+10])
		}, "cannot be read"},
		{"a bit of an asset is flipped", flipBit, "cannot be read"},
		{"the record has a change without an asset", func(tx *bbolt.Tx, _ []byte) error {
			return putChange(tx, make([]byte, idSize), registry.Revision{Position: 1, Revision: 1})
		}, "that the asset does not have"},
		{"the record has a newer revision than the asset", func(tx *bbolt.Tx, key []byte) error {
			return putChange(tx, key, registry.Revision{Position: 1, Revision: 9})
		}, "that the asset does not have"},
		{"the record has a later change than the asset", func(tx *bbolt.Tx, key []byte) error {
			return putChange(tx, key, registry.Revision{Position: time.Now().Add(time.Hour).UnixMicro(), Revision: 1})
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
		{"a former program has written and not kept the lists of brokers", func(tx *bbolt.Tx, _ []byte) error {
			key, _ := tx.Bucket(brokerBucket).Cursor().First()
			return errors.Join(tx.Bucket(brokerBucket).Delete(key), tx.Bucket(stateBucket).Put(indexedKey, positionKey(1)))
		}, ""},
		{"a webhook cannot be read", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(webhookBucket).Put([]byte("a2"), []byte("half"))
		}, "webhook \"a2\" cannot be read"},
		{"a webhook is missing from the list of its broker", func(tx *bbolt.Tx, _ []byte) error {
			return tx.Bucket(ownedBucket).Delete(owned("b1", "a1"))
		}, "missing from the list of its broker"},
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
			expect.OK(t, errors.Join(err, s.Close()))
			assets, faults := Check(path, nil, number)
			got := fmt.Sprint(errors.Join(faults...))
			if c.want == "" && len(faults) != 0 || !strings.Contains(got, c.want) {
				t.Errorf("got faults %s, want %q", got, c.want)
			}
			expect.Equal(t, assets, 2, "assets")
		})
	}
}

// putChange adds a change of an asset to the record and to the history.
func putChange(tx *bbolt.Tx, key []byte, change registry.Revision) error {
	change.ID = hex.EncodeToString(key)
	return errors.Join(tx.Bucket(changeBucket).Put(positionKey(change.Position), encodeChange(key, change)),
		tx.Bucket(historyBucket).Put(historyKey(key, change.Position), nil))
}

// TestCheckFindsAnOlderCopy replaces assets by their copies from before a change, as an incomplete restore does.
// The copies can be read, but the feed, the lists and the record contradict them. Check must report that.
func TestCheckFindsAnOlderCopy(t *testing.T) {
	s, path, listed, facts := twoAssets(t)
	older := map[string][]byte{}
	err := s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(assetBucket).ForEach(func(key, value []byte) error {
			older[string(key)] = bytes.Clone(value)
			return nil
		})
	})
	expect.FatalIf(t, err != nil || len(older) != 2, "got %d copies, %v; want 2", len(older), err)
	for key := range older {
		r := expect.Get(s.Get(t.Context(), hex.EncodeToString([]byte(key)), registry.AnySize))(t)
		r.Body, r.Change = append(bytes.TrimSuffix(r.Body, []byte("}")), `, "title": "new"}`...), []byte("c2")
		expect.Get(s.Replace(t.Context(), r))(t)
	}
	for key, value := range older {
		expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error { return tx.Bucket(assetBucket).Put([]byte(key), value) }))
	}
	expect.OK(t, s.Close())
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
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error { return flipBit(tx, key) }))
	expect.ErrOf(t, boltfile.ErrDamaged, "read")(s.Get(t.Context(), id, registry.AnySize))
	whole := registry.RangeQuery{Limit: 10, Bytes: registry.AnySize}
	expect.ErrOf(t, boltfile.ErrDamaged, "range")(s.Range(t.Context(), whole))
	expect.Fails(t, s.Ready(t.Context()), "ready")
	_, err := s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("{}")})
	expect.Err(t, err, boltfile.ErrDamaged, "write")
}

func TestALargeBodyIsNotReadForItsSize(t *testing.T) {
	stored := registry.Record{ID: storetest.NewID(), Position: 7, Revision: 2, Origin: "origin", Body: []byte(`{"a":1}`)}
	value := encode(stored)
	value[len(value)-1] ^= 1 // this damage is noticed only if the body is read to its end
	for _, c := range []struct {
		name string
		most int
		want error
	}{
		{"more than the limit", len(stored.Body) - 1, registry.ErrLarge},
		{"as much as the limit", len(stored.Body), boltfile.ErrDamaged},
	} {
		expect.ErrOf(t, c.want, "%s", c.name)(decode(stored.ID, value, c.most))
	}
}

// TestAnEmptyStoreHasNoFault checks two new files. One of them lacks the lists and references, as files of older
// versions do. Check must report nothing.
func TestAnEmptyStoreHasNoFault(t *testing.T) {
	for _, former := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "assets.db")
		s, err := Open(path, Options{Now: time.Now})
		expect.OK(t, err)
		err = s.file.Update(func(tx *bbolt.Tx) error {
			if former {
				return errors.Join(tx.DeleteBucket(brokerBucket), tx.DeleteBucket(referenceBucket))
			}
			return nil
		})
		expect.OK(t, errors.Join(err, s.Close()))
		if assets, faults := Check(path, nil, nil); assets != 0 || len(faults) != 0 {
			t.Errorf("of a former program: %t: got %d assets and the faults %v, want none", former, assets, faults)
		}
	}
}

// TestARemovedDraftHasItsPosition sets the newest position of the store below the position of the newest change,
// which removed a draft. Check must report that.
func TestARemovedDraftHasItsPosition(t *testing.T) {
	s, path, _, facts := twoAssets(t)
	r := registry.Record{ID: storetest.NewID(), Removed: true, Change: []byte("c")}
	position, err := s.Create(t.Context(), r)
	expect.OK(t, err)
	err = s.file.Update(func(tx *bbolt.Tx) error { return tx.Bucket(stateBucket).Put(lastKey, positionKey(position-1)) })
	expect.OK(t, errors.Join(err, s.Close()))
	if _, faults := Check(path, nil, facts); !strings.Contains(fmt.Sprint(faults), "newest position is lower") {
		t.Errorf("got the faults %v, want the fault of the position", faults)
	}
}

// TestACheckReportsABoundedNumberOfFaults damages many items of one kind in each case. It also adds one fault for
// each later step of the check. Check must report exactly maxFaults faults.
func TestACheckReportsABoundedNumberOfFaults(t *testing.T) {
	each := func(name []byte, do func(b *bbolt.Bucket, key, value []byte) error) func(*bbolt.Tx, int) error {
		return func(tx *bbolt.Tx, most int) (err error) {
			b := tx.Bucket(name)
			var keys, values [][]byte
			_ = b.ForEach(func(key, value []byte) error {
				keys, values = append(keys, bytes.Clone(key)), append(values, bytes.Clone(value))
				return nil
			})
			for i, key := range keys[:min(most, len(keys))] {
				err = errors.Join(err, do(b, key, values[i]))
			}
			return err
		}
	}
	drop := func(b *bbolt.Bucket, key, _ []byte) error { return b.Delete(key) }
	half := func(b *bbolt.Bucket, key, value []byte) error { return b.Put(key, value[:len(value)/2]) }
	const all = 2 * maxFaults
	undamaged, facts := manyAssets(t, all)
	for i, c := range []struct {
		name   string
		damage func(*bbolt.Tx, int) error
		want   string // text of the last fault
	}{
		{"assets that cannot be read", each(assetBucket, half), "cannot be read"},
		{"assets without their feed", each(realBucket, drop), "not in the feed"},
		{"assets without their references", each(referenceBucket, drop), "does not stand for it"},
		{"references of nothing", each(referenceBucket, half), "does not stand for it"},
		{"more references of nothing", each(assetBucket, func(b *bbolt.Bucket, key, _ []byte) error {
			return b.Tx().Bucket(referenceBucket).Put(append([]byte("x"), key...), []byte("half"))
		}), "stands for no id"},
		{"assets with two references", each(assetBucket, func(b *bbolt.Bucket, key, _ []byte) error {
			return b.Tx().Bucket(referenceBucket).Put(append([]byte("x"), key...), fmt.Appendf(nil, "%x", key))
		}), "has another one"},
		{"assets without their changes", each(changeBucket, drop), "is not in the record"},
		{"removed assets without their changes", each(assetBucket, func(b *bbolt.Bucket, key, value []byte) error {
			r, err := decode(hex.EncodeToString(key), value, registry.AnySize)
			r.Removed, r.Position = true, r.Position+1e9
			return errors.Join(err, b.Put(key, encode(r)))
		}), "is not in the record"},
		{"assets without their brokers", each(brokerBucket, drop), "not in the list of its owner"},
		{"numbers of a day", each(numberBucket, func(b *bbolt.Bucket, key, _ []byte) error {
			return b.Put(key, positionKey(0))
		}), "newest number of its day"},
		{"changes that cannot be read", each(changeBucket, func(b *bbolt.Bucket, key, value []byte) error {
			value[len(value)-1] ^= 1
			return b.Put(key, value)
		}), "the change at"},
		{"changes without their history", each(historyBucket, drop), "not in the history"},
		{"changes that assets do not have", each(assetBucket, func(b *bbolt.Bucket, key, value []byte) error {
			return putChange(b.Tx(), key, registry.Revision{Position: positionOf(value) + 1e9, Revision: 9})
		}), "does not have"},
		{"webhooks that cannot be read", each(webhookBucket, half), "cannot be read"},
		{"webhooks without their brokers", each(ownedBucket, drop), "missing from the list of its broker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			counts := []int{maxFaults - 1, all}
			if i == 0 { // these counts let the check end at each of the single faults below
				counts = append(counts, 13, 14, 15, 16, 17, 18)
			}
			for _, most := range counts {
				path := filepath.Join(t.TempDir(), "assets.db")
				expect.OK(t, os.WriteFile(path, undamaged, 0o600))
				s, err := Open(path, Options{Now: time.Now})
				expect.OK(t, err)
				err = s.file.Update(func(tx *bbolt.Tx) error {
					return errors.Join(c.damage(tx, most), tx.Bucket(realBucket).Put(positionKey(1), nil),
						tx.Bucket(testBucket).Put(positionKey(1), nil), tx.Bucket(brokerBucket).Put([]byte("x"), nil),
						tx.Bucket(referenceBucket).Put([]byte("zz"), []byte("x")),
						tx.Bucket(historyBucket).Put(historyKey(make([]byte, idSize), 1), nil),
						tx.Bucket(webhookBucket).Put([]byte("zz"), []byte("x")), tx.Bucket(ownedBucket).Put([]byte("zz"), nil),
						tx.Bucket(stateBucket).Put(headKey, []byte("x")))
				})
				expect.OK(t, errors.Join(err, s.Close()))
				_, faults := Check(path, nil, facts)
				if got := strings.Contains(fmt.Sprint(faults), c.want); len(faults) != maxFaults || !got {
					t.Errorf("%d damaged: got %d faults, want %d, one of them %q: %v", most, len(faults), maxFaults, c.want, faults)
				}
			}
		})
	}
}

// manyAssets returns the file of a store with n listed assets that have references, and with a webhook for each
// asset. The function `facts` is an argument for Check.
func manyAssets(t *testing.T, n int) (file []byte, facts func(registry.Record) (string, string, error)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assets.db")
	s, err := Open(path, Options{Now: time.Now})
	expect.OK(t, err)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			id, reference := storetest.NewID(), registry.ReferenceKey("one", fmt.Sprint("lot-", i))
			_, claimed := s.ClaimReference(t.Context(), reference, "", id)
			number, numbered := s.NextNumber(t.Context(), "2026-11-20")
			_, created := s.Create(t.Context(), registry.Record{
				ID: id, Listed: true, Owner: "one", Origin: fmt.Sprintf(`{"broker":"one","reference":"lot-%d"}`, i),
				Body: fmt.Appendf(nil, "UA-AR-DGF-2026-11-20-%06d", number), Change: []byte("c"),
			})
			put := s.Put(t.Context(), webhook.Endpoint{ID: fmt.Sprint("w", i), Broker: fmt.Sprint("b", i)})
			expect.Try(t, errors.Join(claimed, numbered, created, put))
		})
	}
	wg.Wait()
	expect.OK(t, s.Close())
	facts = func(r registry.Record) (string, string, error) { return string(r.Body), "one", nil }
	if assets, faults := Check(path, nil, facts); assets != n || len(faults) != 0 {
		t.Fatalf("got %d assets and the faults %v, want %d without faults", assets, faults, n)
	}
	file, err = os.ReadFile(path)
	expect.OK(t, err)
	return file, facts
}
