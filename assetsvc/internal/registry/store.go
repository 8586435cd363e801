package registry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"asset-registry/assetsvc/internal/asset"
)

// AnySize is a limit for Store.Get that allows a body of any size.
const AnySize = math.MaxInt

// Record is an asset in the form that a Store keeps: some facts that the store uses, and a body that it does not
// look into.
type Record struct {
	ID       string       // 32 lowercase hex characters
	Position int64        // place in the feed, µs since the Unix epoch; assigned by the store
	Revision int64        // 1 when created, one more after each Replace
	Listed   bool         // is in the feed; once true, it stays true
	Test     bool         // is in the feed of test assets, not in the feed of real assets; may change
	State    asset.Status // state in which the Census counts the asset; "": not counted
	Sealed   string       // sealed token record, which only authsvc can read
	Origin   string       // needed to answer a repeat of the creation; a store does not look into it
	Body     []byte       // JSON object: the asset without its dateModified; Position holds this time
	Owner    string       // broker whose list has the asset, or "" if no list has the asset; Get leaves it empty
	Former   string       // only for Replace: the Owner that the stored revision has before the write
	Removed  bool         // the asset is removed; only an asset that was never listed may be removed
	Change   []byte       // about the change to this revision; a store does not look into it; Get does not return it
	Whole    []byte       // more about some changes; a store does not look into it; Get does not return it
	Entered  int64        // position where the asset entered its list; 0: the horizon has passed it; only Get sets it
}

// Revision is one change in the record of changes.
type Revision struct {
	ID       string // id of the asset
	Revision int64
	Position int64
	Before   int64  // position of the asset before the change; 0: the change created the asset
	Listed   bool   // as Record.Listed, after the change
	Test     bool   // as Record.Test, after the change
	Change   []byte // as Record.Change
	Whole    []byte // as Record.Whole; nil if the query did not ask for it
}

// LogQuery asks for changes of one asset, the newest first.
type LogQuery struct {
	Before int64 // position; changes below it are returned; 0 starts at the newest change
	Limit  int   // maximum number of changes, at least 1
	Whole  bool  // return Revision.Whole too
}

// ChangesQuery asks for changes of all assets, in the order of their positions.
type ChangesQuery struct {
	After int64 // position; changes above it are returned; 0 starts at the oldest change
	Limit int   // maximum number of changes, at least 1
	Bytes int   // maximum number of bytes of all changes together; the first change may have more
	Whole bool  // return Revision.Whole too

	// Recent lets the page end at a horizon that was read up to Recently before. It saves a reading if another one was
	// made meanwhile.
	Recent bool
}

// Recently is the age up to which a reading of the horizon serves all who may use a recent one. While the feed is
// followed, a reading is made each 100 ms.
const Recently = 125 * time.Millisecond

// ChangesPage is a part of the record.
type ChangesPage struct {
	Changes []Revision
	More    bool // the page ended because of the query's Limit or Bytes, and more changes follow
	// Upto is the position up to which the page is complete. The page has every change above the query's After, up to
	// the position Upto. No later read finds another change there. Upto is 0 in an empty store.
	Upto int64
}

// IDSize is the size of an asset's id in bytes. As a text, an id has 32 hexadecimal digits.
const IDSize = 16

// ParseID returns the 16 bytes of an asset's id. The second result is false if the id is malformed.
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

// Query asks for one page of the feed, or of the list of one broker's assets.
type Query struct {
	// Offset is not part of the page: an ascending page has positions above it, a descending page has positions
	// below it. 0 starts at the oldest position, or on a descending page at the newest.
	Offset     int64
	Limit      int // maximum number of entries, at least 1
	Descending bool
	Mode       Mode
	// If Owner is set, the page is from the list of this broker's assets: all assets with this Owner, listed or
	// not. "" asks for a page of the feed.
	Owner string
	State asset.Status // for a query with an Owner: only assets in this state; "": any state
	// Bodies is the largest number of bytes that all bodies on the page have together. The first body is on the page
	// even if it alone has more. 0 asks for a page without bodies.
	Bodies int
}

// HorizonQuery returns a query for a page without entries. The page's Upto is the horizon: every change up to it
// is stored.
func HorizonQuery() Query { return Query{Offset: math.MaxInt64 - 1, Limit: 1, Mode: All} }

// Entry is one asset in the feed.
type Entry struct {
	ID       string
	Position int64
	Test     bool   // as Record.Test
	Body     []byte // as Record.Body, at this position; nil if Query.Bodies is 0 or Moved is true
	Origin   string // as Record.Origin, for a Query with an Owner and Bodies

	Reference string // the broker's own name for the asset; only Registry.Own sets it

	// Moved says that the asset has a newer change that the feed does not show yet. The record of changes has
	// the asset as it was at this position.
	Moved bool
}

// FeedPage is a part of the feed.
type FeedPage struct {
	Entries []Entry
	// Upto is the position up to which an ascending page is complete. The page has every entry above the query's
	// Offset, up to the position Upto. No later read finds another entry there. Upto is 0 in an empty store, and has
	// no meaning on a descending page.
	Upto int64
}

