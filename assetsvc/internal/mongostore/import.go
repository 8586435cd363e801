package mongostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

// importing is the format of a database into which assets are being moved. No
// asset service takes it for its own until Finish.
const importing = "asset-registry assets 1, being moved in"

// importTimeout is how long one operation of a move may take.
const importTimeout = time.Minute

// ErrInUse: assets can only be moved into a database that has none of its own.
var ErrInUse = errors.New("the MongoDB database holds assets already; name another one")

// Import moves assets in, with the positions and revisions that they have.
// Each step may be repeated.
type Import struct{ db *database }

// OpenImport begins a move, or goes on with one that was interrupted.
func OpenImport(ctx context.Context, uri string) (*Import, error) {
	db, err := connect(uri, importTimeout)
	if err != nil {
		return nil, err
	}
	i := &Import{db}
	if err := db.do(ctx, i.begin); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

func (i *Import) begin(ctx context.Context) error {
	fresh := newClock()
	fresh.Format = importing
	if _, err := i.db.clocks.InsertOne(ctx, fresh); err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("make clock: %w", err)
	}
	// A database that an asset service has only prepared is as good as a new one.
	_, err := i.db.clocks.UpdateOne(ctx,
		bson.D{{Key: "_id", Value: clockID}, {Key: "format", Value: format}, {Key: "last", Value: int64(0)}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "format", Value: importing}}}})
	if err != nil {
		return fmt.Errorf("take database: %w", err)
	}
	now, err := i.db.readClock(ctx, bson.D{{Key: "format", Value: 1}})
	switch {
	case err != nil:
		return err
	case now.Format == format:
		return ErrInUse
	case now.Format != importing:
		return fmt.Errorf("%w: %q", errForeign, now.Format)
	}
	return i.db.makeIndexes(ctx)
}

// Put stores assets as they are, where they are not there yet.
func (i *Import) Put(ctx context.Context, records []registry.History) error {
	there, err := i.read(ctx, records)
	if err != nil {
		return err
	}
	var missing []any
	var different []mongo.WriteModel // what was moved before, and changed at its source since
	for _, r := range records {
		switch found, known := there[r.ID]; {
		case !known:
			missing = append(missing, moved(r))
		case !same(found, r):
			different = append(different, mongo.NewReplaceOneModel().SetFilter(bson.D{{Key: "_id", Value: r.ID}}).SetReplacement(moved(r)))
		}
	}
	return i.db.do(ctx, func(ctx context.Context) error {
		if len(missing) > 0 {
			_, err := i.db.assets.InsertMany(ctx, missing, options.InsertMany().SetOrdered(false))
			if err != nil && !onlyDuplicates(err) { // those come from an attempt before, late; Check sees to them
				return fmt.Errorf("store assets: %w", err)
			}
		}
		if len(different) > 0 {
			if _, err := i.db.assets.BulkWrite(ctx, different, options.BulkWrite().SetOrdered(false)); err != nil {
				return fmt.Errorf("store changed assets: %w", err)
			}
		}
		return nil
	})
}

// moved is a document that was written elsewhere: it has no trail.
func moved(r registry.History) document {
	return document{
		ID: r.ID, Position: r.Position, Revision: r.Revision, Listed: r.Listed, Test: r.Test, State: r.State,
		Sealed: r.Sealed, Origin: r.Origin, Body: r.Body, Size: sizeOf(r.Record),
		Trail: map[string]int64{}, Log: newLog(r.Log...),
	}
}

// Numbers stores the newest number of each day.
func (i *Import) Numbers(ctx context.Context, days map[string]int) error {
	return i.db.do(ctx, func(ctx context.Context) error {
		for day, number := range days {
			_, err := i.db.days.UpdateOne(ctx, bson.D{{Key: "_id", Value: day}}, bson.D{{Key: "$max", Value: bson.D{{Key: "last", Value: int64(number)}}}}, options.UpdateOne().SetUpsert(true))
			if err != nil {
				return fmt.Errorf("store numbers of %s: %w", day, err)
			}
		}
		return nil
	})
}

// Check compares what is there with records, and returns an error for the first
// that differs.
func (i *Import) Check(ctx context.Context, records []registry.History) error {
	there, err := i.read(ctx, records)
	if err != nil {
		return err
	}
	for _, want := range records {
		if found, known := there[want.ID]; !known || !same(found, want) {
			return fmt.Errorf("asset %s is not there as it was", want.ID)
		}
	}
	return nil
}

// read returns what is there under the ids of records.
func (i *Import) read(ctx context.Context, records []registry.History) (map[string]registry.History, error) {
	ids := make([]string, len(records))
	for at, r := range records {
		ids[at] = r.ID
	}
	var found []document
	err := i.db.do(ctx, func(ctx context.Context) error {
		cursor, err := i.db.assets.Find(ctx, withIDs(ids))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
	})
	if err != nil {
		return nil, fmt.Errorf("read assets back: %w", err)
	}
	byID := make(map[string]registry.History, len(found))
	for _, d := range found {
		log, err := d.log()
		if err != nil {
			return nil, fmt.Errorf("read assets back: %w", err)
		}
		byID[d.ID] = registry.History{Record: d.record(), Log: log}
	}
	return byID, nil
}

func same(a, b registry.History) bool {
	return a.ID == b.ID && a.Position == b.Position && a.Revision == b.Revision && a.Listed == b.Listed && a.Test == b.Test &&
		a.Sealed == b.Sealed && a.Origin == b.Origin && bytes.Equal(a.Body, b.Body) &&
		slices.EqualFunc(a.Log, b.Log, func(x, y registry.Revision) bool {
			return x.Revision == y.Revision && x.Position == y.Position && bytes.Equal(x.Change, y.Change)
		})
}

// Finish hands the database over to asset services, if it has so many assets
// and nothing else. Positions given from then on are above last.
func (i *Import) Finish(ctx context.Context, assets int, last int64) error {
	return i.db.do(ctx, func(ctx context.Context) error {
		count, err := i.db.assets.CountDocuments(ctx, bson.D{})
		if err != nil {
			return fmt.Errorf("count assets: %w", err)
		}
		if count != int64(assets) {
			return fmt.Errorf("there are %d assets, not %d", count, assets)
		}
		result, err := i.db.clocks.UpdateOne(ctx,
			bson.D{{Key: "_id", Value: clockID}, {Key: "format", Value: importing}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "format", Value: format}, {Key: "last", Value: last}}}})
		if err != nil {
			return fmt.Errorf("hand database over: %w", err)
		}
		if result.MatchedCount != 1 {
			return errors.New("the database was taken by somebody else meanwhile")
		}
		return nil
	})
}

// Close disconnects.
func (i *Import) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), importTimeout)
	defer cancel()
	return i.db.client.Disconnect(ctx)
}
