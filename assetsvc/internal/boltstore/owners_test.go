package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// openOwners opens a store. Its parameter `owner` is the function that returns the owner of an asset.
func openOwners(t *testing.T, path string, owner func(registry.Record) (string, error)) *Store {
	t.Helper()
	s := expect.Get(Open(path, Options{Now: time.Now, Owner: owner}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func inBody(r registry.Record) (string, error) { return string(r.Body), nil }

// The function `own` returns the ids in the list of a broker, in order.
func own(t *testing.T, s *Store, broker string) (ids []string) {
	t.Helper()
	page := expect.Get(s.Page(t.Context(), registry.Query{Owner: broker, Mode: registry.All, Limit: 10_000}))(t)
	for _, e := range page.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestAFileOfAFormerProgramGetsTheListsOfBrokers removes the index, or changes the file like an older program that
// does not know the index. The next Open must make the index, even if an earlier Open was interrupted while it made
// the index.
func TestAFileOfAFormerProgramGetsTheListsOfBrokers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	s := openOwners(t, path, inBody)
	var want []string
	create := func(count int) {
		t.Helper()
		for i := range count {
			owner := []string{"one", "two"}[i%2]
			r := registry.Record{ID: storetest.NewID(), Owner: owner, State: "draft", Body: []byte(owner)}
			expect.Get(s.Create(t.Context(), r))(t)
			if owner == "one" {
				want = append(want, r.ID)
			}
		}
	}
	check := func(doing string) {
		t.Helper()
		if got := own(t, s, "one"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %d assets, want %d in their order", doing, len(got), len(want))
		}
		if got := own(t, s, "two"); len(got) != len(want) {
			t.Errorf("%s: got %d assets of the other broker, want %d", doing, len(got), len(want))
		}
	}
	reopen := func(owner func(registry.Record) (string, error)) {
		t.Helper()
		expect.OK(t, s.Close())
		s = openOwners(t, path, owner)
	}
	create(60)
	check("a new file")
	forget := func() {
		t.Helper()
		expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error {
			return errors.Join(tx.DeleteBucket(brokerBucket), tx.Bucket(stateBucket).Delete(indexedKey))
		}))
	}
	forget()
	reopen(inBody)
	check("a file without the index")
	reopen(nil)
	check("the index that the last program has made")

	if err := s.file.Update(func(tx *bbolt.Tx) error { // as if an older program had given the asset to another broker
		stale, _ := registry.ParseID(want[0])
		place := placeOf(stale, registry.Record{})
		return errors.Join(tx.Bucket(brokerBucket).Put(enlistedAt("two", 1), place),
			tx.Bucket(stateBucket).Put(indexedKey, positionKey(1)))
	}); err != nil {
		t.Fatal(err)
	}
	reopen(inBody)
	check("a file whose index is out of date")

	forget()
	reopen(nil)
	expect.ErrOf(t, errNotIndexed, "without the index")(s.Page(t.Context(), registry.Query{Owner: "one", Limit: 1}))
	create(20) // the store does not add these assets to the index
	expect.OK(t, s.Close())
	broken, calls := errors.New("broken"), 0
	_, err := Open(path, Options{Now: time.Now, Owner: func(r registry.Record) (string, error) {
		if calls++; calls > 50 {
			return "", broken
		}
		return inBody(r)
	}})
	expect.FatalIf(t, !errors.Is(err, broken), "got %v, want the error of an interrupted index", err)
	s = openOwners(t, path, inBody)
	check("a file that a former program has written")
	create(2)
	check("after further writes")
}

// TestManyAssetsGetTheListsOfBrokers indexes more assets than one transaction of the index reads. The first attempt is
// interrupted in its second transaction. The list must have all assets after the second attempt. Later the index must
// not be made again.
func TestManyAssetsGetTheListsOfBrokers(t *testing.T) {
	const assets = 2*indexPiece + 1
	path := filepath.Join(t.TempDir(), "assets.db")
	s := openOwners(t, path, nil)
	var wg sync.WaitGroup
	for range assets {
		wg.Go(func() {
			if _, err := s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("one")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	err := s.file.Update(func(tx *bbolt.Tx) error {
		if _, count, err := indexFrom(tx, nil, inBody); err != nil || count != indexPiece {
			t.Errorf("got %d assets in one transaction, %v; want %d", count, err, indexPiece)
		}
		return tx.Bucket(stateBucket).Delete(indexedKey)
	})
	expect.OK(t, errors.Join(err, s.Close()))
	broken, calls := errors.New("broken"), 0
	if _, err := Open(path, Options{Now: time.Now, Owner: func(r registry.Record) (string, error) {
		if calls++; calls > indexPiece {
			return "", broken
		}
		return inBody(r)
	}}); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the error of an interrupted index", err)
	}
	for _, times := range []int{1, 0} {
		var log bytes.Buffer
		s = expect.Get(Open(path, Options{Now: time.Now, Owner: inBody, Log: slog.New(slog.NewTextHandler(&log,
			nil))}))(t)
		expect.Equal(t, len(own(t, s, "one")), assets, "assets of the broker")
		if got := strings.Count(log.String(), fmt.Sprint("assets=", assets)); got != times {
			t.Errorf("got the log %q, want an index of %d assets made %d times", &log, assets, times)
		}
		expect.OK(t, s.Close())
	}
}
