package registry

import (
	"context"
	"errors"
	"slices"

	"asset-registry/assetsvc/internal/record"
)

// ErrNoCopy says that the record lacks a whole asset or a patch that is needed to make a past revision.
var ErrNoCopy = errors.New("the record has no copy of the asset after this change")

// logPage is the maximum number of changes that one read of an asset's history returns. A change has at most a
// little more than maxPatch bytes, so a read stays small.
const logPage = 32

// Past returns an asset as it was after the change at the given position, without its dateModified. It starts from the
// newest whole asset in the record at or below that position, and applies the patches after it. It holds at most
// logPage patches at a time. It returns ErrNoCopy if the record lacks the whole asset or one of the patches. It returns
// ErrLarge if the whole asset and the patches together have more bytes than the registry may read (Upto).
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

// base finds the newest change, at or below the given position, that needs no older change: it has a whole asset, or it
// is the creation. It returns the position of this change. The changes from there up to the given position are read in
// several reads, the newest changes first. The result `pages` has the value of LogQuery.Before for each of these reads.
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

// redo applies a change to an asset. It returns the asset after the change, and the number of bytes that it has read.
// It may change the given asset, so the caller must not use the given asset any more.
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

// extra reads the field Whole of a change from the record.
func (r *Registry) extra(ctx context.Context, c Revision) ([]byte, error) {
	found, err := r.log(ctx, c.ID, LogQuery{Before: c.Position + 1, Limit: 1, Whole: true})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Position != c.Position || len(found[0].Whole) == 0 {
		return nil, ErrNoCopy // the change was erased after it was read
	}
	text, err := inflateUpto(found[0].Whole, r.most)
	if err != nil && !errors.Is(err, ErrLarge) {
		return nil, damaged(c, err)
	}
	return text, err
}
