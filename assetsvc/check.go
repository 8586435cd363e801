package assetsvc

import (
	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
)

// Check returns how many assets the embedded store in a file has, and all that
// is wrong with it. No service may have the file open; it is left as it is.
func Check(file string, secrets [][]byte) (assets int, faults []error) {
	return boltstore.Check(file, secrets, func(r registry.Record) (string, error) {
		a, err := asset.Decode(r.Body)
		return a.AssetID(), err
	})
}
