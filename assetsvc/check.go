package assetsvc

import (
	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
)

// Check counts the assets of the embedded store in a file, and returns the faults that it finds in the file. No
// service may have the file open. Check does not change the file.
func Check(file string, secrets [][]byte) (assets int, faults []error) {
	return boltstore.Check(file, secrets, func(r registry.Record) (number, owner string, err error) {
		a, err := asset.Decode(r.Body)
		return a.AssetID(), a.Owner(), err
	})
}

// RepairLog repairs the public log in the embedded store in a file. It makes the damaged parts again from the
// record of changes, and returns how many parts it made. No service may have the file open. If the record gives a
// different log than the signed one, RepairLog changes nothing and returns an error.
func RepairLog(file string, secrets [][]byte) (repaired int, err error) {
	return boltstore.RepairLog(file, secrets)
}

// ownerOf returns the owner of a stored asset.
func ownerOf(r registry.Record) (string, error) {
	a, err := asset.Decode(r.Body)
	return a.Owner(), err
}
