package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/shared/durable"
	"asset-registry/shared/replica"
	"asset-registry/shared/translog"
)

// copied makes a replica readable for the asset service.
type copied struct {
	*replica.Replica
	ready func(context.Context) error
}

var _ assetsvc.Copy = copied{}

func assetOf(e replica.Entry) assetsvc.CopiedAsset {
	return assetsvc.CopiedAsset{ID: e.ID, Position: e.Position, Test: e.Test, Text: e.JSON}
}

func (c copied) Feed(q assetsvc.CopyQuery, visit func(assetsvc.CopiedAsset) bool) (upto int64, err error) {
	return c.Replica.Feed(replica.FeedQuery{
		After: q.After, Descending: q.Descending, Real: q.Real, Test: q.Test, Texts: q.Texts,
	}, func(e replica.Entry) bool { return visit(assetOf(e)) })
}

func (c copied) Range(from string, visit func(assetsvc.CopiedAsset) bool) error {
	return c.From(from, func(e replica.Entry) bool { return visit(assetOf(e)) })
}

func (c copied) Ready(ctx context.Context) error { return c.ready(ctx) }

// The method `has` reports whether the copy has an asset.
func (c copied) has(id string) (has bool, err error) {
	_, has, err = c.positionOf(id)
	return has, err
}

func (c copied) positionOf(id string) (position int64, has bool, err error) {
	err = c.From(id, func(e replica.Entry) bool {
		position, has = e.Position, e.ID == id
		return false
	})
	return position, has, err
}

// errDiffers is returned for a copy that does not have the same assets as the public log.
var errDiffers = errors.New("the copy differs from the public log")

// compare compares the copy with the leaves of the log that follow a position. For each leaf, the copy must have
// the asset at the leaf's position or later. For each public asset of the copy up to the last leaf, the log must
// have a leaf at the asset's position.
func (c copied) compare(after int64, leaves []translog.Leaf) error {
	if len(leaves) == 0 {
		return nil
	}
	public := make(map[int64]string, len(leaves))
	for _, leaf := range leaves {
		if leaf.Kind != translog.Withdraw {
			public[leaf.Position] = leaf.Asset
		}
	}
	last := leaves[len(leaves)-1].Position
	var without replica.Entry
	upto, err := c.Replica.Feed(replica.FeedQuery{After: after, Real: true}, func(e replica.Entry) bool {
		if e.Position <= last && public[e.Position] != e.ID {
			without = e
		}
		return e.Position <= last && without.ID == ""
	})
	switch {
	case err != nil:
		return err
	case upto < last:
		return assetsvc.ErrLogAhead
	case without.ID != "":
		return fmt.Errorf("%w: the log has no leaf of asset %s at %d", errDiffers, without.ID, without.Position)
	}
	for _, leaf := range leaves {
		position, has, err := c.positionOf(leaf.Asset)
		if err != nil {
			return err
		}
		if !has || position < leaf.Position {
			return fmt.Errorf("%w: the copy has no asset %s of %d or later", errDiffers, leaf.Asset, leaf.Position)
		}
	}
	return nil
}

// keepEqual stores the last time at which the copy was as new as the origin. The next start reads it.
func (k *keeper) keepEqual() {
	text := k.fresh.Equal().UTC().Format(time.RFC3339Nano) + "\n"
	if text == k.equalKept {
		return
	}
	if err := durable.WriteFile(filepath.Join(k.config.Data, equalFile), []byte(text)); err != nil {
		k.unkept.Failed(err)
		return
	}
	k.equalKept = text
}

// lastEqual returns a time at which the copy in a directory was certainly as new as the origin. It takes the later
// one of two times: the time that keepEqual stored, and the time of the copy's position, because the copy has all
// changes up to its position. For an incomplete copy it returns the current time, which does no harm: nothing is
// served before the copy has reached the end of the feed.
func lastEqual(dir string, s replica.State) (time.Time, error) {
	now := time.Now()
	if !isComplete(s) {
		return now, nil
	}
	position, err := s.Upto()
	if err != nil {
		return time.Time{}, err
	}
	equal := time.UnixMicro(position)
	text, err := os.ReadFile(filepath.Join(dir, equalFile))
	if err == nil {
		kept, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
		if err == nil && kept.After(equal) && !kept.After(now) { // a later time comes from a wrong clock
			equal = kept
		}
	}
	// A later position comes from the registry's clock. The result has a monotonic time: the clock may be set later.
	return now.Add(-max(0, now.Sub(equal))), nil
}
