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

// Get returns an asset, registry.ErrNotFound, or registry.ErrLarge. It asks for
// the size first, by the id alone: the test rig looks through all assets for
// any other filter.
func (s *Store) Get(ctx context.Context, id string, most int) (registry.Record, error) {
	if most != registry.AnySize {
		size, err := s.look(ctx, id)
		if err != nil {
			return registry.Record{}, err
		}
		if size == nil || *size > int64(most) {
			return registry.Record{}, registry.ErrLarge
		}
	}
	found, err := s.find(ctx, id, bson.D{{Key: "trail", Value: 0}, {Key: "log", Value: 0}})
	if err != nil {
		return registry.Record{}, err
	}
	return found.record(), nil
}

// look returns the size of an asset, nil if it is not known, or
// registry.ErrNotFound.
func (s *Store) look(ctx context.Context, id string) (size *int64, err error) {
	found, err := s.find(ctx, id, bson.D{{Key: "revision", Value: 1}, {Key: "size", Value: 1}})
	return found.Size, err
}

// find returns some fields of an asset, or registry.ErrNotFound.
func (s *Store) find(ctx context.Context, id string, fields bson.D) (found document, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, bson.D{{Key: "_id", Value: id}}, options.FindOne().SetProjection(fields)).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments) || err == nil && found.isVoid():
		return document{}, registry.ErrNotFound
	case err != nil:
		return document{}, fmt.Errorf("get asset: %w", err)
	}
	return found, nil
}

// horizonFields are what the horizon is made of.
var horizonFields = bson.D{{Key: "last", Value: 1}, {Key: "open", Value: 1}}

// Page returns listed assets up to the horizon, which it reads first: what is
// below it is all there (package feed).
func (s *Store) Page(ctx context.Context, q registry.Query) ([]registry.Entry, error) {
	var found []document
	err := s.db.do(ctx, func(ctx context.Context) error {
		now, err := s.db.readClock(ctx, horizonFields)
		if err != nil {
			return err
		}
		filter := pageFilter(q, now.batches().Horizon())
		if found, err = s.db.page(ctx, filter, pageOptions(q, "position", "size")); err != nil || q.Bodies == 0 {
			return err
		}
		found, err = s.db.bodies(ctx, filter, q, found)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	entries := make([]registry.Entry, len(found))
	for i, d := range found {
		entries[i] = registry.Entry{ID: d.ID, Position: d.Position, Body: d.Body}
	}
	return entries, nil
}

func (d *database) page(ctx context.Context, filter bson.D, how *options.FindOptionsBuilder) (found []document, err error) {
	cursor, err := d.assets.Find(ctx, filter, how)
	if err != nil {
		return nil, err
	}
	err = cursor.All(ctx, &found)
	return found, err
}

// bodies reads the bodies of the entries that fit on a page. An asset that has
// changed since is further on in the feed, and not on this page any more.
func (d *database) bodies(ctx context.Context, filter bson.D, q registry.Query, entries []document) ([]document, error) {
	for len(entries) > 0 {
		fit := fitting(entries, q.Bodies)
		until := bson.D{{Key: "$lte", Value: entries[fit-1].Position}}
		if q.Descending {
			until = bson.D{{Key: "$gte", Value: entries[fit-1].Position}}
		}
		within := bson.D{{Key: "$and", Value: bson.A{filter, bson.D{{Key: "position", Value: until}}}}}
		found, err := d.page(ctx, within, pageOptions(q, "position", "body"))
		if err != nil || len(found) > 0 {
			return found, err
		}
		entries = entries[fit:] // these have all changed
	}
	return nil, nil
}

// fitting returns how many of the first entries have bodies that fit into so
// many bytes: one at least. A body of unknown size may be as large as any.
func fitting(entries []document, most int) int {
	sum := 0
	for i, e := range entries {
		size := registry.MaxAsset
		if e.Size != nil {
			size = int(*e.Size)
		}
		if sum += size; sum > most && i > 0 {
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
	return append(filter, bson.E{Key: "position", Value: bson.D{{Key: "$gt", Value: after}, {Key: "$lte", Value: upto}}})
}

func pageOptions(q registry.Query, names ...string) *options.FindOptionsBuilder {
	direction := 1
	if q.Descending {
		direction = -1
	}
	fields := bson.D{}
	for _, name := range names {
		fields = append(fields, bson.E{Key: name, Value: 1})
	}
	return options.Find().
		SetSort(bson.D{{Key: "position", Value: direction}}).
		SetLimit(int64(q.Limit)).
		SetBatchSize(int32(q.Limit)). // all in one answer
		SetProjection(fields)
}
