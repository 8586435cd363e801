package registry

import (
	"context"
	"errors"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/sleep"
)

// The pauses between two reads of the horizon have these limits.
const (
	firstListPause = 5 * time.Millisecond
	mostListPause  = 80 * time.Millisecond
)

// awaitList waits until the list has an asset that entered the list at the given position. It waits for the horizon
// to reach this position, because then no process has an unfinished change at a lower position. From then on, each
// walk over the whole list has the asset. If awaitList cannot read the horizon, or ctx ends, it returns a fault of
// kind Unavailable; the asset is changed nevertheless.
func (r *Registry) awaitList(ctx context.Context, position int64) error {
	for pause := firstListPause; ; pause = min(2*pause, mostListPause) {
		page, err := r.store.Page(ctx, HorizonQuery())
		switch {
		case err != nil:
			return Unavailable("wait until the list has the asset", err)
		case page.Upto >= position:
			return nil
		case !sleep.For(ctx, pause):
			return Unavailable("wait until the list has the asset", context.Cause(ctx))
		}
	}
}

// mostFormer is the maximum number of former bodies on a page. Each of these bodies takes a few reads of the
// record.
const mostFormer = 16

// withFormer adds bodies to the entries of assets that have moved. Each body is the asset as it was at the entry's
// position. If a page needs more than mostFormer such bodies, it ends earlier.
func (r *Registry) withFormer(ctx context.Context, page FeedPage) (FeedPage, error) {
	made := 0
	for i := range page.Entries {
		e := &page.Entries[i]
		if !e.Moved {
			continue
		}
		if made++; made > mostFormer {
			page.Entries, page.Upto = page.Entries[:i], page.Entries[i-1].Position
			break
		}
		var err error
		if e.Body, err = r.former(ctx, e.ID, e.Position); err != nil {
			return FeedPage{}, err
		}
	}
	return page, nil
}

// former returns the body of an asset as it was at a position. If this body was erased from the record, or is too
// large to read, the result is the newest body.
func (r *Registry) former(ctx context.Context, id string, position int64) ([]byte, error) {
	past, err := r.Past(ctx, id, position)
	switch {
	case err == nil:
		return record.Append(nil, past), nil
	case !errors.Is(err, ErrNoCopy) && !errors.Is(err, ErrLarge):
		return nil, err
	}
	newest, err := r.store.Get(ctx, id, AnySize)
	if err != nil {
		return nil, Unavailable("list assets", err)
	}
	return newest.Body, nil
}
