// Package storetest has the tests that every store of the auth service must pass. They test every promise of
// the interfaces that a store implements.
package storetest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/console"
	"asset-registry/authsvc/internal/ending"
	"asset-registry/authsvc/internal/token"
)

// Opener opens the store with a name. If the same test opened that name before, the store still has its data.
// Otherwise the store is empty. If the test does not close the store, Opener closes it when the test ends.
type Opener func(t *testing.T, name string) Store

// Store is everything that a store of the auth service implements.
type Store interface {
	token.Store
	apikey.Finder
	apikey.Recorder
	admin.Store
	admin.Target
	audit.Log
	console.Sessions
	ending.Store
	// Ready returns nil if the store can make a change now.
	Ready(ctx context.Context) error
	// Close waits for writes in progress and releases all resources.
	Close() error
}

// Run runs the suite on a store.
func Run(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"load returns the saved record", testSave},
		{"load of an unknown asset is not found", testNotFound},
		{"a lower or equal generation replaces nothing", testGenerations},
		{"concurrent saves keep the newest generation", testConcurrent},
		{"records survive reopening", testReopen},
		{"a transfer is stored and claimed once", testTransfer},
		{"one of several concurrent claims wins", testClaim},
		{"an unclaimed transfer expires", testExpiry},

		{"an empty store has nothing", testEmpty},
		{"a change and its entry are stored together", testCommit},
		{"a change of a missing record is stale", testCommitMissing},
		{"a broker is removed", testRemoval},
		{"records are listed in pages", testRecords},
		{"each secret finds its key", testFindKey},
		{"a secret is valid as long as every rotation since lets it", testRotations},
		{"a reseal replaces only seals", testReseal},
		{"concurrent changes form one chain", testManyCommits},
		{"a secret keeps its newest uses, one for each address", testUses},
		{"a session that was ended stays so", testSessions},
		{"what is kept of a session changes only from what it was", testKeptSessions},
		{"one of several concurrent changes of a session wins", testConcurrentKeeps},
		{"counts add up", testCounts},
		{"a clock that was wrong removes no counts", testCountsOfAWrongClock},
		{"a log goes on after a gap", testGap},
		{"the confirmed entry is stored", testTold},
		{"keys survive reopening", testKeysReopen},
		{"a restored change equals the committed one", testRestore},

		{"a caller who has left changes nothing", testCancelled},
		{"a closed store refuses all calls", testClosed},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// equal fails the test if err is not nil or got differs from want.
func equal[T any](t *testing.T, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Errorf("got %v, want no error", err)
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
		t.Errorf("got the lines with +, want those with -:\n%s", diff)
	}
}
