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
		if len(changes) == 0 {
			return nil, ErrNoCopy
		}
		for _, c := range changes {
			switch {
			case c.extra == wholeAsset:
				whole, err := r.extra(ctx, id, c, record.Parse)
				if err != nil {
					return nil, err
				}
				return apply(whole, patches)
			case c.extra == largePatch:
				patch, err := r.extra(ctx, id, c, parsePatch)
				if err != nil {
					return nil, err
				}
				c.Patch, _ = patch.(record.List)
			case c.Patch == nil:
				return nil, ErrNoCopy
			}
			patches = append(patches, c.Patch)
			if c.Revision == 1 {
				return apply(nil, patches)
			}
		}
		before = changes[len(changes)-1].Position
	}
}

// parsePatch reads a patch as a value.
func parsePatch(text []byte) (record.Value, error) {
	patch, err := record.ParsePatch(text)
	return patch, err
}

// extra reads what else the record has of a change.
func (r *Registry) extra(
	ctx context.Context, id string, c noted, parse func([]byte) (record.Value, error),
) (record.Value, error) {
	found, err := r.log(ctx, id, LogQuery{Before: c.Position + 1, Limit: 1, Whole: true})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Position != c.Position || found[0].text == nil {
		return nil, ErrNoCopy // it was erased meanwhile
	}
	value, err := parse(found[0].text)
	if err != nil {
		return nil, fmt.Errorf("decode the record of asset %s at %d: %w", id, c.Position, err)
	}
	return value, nil
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
