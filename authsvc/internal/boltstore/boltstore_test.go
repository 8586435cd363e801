package boltstore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/storetest"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/boltfile"
)

// A file of an earlier version has transfers without an expiry.
func TestTransfersOfAnEarlierVersionGetTheirEnd(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "tokens.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	unclaimed := token.Transfer{ID: "unclaimed", Broker: "b", Date: 1}
	claimed := token.Transfer{ID: "claimed", Broker: "b", Date: 1, AssetID: "asset"}
	for _, made := range []token.Transfer{unclaimed, claimed} {
		if err := s.CreateTransfer(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	unclaimed.Expires = now.Add(time.Hour).UnixMicro()
	for _, end := range []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour)} { // the second sweep changes no expiry
		if next, err := s.SweepTransfers(t.Context(), "", now, end); err != nil || next != "" {
			t.Fatalf("sweep: got cursor %q, %v; want none", next, err)
		}
		for _, want := range []token.Transfer{unclaimed, claimed} {
			if got, err := s.LoadTransfer(t.Context(), want.ID); err != nil || got != want {
				t.Errorf("load: got %+v, %v; want %+v", got, err, want)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T, name string) storetest.Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// Version 1 of the file has separate buckets for unaudited keys.
func TestKeysOfVersion1AreUpgraded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.db")
	writeVersion1(t, path)
	if records, keys, faults := Check(path, nil); records != 0 || keys != 3 || len(faults) > 0 {
		t.Errorf("before the upgrade: got %d records, %d keys, %v; want 0, 3 and no fault", records, keys, faults)
	}
	for range 2 { // the second Open has nothing to upgrade
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			secret string
			want   apikey.Key
		}{
			{"one", apikey.Key{
				ID: "acme-1", Broker: "Акме", Unaudited: true,
				Settings: apikey.Settings{Name: "acme-1", Role: "broker", Levels: "13", Test: true},
			}},
			{"two", apikey.Key{
				ID: "key-1" + apikey.RenameSuffix, Broker: "b", Unaudited: true,
				Settings: apikey.Settings{Name: "key-1", Role: "concierge"},
			}},
		} {
			got, _, err := s.FindSecret(t.Context(), authapi.Hash(c.secret))
			if err != nil || len(got.Secrets) != 1 || got.Secrets[0].Hash != authapi.Hash(c.secret) {
				t.Errorf("%s: got %+v, %v; want the key with its secret", c.secret, got, err)
			}
			got.Created, got.Modified, got.Secrets = time.Time{}, time.Time{}, nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: got the lines with +, want those with -:\n%s", c.secret, diff)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, keys, faults := Check(path, nil); keys != 3 || len(faults) > 0 {
			t.Errorf("after the upgrade: got %d keys, %v; want 3 and no fault", keys, faults)
		}
	}
}

// writeVersion1 writes a file of version 1 with two unaudited keys and one audited key. The audited key and
// one unaudited key have the same id.
func writeVersion1(t *testing.T, path string) {
	t.Helper()
	o := Options{}.file()
	o.Format, o.Older = firstFormat, nil
	o.Buckets = append(o.Buckets, firstKeyBucket, firstKeyIDBucket)
	file, err := boltfile.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	administered := apikey.Key{ID: "key-1", Secrets: []apikey.Secret{{Number: 1, Hash: authapi.Hash("three")}}}
	const acme = `{"id":"acme-1","broker":"Акме","role":"broker","levels":"13t"}`
	err = file.Update(func(tx *bbolt.Tx) error {
		return errors.Join(
			putKey(tx, administered, authapi.Hash("three")),
			tx.Bucket(firstKeyBucket).Put([]byte(authapi.Hash("one")), []byte(acme)),
			tx.Bucket(firstKeyIDBucket).Put([]byte("acme-1"), []byte(authapi.Hash("one"))),
			tx.Bucket(firstKeyBucket).Put([]byte(authapi.Hash("two")), []byte(`{"id":"key-1","broker":"b","role":"concierge"}`)),
			tx.Bucket(firstKeyIDBucket).Put([]byte("key-1"), []byte(authapi.Hash("two"))),
		)
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
