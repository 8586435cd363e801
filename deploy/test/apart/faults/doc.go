// Package faults tests the asset service while its store is unreachable, slow, silent
// or flapping, resets connections, or is no longer the primary. No acknowledged write
// may be lost, and every request gets its answer in time. It also takes each store and
// each service away from a whole registry, and compares the answer of every route with
// a table (table_test.go).
//
// The package is a separate module, because only these tests need the fault proxy.
package faults