// Errors of a Store. Any other error means that the store could not answer. If Create or Replace returns an
// error that is not listed here, the write may have happened or not.
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
// It is safe for concurrent use. It shares no memory with its callers: they may change a Body that they have
// passed or received. If the context has ended before the call, a read returns an error. A write may succeed
// even then. But if the call returns an error, the write never happens.
//
// The feed has these properties, under any concurrency and after any crash
// (docs/protocol.md, "Invariants"):
//
//   - F1, no loss: once Page has returned a page, nothing new becomes visible at a
//     position up to the page's Upto.
//   - F2, latest only: a listed asset is in the feed once, at its newest position.
//   - F3, unique and monotonic: no two changes share a position. A change that
//     begins after another was acknowledged has a higher position, whatever the
//     wall clocks do.
//   - F4, no torn reads: after Page has shown an asset at a position, Get returns
//     it at that position or a later one.
//   - F5, prompt: an acknowledged change is in the feed as soon as the changes that
//     other processes began before it are done.
//
// The list of a broker's assets has the properties F3, F4 and F5. Each walk along the list is complete: it finds
// every asset that is in the list from the beginning to the end of the walk. An asset that is being changed may
// stand in the list twice, with its old and its new content. So no walk loses a change, but a page may show an
// asset at or below an offset that another page was given before.
//
// The record of changes has these properties:
//
//   - R1, one record: each change that was made is in the record once, at its
//     position. A change that was not made is not in it.
//   - R2, final: once Changes has returned a page, the record up to the page's Upto
//     never changes, except that Rewrite may replace the content of a change.
//
// A write that returned nil is durable: it survives the end of the process and
// the loss of power.
type Store interface {
	// Create stores a new asset as revision 1 and returns its position. It ignores r.Position and r.Revision. It
	// returns ErrExists if an asset has the id already, and ErrVoid if an earlier creation has made the id
	// unusable for ever.
	Create(ctx context.Context, r Record) (position int64, err error)
	// Replace stores r as the next revision if the stored revision is r.Revision, and returns the new position.
	// Otherwise it returns ErrStale, or ErrNotFound if the asset does not exist. If several calls have the same
	// revision, one succeeds. r.Position must be the position of the stored revision, and r.Former its Owner. If
	// r.Removed is true, the write removes the asset: from then on every method treats it as an asset that does
	// not exist, but its id stays taken, and the record keeps its changes.
	Replace(ctx context.Context, r Record) (position int64, err error)
	// Get returns an asset as it was after its last acknowledged change or a later one. It returns ErrNotFound if the
	// asset does not exist or the id is malformed, and ErrLarge if the body has more bytes than the given limit
	// (most). For a removed asset it returns ErrRemoved, which wraps ErrNotFound, and a Record with only ID and
	// Origin.
	Get(ctx context.Context, id string, most int) (Record, error)
	// Look works like Get, but the Record has no Body. It calls the function see with the body instead, and returns its
	// error. The body is valid only during the call, and see must not change it. If see is nil, Look reads no body, and
	// the limit has no effect.
	Look(ctx context.Context, id string, most int, see func(body []byte) error) (Record, error)
	// Log returns changes of one asset, the newest first. It returns ErrNotFound in the same cases as Get.
	Log(ctx context.Context, id string, q LogQuery) ([]Revision, error)
	// Changes returns changes of all assets, in the order of their positions. If a change above q.After exists,
	// the page has at least one.
	Changes(ctx context.Context, q ChangesQuery) (ChangesPage, error)
	// Rewrite replaces the fields Change and Whole of a change that Log or Changes has returned, if the stored Change
	// is still old.Change. The result `done` reports whether it has replaced them. After an error, they are perhaps
	// replaced.
	Rewrite(ctx context.Context, old Revision, change, whole []byte) (done bool, err error)
	// ClaimReference makes a reference stand for a new id (to) if it stands for the old id (from) now. If the old id
	// is empty, the reference must stand for no id yet. ClaimReference returns the id for which the reference stands
	// after the call. This id is durable. If several calls run at the same time, one of them wins, and all return
	// its id. The parameter `key` comes from ReferenceKey. If the new id is empty, the call only reads: it returns "" for
	// a reference that stands for no id.
	ClaimReference(ctx context.Context, key, from, to string) (id string, err error)
	// Page returns up to q.Limit assets of the feed, or of one owner, in the order of their positions. A page
	// with bodies may end before q.Limit, but it has at least one entry if the query selects any.
	Page(ctx context.Context, q Query) (FeedPage, error)
	// NextNumber returns a number for an asset that is created on day, for example "2026-11-20". Numbers count
	// from 1 on each day, and some may be skipped. After an acknowledged Create, the numbers that were returned
	// before it are never returned again.
	NextNumber(ctx context.Context, day string) (int, error)
	// Ready returns nil if the store can take a write now.
	Ready(ctx context.Context) error
	// Close waits for the writes under way and frees all resources. Later writes return an error. Close may be
	// called more than once.
	Close() error
}
