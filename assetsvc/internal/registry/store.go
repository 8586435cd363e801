package registry

import (
	"context"
	"errors"
	"math"

	"asset-registry/assetsvc/internal/asset"
)

// AnySize lets Store.Get read a body of any size.
const AnySize = math.MaxInt

// Record is an asset as a Store keeps it: the few facts a store acts on, and
// a body that is opaque to it.
type Record struct {
	ID       string       // 32 lowercase hex characters
	Position int64        // place in the feed: µs since the Unix epoch, given by the store
	Revision int64        // 1 when created, one more with each Replace
	Listed   bool         // stands in the feed; never goes back to false
	Test     bool         // stands in the test feed rather than the real one; when this changes it moves
	State    asset.Status // what a store counts it as; "" is not counted
	Sealed   string       // the sealed token record, opaque to all but authsvc
	Origin   string       // what a repeat of its creation is answered from, opaque to a store
	Body     []byte       // JSON object: the asset without its dateModified, which is Position
	Change   []byte       // what is to be known of the change that makes this revision, opaque to a store; Log has it, Get leaves it out
}

// MaxLog is of how many revisions of an asset, the newest, a Store keeps the Change.
const MaxLog = 100

// Revision is a change of an asset that was kept.
type Revision struct {
	Revision int64
	Position int64
	Change   []byte // as Record.Change
}

// History is an asset and what is kept of its changes, the newest first.
type History struct {
	Record
	Log []Revision
}

// Mode says which assets a listing shows (contract, section 5.1).
type Mode int

// The modes of a listing.
const (
	Real Mode = iota
	Test
	All
)

// Query asks for one page of the feed.
type Query struct {
	// Offset is exclusive: ascending pages hold positions above it, descending
	// pages positions below it. 0 starts at the oldest, or descending at the
	// newest.
	Offset     int64
	Limit      int // at least 1
	Descending bool
	Mode       Mode
	// Bodies fills in Entry.Body, and ends the page before its bodies have more
	// than so many bytes together, but not before its first entry. 0 is for a
	// page without bodies.
	Bodies int
}

// Entry is one asset in the feed.
type Entry struct {
	ID       string
	Position int64
	Body     []byte // as Record.Body, at this position; nil unless asked for
}

// Errors of a Store that callers act on. Any other error means that the store
// could not answer; after one from Create or Replace the write may have
// happened or not.
var (
	ErrNotFound = errors.New("no such asset")
	ErrExists   = errors.New("an asset with this id exists")
	ErrVoid     = errors.New("no asset can have this id any more")
	ErrStale    = errors.New("the asset has changed since it was read")
	ErrLarge    = errors.New("the asset's body is larger than asked for")
)

// Store keeps assets and orders their changes into the feed. It is safe for
// concurrent use. What it promises of the feed, under any concurrency and
// after any crash:
//
//   - F1, no loss: once Page has returned a page, nothing with a position up to
//     the last one on it becomes visible that was not visible to that page.
//   - F2, latest only: a listed asset stands in the feed once, at its newest
//     position.
//   - F3, unique and monotonic: no two changes share a position, and a change
//     acknowledged before another began has the lower one, whatever the wall
//     clock does.
//   - F4, no torn reads: after Page has shown an asset at a position, Get
//     returns it at that position or a later one.
//   - F5, prompt: a change is in the feed when it is acknowledged, or once the
//     changes are done that other processes had begun before it.
//
// A write that returned nil is durable: it survives the loss of the process
// and of the machine's power.
type Store interface {
	// Create stores a new asset at a position it gives it, as revision 1, and
	// returns that position. Position and Revision of r are ignored. It
	// returns ErrExists if the id is taken, and ErrVoid if a creation under it
	// has failed for good, and every other will.
	Create(ctx context.Context, r Record) (position int64, err error)
	// Replace stores r, at a new position that it returns, if the stored
	// revision is still r.Revision, raising it by one. Otherwise it returns
	// ErrStale, or ErrNotFound. r.Position is ignored.
	Replace(ctx context.Context, r Record) (position int64, err error)
	// Get returns an asset as of its last acknowledged or a later change, or
	// ErrNotFound. A body of more than most bytes is not read: ErrLarge.
	Get(ctx context.Context, id string, most int) (Record, error)
	// Log returns the changes of an asset that have a Change, the newest
	// first: those of its newest MaxLog revisions. A change is there when it is
	// acknowledged, and none is that was not made. It returns ErrNotFound as
	// Get does.
	Log(ctx context.Context, id string) ([]Revision, error)
	// Page returns up to q.Limit listed assets in the order q asks for.
	Page(ctx context.Context, q Query) ([]Entry, error)
	// NextNumber returns a number for an asset created on a day ("2026-11-20"),
	// counting from 1. A number that an acknowledged Create followed is never
	// returned again for that day; numbers may be left out.
	NextNumber(ctx context.Context, day string) (int, error)
	// Ready returns nil when the store can take a write now.
	Ready(ctx context.Context) error
	// Close waits for writes under way and frees what the store holds.
	Close() error
}
