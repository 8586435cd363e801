package mongostore

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// reference is the document of a reference. Its id is of registry.ReferenceKey.
type reference struct {
	ID    string `bson:"_id"`
	Asset string `bson:"asset"`
	Asked int64  `bson:"asked"` // how often ClaimReference has met it
}

// ClaimReference implements registry.Store. Each call writes. So its answer has a majority, also
// for a reference that another call has inserted a moment ago.
func (s *Store) ClaimReference(ctx context.Context, key, from, to string) (id string, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		if from != "" {
			_, err := s.db.references.UpdateOne(ctx, append(withID(key), bson.E{Key: "asset", Value: from}),
				set(bson.E{Key: "asset", Value: to}))
			if err != nil {
				return err
			}
		}
		id, err = s.db.claimReference(ctx, key, to)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("claim a reference: %w", err)
	}
	return id, nil
}

// claimReference inserts a reference unless it is there, and returns its asset.
func (d *database) claimReference(ctx context.Context, key, to string) (string, error) {
	for {
		var found reference
		err := d.references.FindOneAndUpdate(ctx, withID(key),
			bson.D{
				{Key: "$setOnInsert", Value: bson.D{{Key: "asset", Value: to}}},
				{Key: "$inc", Value: bson.D{{Key: "asked", Value: int64(1)}}},
			},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After),
		).Decode(&found)
		if !isDuplicate(err) { // else another call has inserted it at the same time
			return found.Asset, err
		}
	}
}

// PutReferences stores references of assets: their keys, and the ids of their assets.
func (i *Import) PutReferences(ctx context.Context, assets map[string]string) error {
	return i.db.do(ctx, func(ctx context.Context) error {
		for key, id := range assets {
			switch found, err := i.db.claimReference(ctx, key, id); {
			case err != nil:
				return fmt.Errorf("store a reference: %w", err)
			case found != id:
				return fmt.Errorf("the reference of asset %s stands for another one after the import", id)
			}
		}
		return nil
	})
}
