// Package dataformat says how a store refuses data of a format that it cannot read.
package dataformat

import "fmt"

// UpgradesCommit is the last commit of this project that reads the formats before the
// first release.
const UpgradesCommit = "1a824b5de37c"

// Refusal returns the error of a store that cannot read its data. The first argument is the format of the data,
// and the second argument is the only format that the store can read. The error names the last version that
// reads the formats before the first release.
func Refusal(found, want string) error {
	return fmt.Errorf("the data have the format %q, not %q: "+
		"the commit %s is the last version that reads formats from before the first release", found, want, UpgradesCommit)
}
