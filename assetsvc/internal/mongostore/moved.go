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

// Lists that an asset is in (feed.Place).
const (
	noList = iota
	realList
	testList
)

// place is a feed.Place in a document.
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

// trail returns the places of an asset, up to that at its position.
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

// passed notes that the horizon has reached a position.
func (d *database) passed(horizon int64) {
	for {
		known := d.horizon.Load()
		if known >= horizon || d.horizon.CompareAndSwap(known, horizon) {
			return
		}
	}
}

// former is the trails of the assets that a batch changes, before it does.
type former struct {
	first int64 // position of the batch
	of    map[string]feed.Trail
}

// lookUp reads where the assets stand that a batch changes. A revision stands where it
// stands for ever, so this may be done before the batch is open.
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
			if d.Revision == revisions[d.ID] { // else the write is refused
				looked.of[d.ID] = d.trail().Since(horizon)
			}
		}
	}
	f.looked.Store(looked)
	return nil
}

// formerOf returns where the assets of a batch stand before it.
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

// errUnknownPlace is returned if the clock was read too long ago: an asset has forgotten
// where it stood then.
var errUnknownPlace = errors.New("the place of an asset at this horizon is forgotten")

// mostAbove is how many assets above the horizon a page looks at. MongoDB reads each whole.
const mostAbove = 10_000

// errManyAbove is returned while more assets than database.mostAbove are above the horizon.
var errManyAbove = errors.New("too many assets have changed since a batch was opened that is still open")

// boundAbove returns errManyAbove if too many assets are above the horizon of a clock. Each
// has a position of its own, so it counts only if there are as many positions. Then it reads
// so many keys of an index at most, and no document.
func (d *database) boundAbove(ctx context.Context, q registry.Query, last, horizon int64) error {
	if last-horizon <= d.mostAbove {
		return nil
	}
	found, err := d.page(ctx, above(q, horizon), upwards(q).SetProjection(only("position")).
		SetSkip(d.mostAbove).SetLimit(1).SetBatchSize(2))
	switch {
	case err != nil:
		return fmt.Errorf("count assets above the horizon: %w", err)
	case len(found) > 0:
		return errManyAbove
	}
	return nil
}

// above selects the assets of all modes and states above a horizon, of the feed or of a broker.
func above(q registry.Query, horizon int64) bson.D {
	all := registry.Query{Mode: registry.All, Owner: q.Owner}
	return append(selected(all), bson.E{Key: "position", Value: bson.D{{Key: "$gt", Value: horizon}}})
}

// upwards reads assets of all modes in the order of their positions.
func upwards(q registry.Query) *options.FindOptionsBuilder {
	all := registry.Query{Mode: registry.All, Owner: q.Owner}
	return options.Find().SetHint(indexOf(all)).SetSort(bson.D{{Key: "position", Value: 1}})
}

// moved returns the entries of assets in a range of positions that have a newer position
// above the horizon. Each stands where it stood at the horizon, and has no body. It must be
// called after the entries of the range are read: an asset moves from there to here. It reads
// positions upwards, so it passes no asset that moves meanwhile, and may meet one twice.
//
// The place of an asset tells its list of the feed, but neither its owner nor its state. So the
// list of a broker has the assets that have this owner and state now.
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

// inMode tells whether a mode selects test assets, or real ones.
func inMode(mode registry.Mode, test bool) bool {
	return mode == registry.All || test == (mode == registry.Test)
}

// merge returns the first entries of a page: those found, and those that have moved. An
// asset may be among both, or twice among those that have moved, if it has moved meanwhile.
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
