package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"asset-registry/assetsvc/internal/record"
)

// ErrNoCopy means that the record does not reach back to a change of an asset.
var ErrNoCopy = errors.New("the record has no copy of the asset after this change")

// Past returns an asset as it was after the change at a position, without its
// dateModified. It makes it from the newest whole asset in the record and the patches
// since. It returns ErrNoCopy if the record does not reach back to the change.
func (r *Registry) Past(ctx context.Context, id string, position int64) (record.Value, error) {
	var patches []record.List // the newest first
	for before := position + 1; ; {
		changes, err := r.log(ctx, id, LogQuery{Before: before, Limit: wholeEvery})
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if c.whole {
				return r.rebuild(ctx, id, c.Position, patches)
			}
			if c.Patch == nil {
				return nil, ErrNoCopy
			}
			patches = append(patches, c.Patch)
			if c.Revision == 1 {
				return apply(nil, patches)
			}
		}
		if len(changes) == 0 {
			return nil, ErrNoCopy
		}
		before = changes[len(changes)-1].Position
	}
}

// rebuild applies patches to the whole asset that the record has at a position.
func (r *Registry) rebuild(ctx context.Context, id string, position int64, patches []record.List) (record.Value, error) {
	whole, err := r.log(ctx, id, LogQuery{Before: position + 1, Limit: 1, Whole: true})
	if err != nil {
		return nil, err
	}
	if len(whole) == 0 || whole[0].Position != position || whole[0].asset == nil {
		return nil, ErrNoCopy // it was erased meanwhile
	}
	value, err := record.Parse(whole[0].asset)
	if err != nil {
		return nil, fmt.Errorf("decode asset %s at %d: %w", id, position, err)
	}
	return apply(value, patches)
}

// apply applies patches, of which the last is the oldest.
func apply(value record.Value, patches []record.List) (_ record.Value, err error) {
	for _, patch := range slices.Backward(patches) {
		if value, err = record.Apply(value, patch); err != nil {
			return nil, err
		}
	}
	return value, nil
}
