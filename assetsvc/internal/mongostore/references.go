package mongostore

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// reference is the document of a reference. Its id comes from registry.ReferenceKey.
type reference struct {
	ID    string `bson:"_id"`
	Asset string `bson:"asset"`
	Asked int64  `bson:"asked"` // how often ClaimReference was called for this reference
}

// ClaimReference implements registry.Store. Each call writes to the document, even if another call has just
// inserted it. So a majority has acknowledged the id that a call returns.
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

// claimReference inserts a reference unless the database has it, and returns the asset of the stored reference.
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
		if !isDuplicate(err) { // for a duplicate, try again: another call inserted it at the same time
			return found.Asset, err
		}
	}
}

// PutReferences stores references. The map has the key of each reference, with the id of the asset that it stands
// for.
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
