// Package publiclog makes the public log of changes (docs/log.md) from the record of
// changes, and reads it.
//
// The log is a function of the record: its leaves are the public changes below the
// horizon, in the order of their positions. The record below the horizon never changes
// (R2), so every process that makes the log makes the same one.
//
// A Store keeps the full parts of the tree and one Head. A process first stores the
// parts that are new, and then replaces the head, if no other process has done so since
// it read the head. A part is the same whoever stores it, so parts that were stored
// before a crash do no harm.
//
// A process signs only a tree that is in the stored head, and the head never gets a
// smaller or another tree. So the log never signs two trees of one size.
package publiclog

import (
	"context"
	"errors"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/translog"
)

// Head is the state of the log. The zero Head is an empty log without a checkpoint.
type Head struct {
	Version    int64         // counts the changes of the stored head
	Position   int64         // the tree has every public change up to here
	Tree       translog.Tree // the right edge of the tree
	Checkpoint []byte        // the newest signed checkpoint, of this tree or an earlier one; nil: none
}

// ErrNoPart is returned for a part that the log does not have.
var ErrNoPart = errors.New("the log has no such part")

// Store keeps the log. It is safe for concurrent use. Each method reads or changes the
// state as of one moment.
type Store interface {
	// LogHead returns the head, the zero Head if there is none.
	LogHead(ctx context.Context) (Head, error)
	// ExtendLog stores full parts, and then the head with the version head.Version+1 if
	// the stored head has the version head.Version. It reports whether it stored the
	// head. After an error the parts and the head may be stored or not.
	ExtendLog(ctx context.Context, head Head, parts []translog.Part) (stored bool, err error)
	// LogPart returns the data of a full part, or ErrNoPart.
	LogPart(ctx context.Context, tile translog.Tile) ([]byte, error)
}

// Record is the record of changes (registry.Store).
type Record interface {
	Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error)
}
