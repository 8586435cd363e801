package assetsvc

import (
	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
)

// Check counts the assets of the embedded store in a file, and returns the faults of
// the file. No service may have the file open. Check does not change it.
func Check(file string, secrets [][]byte) (assets int, faults []error) {
	return boltstore.Check(file, secrets, func(r registry.Record) (number, owner string, err error) {
		a, err := asset.Decode(r.Body)
		return a.AssetID(), a.Owner(), err
	})
}

// RepairLog makes the damaged parts of the public log in the embedded store again from the
// record of changes, and returns their number. No service may have the file open. It changes
// nothing, and returns an error, if the record does not make the log that is signed.
func RepairLog(file string, secrets [][]byte) (repaired int, err error) {
	return boltstore.RepairLog(file, secrets)
}

// ownerOf returns the owner of a stored asset.
func ownerOf(r registry.Record) (string, error) {
	a, err := asset.Decode(r.Body)
	return a.Owner(), err
}
