package mongostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
	"asset-registry/shared/sleep"
)

// fillPiece is the maximum number of assets that one call of the method `fillPiece` changes.
const fillPiece = 200

// errFilling is returned for a page of a broker's list while fillOwners is still working.
var errFilling = errors.New("assets of a former program get their owners")

// keepFilling repeats fillOwners until it succeeds or ctx is done. Until then, the lists of brokers return
// errFilling; the rest of the store works.
func (s *Store) keepFilling(ctx context.Context, ownerOf func(registry.Record) (string, error)) {
	for !s.filled.Load() {
		err := s.db.fillOwners(ctx, s.log, ownerOf)
		if err == nil {
			s.filled.Store(true)
			return
		}
		if ctx.Err() == nil {
			s.failed(err)
		}
		if !sleep.For(ctx, prepareInterval) {
			return
		}
	}
}

// fillOwners finds assets that an earlier version of this program stored without an owner, and sets the owner
// that ownerOf returns. It changes no position and no revision, so it does not disturb the writing of batches.
// Each update applies only to the revision that was read: if an asset is changed in between, that change sets
// the owner. Several processes may run fillOwners at the same time. After an interruption, the next call goes on
// with the assets that are left.
func (d *database) fillOwners(
	ctx context.Context, log *slog.Logger, ownerOf func(registry.Record) (string, error),
) error {
	begun, told, filled := time.Now(), time.Now(), 0
	for {
		count, err := d.fillPiece(ctx, ownerOf)
		if err != nil {
			return fmt.Errorf("store the owners of assets: %w", err)
		}
		filled += count
		if done := count == 0; filled > 0 && (done || time.Since(told) > buildProgress) {
			told = time.Now()
			log.Info("assets get a field for their owner", "assets", filled, "done", done,
				"since", time.Since(begun).Round(time.Second))
		}
		if count == 0 {
			return nil
		}
	}
}

// fillPiece sets the owners of assets without an owner, and returns how many of these assets it found. 0 means that
// none is left. One call handles at most as many assets as the constant fillPiece says.
func (d *database) fillPiece(
	ctx context.Context, ownerOf func(registry.Record) (string, error),
) (count int, err error) {
	without := bson.D{
		{Key: "owner", Value: nil}, {Key: "removed", Value: nil},
		{Key: "revision", Value: bson.D{{Key: "$gte", Value: 0}}}, // without voids, whose revision is below 0
	}
	err = d.do(ctx, func(ctx context.Context) error {
		found, err := d.page(ctx, without, options.Find().SetHint(ownIndex).SetLimit(fillPiece).
			SetProjection(only("revision", "body")))
		if err != nil || len(found) == 0 {
			return err
		}
		count = len(found)
		var updates []mongo.WriteModel
		for _, f := range found {
			owner, err := ownerOf(f.record())
			if err != nil {
				return fmt.Errorf("asset %s: %w", f.ID, err)
			}
			same := append(withID(f.ID), bson.E{Key: "revision", Value: f.Revision})
			updates = append(updates, mongo.NewUpdateOneModel().SetFilter(same).
				SetUpdate(set(bson.E{Key: "owner", Value: owner})))
		}
		_, err = d.assets.BulkWrite(ctx, updates, options.BulkWrite().SetOrdered(false))
		return err
	})
	return count, err
}

const referencePause = 5 * time.Millisecond

// reference is the document of a reference. Its id comes from registry.ReferenceKey.
type reference struct {
	ID    string `bson:"_id"`
	Asset string `bson:"asset"`
}

// ClaimReference implements registry.Store. A majority of the members has the id that it returns: both the
// insertion and the reading ask for a majority.
func (s *Store) ClaimReference(ctx context.Context, key, from, to string) (id string, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		if to == "" {
			var found reference
			err := s.db.references.FindOne(ctx, withID(key)).Decode(&found)
			if id = found.Asset; errors.Is(err, mongo.ErrNoDocuments) {
				return nil
			}
			return err
		}
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
