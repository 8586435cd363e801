package authsvc

import "asset-registry/authsvc/internal/boltstore"

// Check returns how many token records and keys the embedded store in a file
// has, and all that is wrong with it. No service may have the file open; it is
// left as it is.
func Check(file string, secrets [][]byte) (records, keys int, faults []error) {
	return boltstore.Check(file, secrets)
}
