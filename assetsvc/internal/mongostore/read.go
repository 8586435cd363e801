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

// Get returns an asset, or registry.ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (registry.Record, error) {
	var found document
	err := s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, bson.D{{Key: "_id", Value: id}},
			options.FindOne().SetProjection(bson.D{{Key: "trail", Value: 0}, {Key: "log", Value: 0}})).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments) || err == nil && found.isVoid():
		return registry.Record{}, registry.ErrNotFound
	case err != nil:
		return registry.Record{}, fmt.Errorf("get asset: %w", err)
	}
	return found.record(), nil
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
		cursor, err := s.db.assets.Find(ctx, pageFilter(q, now.batches().Horizon()), pageOptions(q))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
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

func pageOptions(q registry.Query) *options.FindOptionsBuilder {
	direction := 1
	if q.Descending {
		direction = -1
	}
	fields := bson.D{{Key: "position", Value: 1}}
	if q.Bodies {
		fields = append(fields, bson.E{Key: "body", Value: 1})
	}
	return options.Find().
		SetSort(bson.D{{Key: "position", Value: direction}}).
		SetLimit(int64(q.Limit)).
		SetBatchSize(int32(q.Limit)). // all in one answer
		SetProjection(fields)
}
