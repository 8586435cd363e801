// Package publiclog makes the public log of changes (docs/log.md) from the record of changes, and reads it.
//
// The record determines the log: its leaves are the public changes below the horizon, in the order of their
// positions. The record below the horizon never changes (R2), so every process makes the same log.
//
// A Store keeps the full parts of the tree and one Head. A process first stores the new parts. Then it replaces
// the head, unless another process has replaced the head meanwhile. All processes compute the same parts, so
// parts that were stored before a crash do no harm.
//
// A process signs only the tree of the stored head. A new head always has the same tree or a tree that continues
// it. So two different trees of the same size are never signed.
package publiclog

import (
	"context"
	"fmt"
	"io/fs"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/translog"
)

// Head is the state of the log. The zero Head belongs to an empty log without a checkpoint.
type Head struct {
	Version    int64         // how often the stored head was replaced
	Position   int64         // the tree has all public changes up to this position
	Tree       translog.Tree // the right edge of the tree
	Checkpoint []byte        // the newest signed checkpoint, for this tree or an earlier one; nil: none
}

// ErrNoPart is returned for a part that the log does not have. Its cause is fs.ErrNotExist (translog.PartReader).
var ErrNoPart = fmt.Errorf("the log has no such part: %w", fs.ErrNotExist)

// Store keeps the log. It is safe for concurrent use. Each method reads or changes the state at a single
// moment.
type Store interface {
	// LogHead returns the head, or the zero Head if none is stored.
	LogHead(ctx context.Context) (Head, error)
	// ExtendLog stores full parts. Then it stores the head with the version head.Version+1, if the stored head
	// has the version head.Version. It reports whether it stored the head. After an error, it is unknown whether
	// the parts and the head are stored.
	ExtendLog(ctx context.Context, head Head, parts []translog.Part) (stored bool, err error)
	// LogPart returns the data of a full part, or ErrNoPart.
	LogPart(ctx context.Context, tile translog.Tile) ([]byte, error)
}

// Record is the record of changes (registry.Store).
type Record interface {
	Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error)
}
