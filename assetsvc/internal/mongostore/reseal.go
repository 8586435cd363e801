package mongostore

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

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
