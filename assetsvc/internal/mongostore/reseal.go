package mongostore

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

// SealedAfter returns up to limit token records, from the first after an id.
func (s *Store) SealedAfter(ctx context.Context, after string, limit int) ([]registry.Sealed, error) {
	var found []document
	err := s.db.do(ctx, func(ctx context.Context) error {
		cursor, err := s.db.assets.Find(ctx,
			bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: after}}}, {Key: "revision", Value: bson.D{{Key: "$gte", Value: 0}}}}, // none that is void
			options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)).SetProjection(bson.D{{Key: "sealed", Value: 1}}))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
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

// Reseal puts a token record in the place of one that is still the asset's. No
// batch notices: they go by positions and revisions, which stay.
func (s *Store) Reseal(ctx context.Context, old, anew registry.Sealed) error {
	return s.db.do(ctx, func(ctx context.Context) error {
		_, err := s.db.assets.UpdateOne(ctx,
			bson.D{{Key: "_id", Value: old.ID}, {Key: "sealed", Value: old.Sealed}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "sealed", Value: anew.Sealed}}}})
		return err
	})
}
