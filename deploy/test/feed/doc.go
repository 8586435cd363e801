// Package feed checks the invariants F1 to F5 of the feed, and R1 and R2 of the record
// of changes (docs/architecture.md, "Invariants"), over HTTP, on several asset services under faults: slow store
// operations, broken connections, kills, and freezes longer than the lease.
//
// The checker knows nothing of the feed's protocol. It compares the entries of
// followers with the answers to writers and with the assets at the end. Then it reads
// the record of each asset, compares it with the same answers, and makes the asset
// again from its patches. Live followers read pages, long polls and streams from two
// gateways in front, and check the same of each way (docs/contract.md, "Streams"). Tests
// show that the checker finds the faults of naive registries and streams (naive_test.go,
// fan_test.go).
package feed
