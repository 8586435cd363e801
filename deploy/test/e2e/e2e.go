// Package e2e tests over HTTP the behaviour that docs/contract.md promises. Run works with any registry that has
// the sandbox keys and no rate limits. The scenarios import no code of the services.
package e2e

import (
	"testing"
)

// scenario is the test of one promise of the contract.
type scenario struct {
	name string
	run  func(*testing.T, api)
}

// inEveryVersion are the scenarios that run in each version of the API.
var inEveryVersion = []scenario{
	{"a created asset has the sent and the generated fields", testCreate},
	{"anybody reads an asset", testRead},
	{"the owner changes an asset", testChange},
	{"the versions differ only where the contract says so", testVersions},
	{"a client follows the feed", testFeed},
	{"streams have the entries of pages", testStreams},
	{"parts have addresses of their own", testParts},
	{"an asset goes from draft to sold", testSold},
	{"an asset goes from draft to deleted", testDeleted},
	{"an unchanged resource is answered with 304", testConditionalReads},
	{"a write with a stale ETag is refused", testConditionalWrites},
	{"an asset that is read again is the same until it changes", testReadAgain},
	{"a repeated creation returns the same asset", testRepeatedCreation},
	{"every change is a revision", testRevisions},
	{"a webhook belongs to its broker", testWebhooks},
	{"an administrator gives an asset new tokens", testRecovery},
}

// inVersion25 are the scenarios for which one version is enough.
var inVersion25 = []scenario{
	{"decimals keep every digit", testDecimals},
	{"text keeps every character", testText},
	{"times are exact", testTimes},
	{"the registry gives what is its own", testIgnoredInput},
	{"every bad field is named", testBadFields},
	{"bad bodies are refused", testBadBodies},
	{"bad queries are refused", testBadQueries},
	{"refused requests change nothing", testNothingChanges},
	{"API keys are checked", testKeys},
	{"owner tokens are checked", testTokens},
	{"checks run in the order of the contract", testOrder},
	{"unknown paths and methods are refused", testUnknown},
	{"accreditation and test mode limit creation", testAccreditation},
	{"refusals say how to correct the request", testReasons},
	{"a test-only key changes no real asset", testTestOnly},
	{"identifiers and coordinates keep their form", testAsSent},
	{"states change only as the contract allows", testStates},
	{"pretty and JSONP answers have their form", testPresentation},
	{"pages keep their limits and link to each other", testPages},
	{"a descending listing links to later changes", testDescending},
	{"real and test assets are listed apart", testModes},
	{"listings show the requested fields", testListingFields},
	{"no reading misses a change that was acknowledged before", testFreshReads},
	{"fifty concurrent changes of one asset all survive", testConcurrentChanges},
	{"a stream is resumed where it ended", testResumption},
	{"a long poll waits for a change", testLongPolls},
	{"a client has a limited number of streams", testStreamLimit},
	{"PUT replaces an asset", testReplace},
	{"documents have versions", testDocuments},
	{"thirty concurrent new parts all survive", testConcurrentParts},
	{"internal headers of a client are ignored", testClaims},
	{"an asset changes its owner", testTransfer},
	{"an asset changes its owner in each state", testTransferInEachState},
	{"the third owner sells an asset", testSecondBroker},
	{"one of many concurrent transfers wins", testTransferRaces},
	{"the server cookie pins a client to its data", testCluster},
	{"one of fifty writes with the same ETag wins", testConditionalRace},
	{"twenty concurrent repeats create one asset", testRepeatsAtOnce},
	{"an answer says whether a cache may keep it", testCaching},
	{"an administrator erases a past revision", testErasure},
	{"revisions that are erased at once are all erased", testErasuresAtOnce},
	{"the newest of many concurrent recoveries counts", testRecoveryRaces},
	{"a broker lists his own assets", testOwn},
	{"an owner removes a draft", testRemoval},
	{"a removed draft is not created again by a repeat", testRemovedRepeat},
	{"a draft is removed or published", testRemovalRaces},
	{"a reference stands for one asset", testReferences},
	{"many creations under one reference make one asset", testReferenceRaces},
	{"a snapshot and the feed are everything", testSnapshot},
	{"the public log has each change of a public asset", testPublicLog},
	{"each public revision of an asset has a proof", testProofs},
	{"a repeated creation returns the same webhook", testRepeatedWebhook},
}

// long are scenarios with hundreds of changes. Of several services on a slow database, the package feed and the suite
// of the store check the same with more changes.
var long = []scenario{
	{"a follower misses nothing under load", testFeedUnderLoad},
	{"random requests break nothing", testRandomCalls},
	{"the record of an asset has its whole life in pages", testLongLife},
}

// Run runs every scenario against the registry at base ("http://host:port"). Other assets in the registry, and
// other clients, do not disturb the scenarios.
func Run(t *testing.T, base string) {
	runIn(t, base, "2.4", "2.5", "0")
	runAll(t, api{base, "2.5"}, long)
}

// runIn runs the scenarios of the list inEveryVersion in the given versions, and all scenarios of the list
// inVersion25.
func runIn(t *testing.T, base string, versions ...string) {
	bookmarked := api{base, "2.5"}.awaitBookmark(t)
	for _, version := range versions {
		t.Run("version "+version, func(t *testing.T) { runAll(t, api{base, version}, inEveryVersion) })
	}
	runAll(t, api{base, "2.5"}, inVersion25)
	t.Run("documents have files", func(t *testing.T) { testFiles(t, api{base, "2.5"}) })
	t.Run("a follower of test assets gets bookmarks", bookmarked)
}

func runAll(t *testing.T, a api, scenarios []scenario) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.run(t, a) })
	}
}
