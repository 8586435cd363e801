// Package feed checks the invariants F1 to F5 of the feed, and R1 and R2 of the record of changes
// (docs/protocol.md, "Invariants"). It does so over HTTP, on several asset services, under faults: slow store
// operations, broken connections, kills, and freezes that last longer than the lease.
//
// The checker does not know how the feed works inside. It compares the entries that followers get with the answers
// that writers got, and with the assets at the end. It compares the record of each asset with the same answers, and
// rebuilds the asset from the patches in its record. Live followers read pages, long polls and streams from two
// gateways, and the same checks apply to each of these ways (docs/contract.md, "Streams"). Tests with naive
// registries and streams, which have known faults, show that the checker finds such faults (naive_test.go,
// fan_test.go).
//
// The drill (drill_test.go) adds a real replica set whose members are broken (members_test.go). It also reads files,
// the public log and a webhook, and checks the status of each answer (watch_test.go).
package feed
