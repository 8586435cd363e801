package registry

import (
	"context"
	"errors"
	"slices"

	"asset-registry/assetsvc/internal/record"
)

// ErrNoCopy means that the record does not reach back to a change of an asset.
var ErrNoCopy = errors.New("the record has no copy of the asset after this change")

// logPage is how many changes one read of an asset's history has. A change has at most
// maxPatch bytes and a few more.
const logPage = 32

// Past returns an asset as it was after the change at a position, without its
// dateModified. It makes it from the newest whole asset in the record and the patches
// since, of which it holds logPage at a time. It returns ErrNoCopy if the record does not
// reach back to the change, and ErrLarge if the whole asset and the patches together have
// more bytes than the registry may read (Upto).
func (r *Registry) Past(ctx context.Context, id string, position int64) (value record.Value, err error) {
	base, pages, err := r.base(ctx, id, position)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, before := range slices.Backward(pages) {
		log, err := r.log(ctx, id, LogQuery{Before: before, Limit: logPage})
		if err != nil {
			return nil, err
		}
		for _, revision := range slices.Backward(log) {
			if revision.Position < base {
				continue
			}
			var read int
			if value, read, err = r.redo(ctx, value, revision); err != nil {
				return nil, err
			}
			if size += read; size > r.most {
				return nil, ErrLarge
			}
		}
	}
	return value, nil
}

// base returns the position of the newest change, up to a position, that needs no older
// one: it has a whole asset, or it is the creation. Pages lead to the changes from
// there on, each as LogQuery.Before, the newest first.
func (r *Registry) base(ctx context.Context, id string, position int64) (base int64, pages []int64, err error) {
	for before := position + 1; ; {
		log, err := r.log(ctx, id, LogQuery{Before: before, Limit: logPage})
		if err != nil {
			return 0, nil, err
		}
		pages = append(pages, before)
		for _, revision := range log {
			c, err := revision.read()
			switch {
			case err != nil:
				return 0, nil, err
			case c.Extra == wholeAsset, revision.Revision == 1 && c.Patch != nil:
				return revision.Position, pages, nil
			case c.Extra != largePatch && c.Patch == nil:
				return 0, nil, ErrNoCopy
			}
		}
		if len(log) < logPage {
			return 0, nil, ErrNoCopy
		}
		before = log[len(log)-1].Position
	}
}

// redo takes an asset from the revision before to this one. It takes over the value, and
// returns how many bytes it has read.
func (r *Registry) redo(
	ctx context.Context, before record.Value, revision Revision,
) (after record.Value, read int, err error) {
	c, err := revision.read()
	if err != nil {
		return nil, 0, err
	}
	text := []byte(c.Patch)
	if c.Extra != "" {
		if text, err = r.extra(ctx, revision); err != nil {
			return nil, 0, err
		}
	}
	if text == nil {
		return nil, 0, ErrNoCopy
	}
	if c.Extra == wholeAsset {
		after, err = record.Parse(text)
	} else {
		var patch record.List
		if patch, err = record.ParsePatch(text); err == nil {
			after, err = record.Apply(before, patch)
		}
	}
	if err != nil {
		return nil, 0, damaged(revision, err)
	}
	return after, len(text), ctx.Err()
}

// extra reads what else the record has of a change.
func (r *Registry) extra(ctx context.Context, c Revision) ([]byte, error) {
	found, err := r.log(ctx, c.ID, LogQuery{Before: c.Position + 1, Limit: 1, Whole: true})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Position != c.Position || len(found[0].Whole) == 0 {
		return nil, ErrNoCopy // it was erased meanwhile
	}
	text, err := inflateUpto(found[0].Whole, r.most)
	if err != nil && !errors.Is(err, ErrLarge) {
		return nil, damaged(c, err)
	}
	return text, err
}
