package boltstore

import (
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/boltfile"
)

// maxFaults is the largest number of faults that a check reports.
const maxFaults = 100

// Check returns the faults of a store that no process has open. It also calls the function `check` for each file in
// the store, and returns the errors of this function. It does not change the store.
func Check(path string, secrets [][]byte, check func(file.File) error) []error {
	return boltfile.Check(path, options(secrets, nil), func(tx *bbolt.Tx) (faults []error) {
		counted := map[string]file.Usage{}
		cursor := tx.Bucket(filesBucket).Cursor()
		for id, value := cursor.First(); id != nil && len(faults) < maxFaults; id, value = cursor.Next() {
			f, err := decode(id, value)
			if err == nil {
				counted[f.Broker] = counted[f.Broker].Add(1, f.Usage())
				err = check(f)
			}
			if err != nil {
				faults = append(faults, err)
			}
		}
		if len(faults) > 0 {
			return faults
		}
		for broker, want := range counted {
			if got := usage(tx, broker); got != want {
				faults = append(faults, fmt.Errorf("%w: %s has %d waiting files and %d bytes, and %d and %d are counted",
					boltfile.ErrDamaged, broker, want.Waiting, want.Bytes, got.Waiting, got.Bytes))
			}
		}
		return faults
	})
}
