// Package feed checks the feed's promises (registry.Store, F1 to F5) on
// asset services in processes of their own, over HTTP, while everything around
// them goes wrong: operations of the store stall, connections break with the
// answer under way, processes are killed, and frozen for longer than the lease.
//
// The checker knows nothing of how the feed is made. It compares what followers
// were shown with what writers were told and with what stands there in the end.
// It finds the losses of a naive registry (naive_test.go).
package feed
