package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
)

// Values of place.List: which list of the feed an asset is in (feed.Place).
const (
	noList = iota
	realList
	testList
)

// place is how a document stores a feed.Place.
type place struct {
	Position int64 `bson:"p"`
	List     int   `bson:"l,omitempty"`
}

func placesOf(t feed.Trail) []place {
	places := make([]place, len(t))
	for i, p := range t {
		places[i] = place(p)
	}
	return places
}

// trail returns all places of an asset that the document has: its former places, and last its current place.
func (d document) trail() feed.Trail {
	var t feed.Trail
	for _, p := range d.Former {
		t = append(t, feed.Place(p))
	}
	return append(t, feed.Place{Position: d.Position, List: d.list()})
}

func (d document) list() int {
	switch {
	case !d.Listed:
		return noList
	case d.Test:
		return testList
	default:
		return realList
	}
}

// passed notes that the horizon has reached this position. It ignores a position below one that it has noted
// before.
func (d *database) passed(horizon int64) {
	for {
		known := d.horizon.Load()
		if known >= horizon || d.horizon.CompareAndSwap(known, horizon) {
			return
		}
	}
}

// former has the trails of the assets that a batch changes, as they are before the batch changes them.
type former struct {
	first int64 // first position of the batch
	of    map[string]feed.Trail
}

// lookUp reads the trails of the assets that a batch changes. The place of a revision never changes, so lookUp
// may run before the batch is open.
func (f feedStore) lookUp(ctx context.Context, writes []feed.Write) error {
	revisions := make(map[string]int64, len(writes))
	var ids []string
	for _, w := range writes {
		if w.Revision > 0 {
			ids = append(ids, w.ID)
			revisions[w.ID] = w.Revision
		}
	}
	looked := &former{first: writes[0].Position, of: make(map[string]feed.Trail, len(ids))}
	if len(ids) > 0 {
		var found []document
		err := f.do(ctx, func(ctx context.Context) (err error) {
			found, err = f.page(ctx, withIDs(ids), options.Find().
				SetProjection(only("position", "revision", "listed", "test", "former")))
			return err
		})
		if err != nil {
			return fmt.Errorf("read where assets stand: %w", err)
		}
		horizon := f.horizon.Load()
		for _, d := range found {
			if d.Revision == revisions[d.ID] { // with another revision, the store will refuse the write
				looked.of[d.ID] = d.trail().Since(horizon)
			}
		}
	}
	f.looked.Store(looked)
	return nil
}

// formerOf returns the trails of the assets in a batch, as they are before the batch changes them.
func (f feedStore) formerOf(ctx context.Context, writes []feed.Write) (map[string]feed.Trail, error) {
	looked := f.looked.Load()
	if looked == nil || looked.first != writes[0].Position {
		if err := f.lookUp(ctx, writes); err != nil {
			return nil, err
		}
		looked = f.looked.Load()
	}
	return looked.of, nil
}

// errUnknownPlace is returned to a reader that read the clock too long ago. An asset has changed since then, and
// its trail no longer has the place where the asset stood then.
var errUnknownPlace = errors.New("the place of an asset at this horizon is forgotten")

// mostAbove is the largest number of assets above the horizon that a page looks at. MongoDB reads each of them in
// full.
const mostAbove = 10_000

// errManyAbove is returned while more assets than database.mostAbove are above the horizon.
var errManyAbove = errors.New("too many assets have changed since a batch was opened that is still open")

// boundAbove returns errManyAbove if more than mostAbove assets are above the horizon. No two assets share a
// position, so it asks the database only if there are more than mostAbove positions above the horizon. The query
// reads at most mostAbove + 1 keys of an index, and no document.
func (d *database) boundAbove(ctx context.Context, q registry.Query, last, horizon int64) error {
	if last-horizon <= d.mostAbove {
		return nil
	}
	found, err := d.page(ctx, above(q, horizon), upwards(q).SetProjection(only("position")).
		SetSkip(d.mostAbove).SetLimit(1))
	switch {
	case err != nil:
		return fmt.Errorf("count assets above the horizon: %w", err)
	case len(found) > 0:
		return errManyAbove
	}
	return nil
}

// The function `above` returns a filter for the assets above a horizon, in all modes and states. These are assets of
// the feed, or of the broker in q.
func above(q registry.Query, horizon int64) bson.D {
	return append(selected(inAll(q)), bson.E{Key: "position", Value: bson.D{{Key: "$gt", Value: horizon}}})
}

