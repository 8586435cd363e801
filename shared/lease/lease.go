// Package lease lets gateways answer readings of assets from memory while asset services,
// the writers, change the assets. docs/architecture.md, "Between processes", describes the
// protocol and says why each part is needed. deploy/test/model/answers.pml is its model.
//
// A Grantor is the side of a writer. It grants leases to gateways, and announces each batch
// of changes to all that may hold one before the batch is written. A Holder is the side of
// a gateway. Its memory may be used while it has leases of all writers.
//
// # Messages
//
// A gateway has one connection to each writer. It asks for it on the port of HTTP: GET Path
// with "Upgrade: registry-leases/1" and the signed identity of a service. Both sides send
// messages of one line of JSON. The field "kind" of a message is
//
//	ask       a gateway wants a lease; the next ask follows the answer
//	grant     the answer: "writer", "members", "left" in ms, "batch" and "ids" in flight
//	none      the answer of a writer that can grant nothing now
//	announce  "batch" will write the assets "ids"
//	confirm   the gateway has dropped the assets of "batch"
//	done      "batch" is written, or never will be
//	release   the gateway stops; it uses no lease of this connection any more
//
// # Clocks
//
// Only durations count. A side that must not be late (a gateway with its lease, a writer
// with the age of its renewal) takes the longer of two clocks, the monotonic one and the
// wall clock, because the monotonic clock stops while a machine is suspended. A side that
// must not be early (a writer that waits) takes the monotonic clock. The speeds of two
// machines' clocks must differ by less than Margin in Length, which is 10 %.
package lease

import "time"

const (
	// Length is how long a lease lasts at most. All services of a registry have the same.
	Length = 2 * time.Second
	// Margin is how much earlier than the writer a gateway ends a lease.
	Margin = 200 * time.Millisecond
	// Every is the time between two renewals of a writer, and between two asks.
	Every = 500 * time.Millisecond
	// Path is the target of the request for a connection.
	Path = "/.leases"
	// Protocol is the name in Upgrade.
	Protocol = "registry-leases/1"

	// silence ends a connection on which nothing came for so long. A gateway asks, and a
	// writer answers, several times in it.
	silence = 2 * Length
)

// isBefore reports whether a moment is before an end by both clocks.
func isBefore(at, end time.Time) bool { return at.Before(end) && at.UnixNano() < end.UnixNano() }

// left returns the time from a moment to an end, by the clock that says less.
func left(at, end time.Time) time.Duration {
	return min(end.Sub(at), time.Duration(end.UnixNano()-at.UnixNano()))
}
