// Package e2e walks through what the registry promises its users, over HTTP,
// against any registry that has the sandbox keys and no rate limits. It knows
// the interface document and the contract, and nothing of the code.
package e2e

import (
	"testing"
)

// Run runs every scenario against the registry at base ("http://host:port").
// The scenarios do not mind what else is in the registry or goes on there.
func Run(t *testing.T, base string) {
	for _, version := range []string{"2.4", "2.5", "0"} {
		t.Run("version "+version, func(t *testing.T) {
			a := api{base, version}
			for _, c := range []struct {
				name     string
				scenario func(*testing.T, api)
			}{
				{"a new asset is what was sent and what the service adds", testCreate},
				{"anybody reads an asset", testRead},
				{"the owner changes an asset", testChange},
				{"the versions differ as they should", testVersions},
				{"the feed is followed", testFeed},
				{"parts are resources", testParts},
				{"an asset is sold", testSold},
				{"an asset is deleted", testDeleted},
				{"what a reader has is not sent again", testConditionalReads},
				{"what has changed since is not changed", testConditionalWrites},
				{"a creation is repeated", testRepeatedCreation},
				{"every change is kept", testRevisions},
			} {
				t.Run(c.name, func(t *testing.T) { c.scenario(t, a) })
			}
		})
	}
	a := api{base, "2.5"}
	for _, try := range []struct {
		name     string
		scenario func(*testing.T, api)
	}{
		{"decimals come back to the digit", testDecimals},
		{"text comes back to the character", testText},
		{"times are exact", testTimes},
		{"bad fields are all told", testBadFields},
		{"bad bodies are refused", testBadBodies},
		{"bad queries are refused", testBadQueries},
		{"bad requests change nothing", testNothingChanges},
		{"keys are checked", testKeys},
		{"owner tokens are checked", testTokens},
		{"checks come in the contract's order", testOrder},
		{"unknown paths and methods are told", testUnknown},
		{"accreditation and test mode", testAccreditation},
		{"refusals say what to do", testReasons},
		{"a test-only key changes no real asset", testTestOnly},
		{"ids and places come back as sent", testAsSent},
		{"states change as they may", testStates},
		{"answers look as asked", testPresentation},
		{"pages have bounds and pointers", testPages},
		{"a descending start turns forward", testDescending},
		{"modes are apart", testModes},
		{"listings show the fields asked for", testListingFields},
		{"fifty at once change one asset", testConcurrentChanges},
		{"following loses nothing under load", testFeedUnderLoad},
		{"a replaced asset is what was sent", testReplace},
		{"changes of parts are refused", testPartRefusals},
		{"documents have versions", testDocuments},
		{"thirty at once add parts", testConcurrentParts},
		{"what the outside claims is not believed", testClaims},
		{"no calls at random break anything", testRandomCalls},
		{"an asset changes hands", testTransfer},
		{"an asset is sold by its third owner", testSecondBroker},
		{"many race for an asset", testTransferRaces},
		{"a client keeps to its server", testCluster},
		{"of fifty who saw the same one wins", testConditionalRace},
		{"twenty at once repeat one creation", testRepeatsAtOnce},
	} {
		t.Run(try.name, func(t *testing.T) { try.scenario(t, a) })
	}
}
