package mongostore

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

// boundedReads is how often Get reads an asset that has shrunk between its two
// reads. A client that changes sizes all the time causes no more reads.
const boundedReads = 2

// Get returns an asset. It returns registry.ErrNotFound if there is none, and
// registry.ErrLarge if its body has more than most bytes.
func (s *Store) Get(ctx context.Context, id string, most int) (registry.Record, error) {
	if err := s.db.fresh(ctx); err != nil {
		return registry.Record{}, fmt.Errorf("get asset: %w", err)
	}
	if most == registry.AnySize {
		found, err := s.find(ctx, id, bson.D{})
		return found.record(), err
	}
	for range boundedReads {
		found, fits, err := s.findUpTo(ctx, id, most)
		if err != nil || fits {
			return found.record(), err
		}
		size, err := s.size(ctx, id)
		if err != nil {
			return registry.Record{}, err
		}
		if size > int64(most) {
			return registry.Record{}, registry.ErrLarge
		}
	}
	return registry.Record{}, registry.ErrLarge // it changes too often: the caller allows more bytes next
}

// findUpTo returns an asset, and whether its body has at most most bytes. If not,
// or if there is no asset, no body is read.
func (s *Store) findUpTo(ctx context.Context, id string, most int) (found document, fits bool, err error) {
	small := append(withID(id), bson.E{Key: "size", Value: bson.D{{Key: "$lte", Value: most}}})
	err = s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, small).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return document{}, false, nil
	case err != nil:
		return document{}, false, fmt.Errorf("get asset: %w", err)
	}
	return found, true, nil
}

// size returns the bytes of an asset's body, or registry.ErrNotFound.
func (s *Store) size(ctx context.Context, id string) (int64, error) {
	found, err := s.find(ctx, id, only("revision", "size"))
	return found.Size, err
}

// find returns some fields of an asset, or registry.ErrNotFound. The fields must
// include the revision; none is all.
func (s *Store) find(ctx context.Context, id string, fields bson.D) (found document, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, withID(id), options.FindOne().SetProjection(fields)).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments) || err == nil && found.isVoid():
		return document{}, registry.ErrNotFound
	case err != nil:
		return document{}, fmt.Errorf("get asset: %w", err)
	}
	return found, nil
}

// horizonFields are the fields of the clock that determine the horizon.
var horizonFields = only("last", "open")

// Page returns listed assets up to the horizon. It reads the horizon first,
// because every change up to it is already stored (package feed).
func (s *Store) Page(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	if err := s.db.fresh(ctx); err != nil {
		return page, fmt.Errorf("read page: %w", err)
	}
	var found []document
	err = s.db.do(ctx, func(ctx context.Context) error {
		now, err := s.db.readClock(ctx, horizonFields)
		if err != nil {
			return err
		}
		page.Upto = now.batches().Horizon()
		filter := pageFilter(q, page.Upto)
		found, err = s.db.page(ctx, filter, pageOptions(q, "position", "size", "test"))
		if len(found) == q.Limit {
			page.Upto = found[q.Limit-1].Position
		}
		if err != nil || q.Bodies == 0 {
			return err
		}
		found, page.Upto, err = s.db.bodies(ctx, filter, q, found, page.Upto)
		return err
	})
	if err != nil {
		return registry.FeedPage{}, fmt.Errorf("read page: %w", err)
	}
	page.Entries = make([]registry.Entry, len(found))
	for i, d := range found {
		page.Entries[i] = registry.Entry{ID: d.ID, Position: d.Position, Test: d.Test, Body: d.Body}
	}
	return page, nil
}

func (d *database) page(
	ctx context.Context, filter bson.D, how *options.FindOptionsBuilder,
) (found []document, err error) {
	cursor, err := d.assets.Find(ctx, filter, how)
	if err != nil {
		return nil, err
	}
	err = cursor.All(ctx, &found)
	return found, err
}

// bodies reads the entries again, with bodies, as far as these fit on the page.
// An asset that has changed meanwhile has moved on in the feed, so it drops out
// of this page. Upto is how far the entries are complete; bodies returns how far its
// result is.
func (d *database) bodies(
	ctx context.Context, filter bson.D, q registry.Query, entries []document, upto int64,
) ([]document, int64, error) {
	for len(entries) > 0 {
		fit := fitting(entries, q.Bodies)
		last := entries[fit-1].Position
		until := bson.D{{Key: "$lte", Value: last}}
		if q.Descending {
			until = bson.D{{Key: "$gte", Value: last}}
		}
		within := bson.D{{Key: "$and", Value: bson.A{filter, bson.D{{Key: "position", Value: until}}}}}
		found, err := d.page(ctx, within, pageOptions(q, "position", "test", "body"))
		entries = entries[fit:]
		if err != nil || len(found) > 0 && len(entries) == 0 {
			return found, upto, err
		}
		if len(found) > 0 {
			return found, last, nil
		}
		// All entries that fit have changed.
	}
	return nil, upto, nil
}

// fitting returns how many of the first entries have bodies of at most most
// bytes together, and at least 1.
func fitting(entries []document, most int) int {
	sum := 0
	for i, e := range entries {
		if sum += int(e.Size); sum > most && i > 0 {
			return i
		}
	}
	return len(entries)
}

func pageFilter(q registry.Query, horizon int64) bson.D {
	after, upto := q.Offset, horizon
	if q.Descending {
		after = 0
		if q.Offset > 0 {
			upto = min(upto, q.Offset-1)
		}
	}
	filter := bson.D{{Key: "listed", Value: true}}
	if q.Mode != registry.All {
		filter = append(filter, bson.E{Key: "test", Value: q.Mode == registry.Test})
	}
	within := bson.D{{Key: "$gt", Value: after}, {Key: "$lte", Value: upto}}
	return append(filter, bson.E{Key: "position", Value: within})
}

func pageOptions(q registry.Query, names ...string) *options.FindOptionsBuilder {
	direction := 1
	if q.Descending {
		direction = -1
	}
	index := pageIndex
	if q.Mode == registry.All {
		index = allIndex
	}
	return options.Find().
		SetHint(index).
		SetSort(bson.D{{Key: "position", Value: direction}}).
		SetLimit(int64(q.Limit)).
		SetBatchSize(int32(q.Limit) + 1). // all entries in one answer, and no cursor is left
		SetProjection(only(names...))
}
