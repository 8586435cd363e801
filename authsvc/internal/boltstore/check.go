package boltstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/boltfile"
)

// maxFaults is the maximum number of faults in the contents of a file that Check returns.
const maxFaults = 20

// Check reads a file that no process has open. It returns the number of token records and keys, and all faults of
// the file. It does not change the file.
func Check(path string, secrets [][]byte) (records, keys int, faults []error) {
	faults = boltfile.Check(path, Options{Secrets: secrets}.file(), func(tx *bbolt.Tx) []error {
		found := checkAll(tx)
		if len(found) == 0 {
			records = tx.Bucket(recordBucket).Stats().KeyN
			keys = tx.Bucket(keyBucket).Stats().KeyN
		}
		return found
	})
	return records, keys, faults
}

// checkAll decodes every value, and looks up every reference.
func checkAll(tx *bbolt.Tx) (faults []error) {
	entries := int64(0)
	for _, c := range []struct {
		bucket []byte
		check  func(key, value []byte) error
	}{
		{recordBucket, func(key, value []byte) error { return second(token.Decode(string(key), value)) }},
		{transferBucket, func(key, value []byte) error { return second(token.DecodeTransfer(string(key), value)) }},
		{brokerBucket, func(_, value []byte) error { return second(apikey.DecodeBroker(value)) }},
		{keyBucket, func(_, value []byte) error { return second(apikey.DecodeKey(value)) }},
		{hashBucket, func(_, value []byte) error { return refersTo(tx, keyBucket, value) }},
		{toldBucket, func(_, value []byte) error {
			told, _, _ := strings.Cut(string(value), " ")
			return second(adminapi.ParseHead(told))
		}},
		{auditBucket, func(key, value []byte) error {
			var err error
			entries, err = checkEntry(key, value, entries+1)
			return err
		}},
		{countBucket, func(_, value []byte) error { return second(decodeCount(value)) }},
		{useBucket, func(_, value []byte) error { return second(decodeUses(value)) }},
	} {
		if err := tx.Bucket(c.bucket).ForEach(func(key, value []byte) error {
			if err := c.check(key, value); err != nil {
				faults = append(faults, fmt.Errorf("%w: %s, key %q: %w", boltfile.ErrDamaged, c.bucket, key, err))
			}
			if len(faults) == maxFaults {
				return boltfile.ErrDamaged // ends the loop
			}
			return nil
		}); err != nil {
			return faults
		}
	}
	return faults
}

func second[T any](_ T, err error) error { return err }

func refersTo(tx *bbolt.Tx, bucket, key []byte) error {
	if tx.Bucket(bucket).Get(key) == nil {
		return fmt.Errorf("it refers to %q in %s, which is missing", key, bucket)
	}
	return nil
}

// checkEntry checks that no entry of the audit log is missing, and returns the number of the entry. An entry that
// begins a new chain has any later number. The running service checks the seals (audit.Checker).
func checkEntry(key, value []byte, want int64) (int64, error) {
	var e adminapi.Entry
	if err := json.Unmarshal(value, &e); err != nil {
		return want, err
	}
	if e.Action == adminapi.LogLost {
		want = max(want, e.Seq)
	}
	if !bytes.Equal(key, number(want)) || e.Seq != want {
		return want, fmt.Errorf("it should be entry %d of the audit log", want)
	}
	return want, nil
}