// The function `upwards` returns options for a query with a filter made by the function `above`. The query then reads
// the assets in the order of their positions.
func upwards(q registry.Query) *options.FindOptionsBuilder {
	return options.Find().SetHint(indexOf(inAll(q))).SetSort(bson.D{{Key: "position", Value: 1}})
}

// moved returns entries for assets that have moved. In the feed up to the horizon, each of them stands at a
// position in the range; now it has a newer position above the horizon. Each entry has the position that the asset
// had at the horizon, and no body.
//
// The method must be called after the entries of the range are read. Then it also finds assets that have left the
// range since. The query reads positions upwards, and assets only move upwards. So it misses no asset, but may find
// one twice.
//
// A place in a trail has the list of the feed, but neither the owner nor the state. So a broker's list uses the
// owner and the state that the asset has now.
func (d *database) moved(ctx context.Context, q registry.Query, after, upto, horizon int64) ([]document, error) {
	there := bson.E{Key: "$or", Value: bson.A{
		bson.D{{Key: "former.p", Value: bson.D{{Key: "$gt", Value: after}, {Key: "$lte", Value: upto}}}},
		bson.D{{Key: "former.0.p", Value: bson.D{{Key: "$gt", Value: horizon}}}},
	}}
	found, err := d.page(ctx, append(above(q, horizon), there),
		upwards(q).SetProjection(only("position", "listed", "test", "state", "size", "former", "origin")))
	if err != nil {
		return nil, fmt.Errorf("read assets that have moved: %w", err)
	}
	var moved []document
	for _, a := range found {
		at, known := a.trail().At(horizon)
		switch {
		case !known:
			return nil, errUnknownPlace
		case at.Position <= after || at.Position > upto:
		case q.Owner != "":
			if inMode(q.Mode, a.Test) && (q.State == "" || a.State == q.State) {
				moved = append(moved, document{
					ID: a.ID, Position: at.Position, Test: a.Test, Size: a.Size, Origin: a.Origin, moved: true,
				})
			}
		case at.List != noList && inMode(q.Mode, at.List == testList):
			moved = append(moved, document{
				ID: a.ID, Position: at.Position, Test: at.List == testList, Size: a.Size, moved: true,
			})
		}
	}
	return moved, nil
}

// inMode reports whether a mode selects test assets (if test is true) or real assets (if it is false).
func inMode(mode registry.Mode, test bool) bool {
	return mode == registry.All || test == (mode == registry.Test)
}

// merge returns the first q.Limit entries of both lists together. If an asset moved during the reads, it may be in
// both lists, or twice in the list `moved`. The result has only one entry of this asset.
func merge(q registry.Query, found, moved []document) []document {
	there := make(map[string]bool, len(found))
	for _, d := range found {
		there[d.ID] = true
	}
	for _, d := range moved {
		if !there[d.ID] {
			there[d.ID] = true
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b document) int {
		if q.Descending {
			a, b = b, a
		}
		return cmp.Compare(a.Position, b.Position)
	})
	return found[:min(len(found), q.Limit)]
}

// SealedAfter returns the token records of the next assets in the order of their ids, at most as many as the
// parameter `limit` says. It begins after the given id, or with the first asset if the id is empty.
func (s *Store) SealedAfter(ctx context.Context, after string, limit int) ([]registry.Sealed, error) {
	filter := bson.D{afterID(after), {Key: "revision", Value: bson.D{{Key: "$gte", Value: 0}}}} // no voids
	var found []document
	err := s.db.do(ctx, func(ctx context.Context) (err error) {
		found, err = s.db.page(ctx, filter, options.Find().
			SetSort(bson.D{{Key: "_id", Value: 1}}).
			SetLimit(int64(limit)).
			SetProjection(only("sealed")))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read token records: %w", err)
	}
	sealed := make([]registry.Sealed, len(found))
	for i, d := range found {
		sealed[i] = registry.Sealed{ID: d.ID, Sealed: d.Sealed}
	}
	return sealed, nil
}

// Reseal replaces the token record of an asset if the asset still has the old token record. It changes neither
// position nor revision, so it does not disturb the writing of batches.
func (s *Store) Reseal(ctx context.Context, old, anew registry.Sealed) error {
	return s.db.do(ctx, func(ctx context.Context) error {
		_, err := s.db.assets.UpdateOne(ctx,
			append(withID(old.ID), bson.E{Key: "sealed", Value: old.Sealed}),
			set(bson.E{Key: "sealed", Value: anew.Sealed}))
		return err
	})
}
