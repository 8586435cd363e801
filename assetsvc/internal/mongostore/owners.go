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
	"asset-registry/shared/sleep"
)

// fillPiece is how many assets fillOwners changes at once.
const fillPiece = 200

// errFilling is the error of a page of a broker while assets of a former program get their owners.
var errFilling = errors.New("assets of a former program get their owners")

// keepFilling repeats fillOwners until it succeeds or ctx is done. The store works meanwhile, but has
// no lists of brokers.
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

// fillOwners gives each asset of a former program its owner, from its body. It changes no
// position and no revision, so it disturbs no batch. The revision guards each update: an asset
// that changes meanwhile gets its owner with the change. Several processes may do it at once, and
// after an interruption it goes on with those that are left.
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

// fillPiece does it for some assets, and returns their number; 0: none is left.
func (d *database) fillPiece(
	ctx context.Context, ownerOf func(registry.Record) (string, error),
) (count int, err error) {
	without := bson.D{
		{Key: "owner", Value: nil}, {Key: "removed", Value: nil},
		{Key: "revision", Value: bson.D{{Key: "$gte", Value: 0}}}, // no voids
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
