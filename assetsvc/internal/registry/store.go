package registry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"asset-registry/assetsvc/internal/asset"
)

// AnySize is a limit for Store.Get that allows a body of any size.
const AnySize = math.MaxInt

// Record is an asset as a Store keeps it: the facts that a store acts on, and a
// body that is opaque to it.
type Record struct {
	ID       string       // 32 lowercase hex characters
	Position int64        // place in the feed, µs since the Unix epoch; the store gives it
	Revision int64        // 1 when created, one more after each Replace
	Listed   bool         // is in the feed; never goes back to false
	Test     bool         // is in the feed of test assets, not in that of real ones; may change
	State    asset.Status // counted in the Census; "": not counted
	Sealed   string       // sealed token record, opaque to all but authsvc
	Origin   string       // answers a repeat of the creation, opaque to a store
	Body     []byte       // JSON object: the asset without its dateModified, which is Position
	Owner    string       // the broker in whose list the asset is; "": in none; not in what Get returns
	Former   string       // for Replace: Owner at the stored revision
	Removed  bool         // there is no asset any more; for Replace of one that was never listed
	Change   []byte       // describes the change that makes this revision, opaque to a store; not in what Get returns
	Whole    []byte       // more of some changes, up to a whole asset, opaque to a store; not in what Get returns
	Entered  int64        // position where it entered its list, if pages may end before it; else 0; only Get sets it
}

// Revision is one change in the record of changes.
type Revision struct {
	ID       string // of the asset
	Revision int64
	Position int64
	Before   int64  // position of the asset that the change was made from; 0: it was created
	Listed   bool   // as Record.Listed, after the change
	Test     bool   // as Record.Test, after the change
	Change   []byte // as Record.Change
	Whole    []byte // as Record.Whole; nil if it was not asked for
}

// LogQuery asks for changes of one asset, the newest first.
type LogQuery struct {
	Before int64 // exclusive position; 0 starts at the newest change
	Limit  int   // most changes, at least 1
	Whole  bool  // return Revision.Whole too
}

// ChangesQuery asks for changes of all assets, in the order of their positions.
type ChangesQuery struct {
	After int64 // exclusive position; 0 starts at the oldest change
	Limit int   // most changes, at least 1
	Bytes int   // most bytes of the changes together; the first may have more
	Whole bool  // return Revision.Whole too
}

// ChangesPage is a part of the record.
type ChangesPage struct {
	Changes []Revision
	More    bool // the page ends at the query's Limit or Bytes, and the record has more
	// Upto is the position up to which the page is complete: later reads find no
	// other change after the query's position and up to here. 0 in an empty store.
	Upto int64
}

// IDSize is the size of an asset's id in bytes. As text it has 32 hexadecimal digits.
const IDSize = 16

// ParseID returns the 16 bytes of an asset's id; false if the id is malformed.
func ParseID(id string) ([]byte, bool) {
	key, err := hex.DecodeString(id)
	return key, err == nil && len(key) == IDSize && hex.EncodeToString(key) == id
}

// Mode selects the assets on a page (docs/contract.md, "Pages"). The zero Mode is
// Real.
type Mode int

// The modes of a page.
const (
	Real Mode = iota
	Test
	All
)

// Query asks for one page of the feed, or of the list of a broker's assets.
type Query struct {
	// Offset is exclusive: an ascending page has positions above it, a descending
	// page positions below it. 0 starts at the oldest position, or at the newest
	// of a descending page.
	Offset     int64
	Limit      int // most entries, at least 1
	Descending bool
	Mode       Mode
	// Owner asks for a page of the list of a broker's assets: all that have this Owner, also
	// those that are not listed. "": a page of the feed.
	Owner string
	State asset.Status // of the assets of an Owner; "": any
	// Bodies is the most bytes that the bodies on the page have together; the
	// first body may have more. 0 asks for a page without bodies.
	Bodies int
}

// HorizonQuery returns a query whose page has no entries. Its Upto is the position up to
// which every change is stored.
func HorizonQuery() Query { return Query{Offset: math.MaxInt64 - 1, Limit: 1, Mode: All} }

// Entry is one asset in the feed.
type Entry struct {
	ID       string
	Position int64
	Test     bool   // as Record.Test
	Body     []byte // as Record.Body, at this position; nil if Query.Bodies is 0, or Moved
	Origin   string // as Record.Origin, for a Query with an Owner and Bodies

	Reference string // of the broker whose list it is; only Registry.Own sets it

	// Moved is true for an asset whose newer change is not in the feed yet. The record
	// has the asset as it was at this position.
	Moved bool
}

// FeedPage is a part of the feed.
type FeedPage struct {
	Entries []Entry
	// Upto is the position up to which an ascending page is complete: later reads find
	// no other entry after the query's offset and up to here. It is 0 in an empty
	// store, and of no meaning on a descending page.
	Upto int64
}

