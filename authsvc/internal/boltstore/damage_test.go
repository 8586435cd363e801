package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/storetest"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
)

// filled returns a store with the data of storetest.Fill, and its path.
func filled(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.db")
	s, err := Open(path, Options{})
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	storetest.Fill(t, s)
	return s, path
}

// spoil overwrites each value of a bucket with the same text.
func spoil(t *testing.T, s *Store, bucket []byte, value string) {
	t.Helper()
	err := s.file.Update(func(tx *bbolt.Tx) error {
		var keys [][]byte
		if err := tx.Bucket(bucket).ForEach(func(key, _ []byte) error {
			keys = append(keys, slices.Clone(key))
			return nil
		}); err != nil {
			return err
		}
		expect.ErrorIf(t, len(keys) == 0, "got no value in %s, want some", bucket)
		for _, key := range keys {
			if err := tx.Bucket(bucket).Put(key, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
	expect.OK(t, err)
}

func reopen(t *testing.T, s *Store, path string) *Store {
	t.Helper()
	expect.OK(t, s.Close())
	s, err := Open(path, Options{})
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

var sweepCall = storetest.Call{Name: "SweepTransfers", Do: func(ctx context.Context, s storetest.Store) error {
	_, err := s.SweepTransfers(ctx, "", time.Now())
	return err
}}

// TestADamagedValueIsAnError damages the values of one bucket. Calls that read the bucket must report this, and
// so must a check of the file. All other calls must work.
func TestADamagedValueIsAnError(t *testing.T) {
	for _, c := range []struct {
		bucket []byte
		reads  []string // names of the calls that read the bucket
	}{
		{recordBucket, []string{"Load", "Save"}},
		{transferBucket, []string{"LoadTransfer", "ClaimTransfer", "SettleTransfer", "SweepTransfers"}},
		{brokerBucket, []string{"Broker", "Brokers", "FindSecret"}},
		{keyBucket, []string{"Key", "Keys", "KeysBack", "FindSecret"}},
		{toldBucket, []string{"Told"}},
		{auditBucket, []string{"Head", "Entries", "Commit", "FindSecret"}},
		{countBucket, []string{"Counts", "AddUsage"}},
		{useBucket, []string{"Uses", "AddUsage"}},
	} {
		t.Run(string(c.bucket), func(t *testing.T) {
			s, path := filled(t)
			spoil(t, s, c.bucket, "{")
			// The calls that find damage come last, because the file then accepts no changes.
			for _, damaged := range []bool{false, true} {
				for _, call := range append(storetest.Calls(), sweepCall) {
					// Reseal and Tell are not called, because they would replace the damaged value.
					if damaged != slices.Contains(c.reads, call.Name) || call.Name == "Reseal" || call.Name == "Tell" {
						continue
					}
					if damaged {
						s = reopen(t, s, path)
					}
					if err := call.Do(t.Context(), s); errors.Is(err, boltfile.ErrDamaged) != damaged || !damaged && err != nil {
						t.Errorf("%s: got %v, want ErrDamaged: %v", call.Name, err, damaged)
					}
				}
			}
			expect.OK(t, s.Close())
			_, _, faults := Check(path, nil)
			if text := fmt.Sprint(faults); !strings.Contains(text, string(c.bucket)) {
				t.Errorf("check: got %v, want a fault of %s", faults, c.bucket)
			}
		})
	}
}

// TestACheckFindsWhatDoesNotFit checks files with well-formed values that contradict each other. The check must return
// exactly one fault for each contradiction.
func TestACheckFindsWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(tx *bbolt.Tx) error
		want  string // text in the only fault; "": no fault
	}{
		{"a whole file", func(*bbolt.Tx) error { return nil }, ""},
		{"a secret without a key", func(tx *bbolt.Tx) error { return tx.Bucket(hashBucket).Put([]byte("h"), []byte("none")) },
			`refers to "none" in admin-keys`},
		{"a gap in the audit log", func(tx *bbolt.Tx) error {
			return tx.Bucket(auditBucket).Put(number(3), tx.Bucket(auditBucket).Get(number(1)))
		}, "should be entry 2"},
		{"an entry with the right number in another place", func(tx *bbolt.Tx) error {
			second := bytes.Replace(tx.Bucket(auditBucket).Get(number(1)), []byte(`"seq":1`), []byte(`"seq":2`), 1)
			return tx.Bucket(auditBucket).Put(number(3), second)
		}, "should be entry 2"},
		{"an entry with another number", func(tx *bbolt.Tx) error {
			return tx.Bucket(auditBucket).Put(number(2), tx.Bucket(auditBucket).Get(number(1)))
		}, "should be entry 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, path := filled(t)
			expect.OK(t, errors.Join(s.file.Update(c.spoil), s.Close()))
			records, keys, faults := Check(path, nil)
			if c.want == "" {
				if len(faults) > 0 || records != 1 || keys != 1 {
					t.Errorf("got %d records, %d keys, %v; want 1 record, 1 key and no fault", records, keys, faults)
				}
				return
			}
			if text := fmt.Sprint(faults); len(faults) != 1 || !strings.Contains(text, c.want) || records+keys > 0 {
				t.Errorf("got %d records, %d keys, %v; want no number and one fault with %q", records, keys, faults, c.want)
			}
		})
	}
}

// TestACheckOfADamagedFileIsShort checks a file with many damaged values of two kinds. The check must not list
// all of them.
func TestACheckOfADamagedFileIsShort(t *testing.T) {
	s, path := filled(t)
	err := s.file.Update(func(tx *bbolt.Tx) error {
		for i := range 2 * maxFaults {
			key, value := []byte(fmt.Sprint("asset ", i)), []byte("{")
			if err := errors.Join(tx.Bucket(recordBucket).Put(key, value), tx.Bucket(useBucket).Put(key, value)); err != nil {
				return err
			}
		}
		return nil
	})
	expect.OK(t, errors.Join(err, s.Close()))
	if _, _, faults := Check(path, nil); len(faults) != maxFaults {
		t.Errorf("got %d faults, want the first %d", len(faults), maxFaults)
	}
}

// TestADamagedFileIsNotSwept lets another call find damage before the sweep. The sweep must return an error.
func TestADamagedFileIsNotSwept(t *testing.T) {
	s, _ := filled(t)
	due := token.Transfer{ID: "due", Expires: time.Now().Add(-time.Hour).UnixMicro()}
	expect.OK(t, s.CreateTransfer(t.Context(), due))
	spoil(t, s, useBucket, "{")
	if _, err := s.Uses(t.Context(), []string{"k1"}); !errors.Is(err, boltfile.ErrDamaged) {
		t.Fatalf("uses: got %v, want %v", err, boltfile.ErrDamaged)
	}
	expect.ErrOf(t, boltfile.ErrDamaged, "")(s.SweepTransfers(t.Context(), "", time.Now()))
}
