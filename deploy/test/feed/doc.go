// Package feed checks the invariants F1 to F5 of the feed (docs/architecture.md,
// "Invariants") over HTTP, on several asset services under faults: slow store
// operations, broken connections, kills, and freezes longer than the lease.
//
// The checker knows nothing of the feed's protocol. It compares the entries of
// followers with the answers to writers and with the assets at the end. A test shows
// that it finds the losses of a naive registry (naive_test.go).
package feed