// Errors of a Store. Any other error means that the store could not answer. After
// such an error from Create or Replace, the write may have happened or not.
var (
	ErrNotFound = errors.New("no such asset")
	ErrExists   = errors.New("an asset with this id exists")
	ErrRemoved  = fmt.Errorf("%w: it was removed", ErrNotFound)
	ErrVoid     = errors.New("this id can no longer be used")
	ErrStale    = errors.New("the asset has changed since it was read")
	ErrLarge    = errors.New("the asset's body is larger than the limit")
)

// Store keeps assets and orders their changes into the feed.
//
// It is safe for concurrent use. It shares no memory with its callers: they may
// change a Body that they have passed or received. If the context has ended before
// the call, a read returns an error, and a write that returns one never happens.
//
// The feed has these properties, under any concurrency and after any crash
// (docs/architecture.md, "Invariants"):
//
//   - F1, no loss: once Page has returned a page, nothing with a position up to
//     the page's Upto becomes visible that was not visible to that page.
//   - F2, latest only: a listed asset is in the feed once, at its newest position.
//   - F3, unique and monotonic: no two changes share a position. A change that
//     begins after another was acknowledged has a higher position, whatever the
//     wall clocks do.
//   - F4, no torn reads: after Page has shown an asset at a position, Get returns
//     it at that position or a later one.
//   - F5, prompt: an acknowledged change is in the feed as soon as the changes are
//     done that other processes began before it.
//
// The list of a broker's assets has F3, F4 and F5, and each walk along it is whole: it has every
// asset that was in the list when it began and stays in it. An asset that changes may stand in
// the list twice, as it was and as it is. So no walk loses a change, but a page may show an
// asset at or below an offset that another page was given before.
//
// The record of changes has these properties too:
//
//   - R1, one record: each change that was made is in the record once, at its
//     position. A change that was not made is not in it.
//   - R2, final: once Changes has returned a page, the record up to the page's Upto
//     never changes, except for the content of what Rewrite rewrites.
//
// A write that returned nil is durable: it survives the end of the process and
// the loss of power.
type Store interface {
	// Create stores a new asset as revision 1 and returns its position. It
	// ignores Position and Revision of r. It returns ErrExists if the id is taken,
	// and ErrVoid if an earlier creation has made the id unusable for ever.
	Create(ctx context.Context, r Record) (position int64, err error)
	// Replace stores r as the next revision at a new position, which it returns,
	// if the stored revision is r.Revision. Otherwise it returns ErrStale, or
	// ErrNotFound if there is no asset. Of several calls with the same revision
	// one succeeds. r.Position must be the position at that revision, and r.Former
	// its Owner. If r.Removed, the asset is gone with the write: every method treats
	// it as one that does not exist, but its id stays taken, and the record keeps its
	// changes.
	Replace(ctx context.Context, r Record) (position int64, err error)
	// Get returns an asset as of its last acknowledged change or a later one. It
	// returns ErrNotFound if there is none, also for a malformed id, and ErrLarge
	// if the body has more than most bytes. For a removed asset it returns ErrRemoved, which
	// is an ErrNotFound, and a Record with ID and Origin.
	Get(ctx context.Context, id string, most int) (Record, error)
	// Log returns changes of one asset, the newest first. It returns ErrNotFound as
	// Get does.
	Log(ctx context.Context, id string, q LogQuery) ([]Revision, error)
	// Changes returns changes of all assets, in the order of their positions. A page
	// has a change if there is one after q.After.
	Changes(ctx context.Context, q ChangesQuery) (ChangesPage, error)
	// Rewrite replaces the Change and the Whole of a change that Log or Changes has
	// returned, if its Change is still old.Change. It reports whether it did. After an
	// error it may have done so or not.
	Rewrite(ctx context.Context, old Revision, change, whole []byte) (done bool, err error)
	// ClaimReference lets a reference stand for the id to, if it stands for from; "" is for a
	// reference that stands for no id. It returns the id that the reference stands for, once that
	// is durable. Of several calls at the same time one decides. A key is one of ReferenceKey.
	ClaimReference(ctx context.Context, key, from, to string) (id string, err error)
	// Page returns up to q.Limit assets of the feed, or of an owner, in the order of their
	// positions.
	// A page with bodies may end before q.Limit, but has an entry if there is one.
	Page(ctx context.Context, q Query) (FeedPage, error)
	// NextNumber returns a number for an asset created on a day ("2026-11-20").
	// Numbers count from 1 for each day. After an acknowledged Create, the numbers
	// returned before it are never returned again. Numbers may be skipped.
	NextNumber(ctx context.Context, day string) (int, error)
	// Ready returns nil if the store can take a write now.
	Ready(ctx context.Context) error
	// Close waits for the writes under way and frees the resources. Later writes
	// return an error. Close may be called again.
	Close() error
}
