package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/boltfile"
)

// maxFaults is how many faults of a store's contents Check tells.
const maxFaults = 20

// Check returns how many token records and keys a store has that nobody has
// open, and all that is wrong with it.
func Check(path string, secrets [][]byte) (records, keys int, faults []error) {
	faults = boltfile.Check(path, Options{Secrets: secrets}.file(), func(tx *bbolt.Tx) []error {
		records = tx.Bucket(recordBucket).Stats().KeyN
		keys = tx.Bucket(keyBucket).Stats().KeyN + tx.Bucket(adminKeyBucket).Stats().KeyN
		return checkAll(tx)
	})
	return records, keys, faults
}

// checkAll decodes every value, and looks for those that others refer to.
func checkAll(tx *bbolt.Tx) (faults []error) {
	entries := uint64(0)
	for _, c := range []struct {
		bucket []byte
		check  func(key, value []byte) error
	}{
		{recordBucket, func(key, value []byte) error { return second(token.Decode(string(key), value)) }},
		{transferBucket, func(key, value []byte) error { return second(token.DecodeTransfer(string(key), value)) }},
		{keyBucket, func(_, value []byte) error { return second(apikey.Decode(value)) }},
		{keyIDBucket, func(_, value []byte) error { return refersTo(tx, keyBucket, value) }},
		{brokerBucket, func(_, value []byte) error { return second(apikey.DecodeBroker(value)) }},
		{adminKeyBucket, func(_, value []byte) error { return second(apikey.DecodeKey(value)) }},
		{hashBucket, func(_, value []byte) error { return refersTo(tx, adminKeyBucket, value) }},
		{auditBucket, func(key, value []byte) error {
			entries++
			return checkEntry(key, value, entries)
		}},
	} {
		if err := tx.Bucket(c.bucket).ForEach(func(key, value []byte) error {
			if err := c.check(key, value); err != nil {
				faults = append(faults, fmt.Errorf("%w: %s, key %q: %w", boltfile.ErrDamaged, c.bucket, key, err))
			}
			if len(faults) == maxFaults {
				return boltfile.ErrDamaged // enough
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
		return fmt.Errorf("it refers to %q in %s, which is not there", key, bucket)
	}
	return nil
}

// checkEntry checks that the audit log has no gap. Its seals are checked by
// the running service (admin.Service.Check).
func checkEntry(key, value []byte, number uint64) error {
	var e adminapi.Entry
	if err := json.Unmarshal(value, &e); err != nil {
		return err
	}
	if want := binary.BigEndian.AppendUint64(nil, number); !bytes.Equal(key, want) || e.Seq != int64(number) {
		return fmt.Errorf("it should be entry %d of the audit log", number)
	}
	return nil
}
