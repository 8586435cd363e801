package mongostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"asset-registry/shared/errs"
	"asset-registry/shared/sleep"
)

const referencePause = 5 * time.Millisecond

// reference is the document of a reference. Its id comes from registry.ReferenceKey.
type reference struct {
	ID    string `bson:"_id"`
	Asset string `bson:"asset"`
}

// ClaimReference implements registry.Store. A majority has acknowledged the id that it returns: it has inserted the id
// so, or read it from what a majority has.
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
	return id, errs.In(err, "claim a reference")
}

// claimReference inserts a reference unless the database has it, and returns the asset of the stored reference.
func (d *database) claimReference(ctx context.Context, key, to string) (string, error) {
	for {
		_, err := d.references.InsertOne(ctx, reference{key, to})
		if !isDuplicate(err) {
			return to, err
		}
		var found reference
		err = d.references.FindOne(ctx, withID(key)).Decode(&found)
		if !errors.Is(err, mongo.ErrNoDocuments) {
			return found.Asset, err
		}
		// A majority does not have the other call's reference yet, and may never have it.
		if !sleep.For(ctx, referencePause) {
			return "", ctx.Err()
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
