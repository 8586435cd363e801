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

// importing is the format of a database during an import. Asset services refuse
// it until Finish.
const importing = "asset-registry assets 1, being moved in"

// importTimeout is the timeout of one operation of an import.
const importTimeout = time.Minute

// ErrInUse is returned for a database that already has assets: an import needs
// an empty one.
var ErrInUse = errors.New("the MongoDB database holds assets already; name another one")

// Import copies assets into a new database, with their positions and revisions.
// Call Put for all assets, then Check for all, Numbers, Finish and Close. Each
// step may be repeated.
type Import struct{ db *database }

// OpenImport begins an import into the database that uri names, or continues an
// interrupted one. It returns ErrInUse if the database has assets of its own.
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
		return fmt.Errorf("create clock: %w", err)
	}
	// Without a position the database is empty: an asset service has only prepared it.
	_, err := i.db.clocks.UpdateOne(ctx,
		append(withID(clockID), bson.E{Key: "format", Value: format}, bson.E{Key: "last", Value: int64(0)}),
		set(bson.E{Key: "format", Value: importing}))
	if err != nil {
		return fmt.Errorf("take database: %w", err)
	}
	now, err := i.db.readClock(ctx, only("format"))
	switch {
	case err != nil:
		return err
	case now.Format == format:
		return ErrInUse
	case now.Format != importing:
		return fmt.Errorf("%w: %q", errForeign, now.Format)
	}
	return i.db.createIndexes(ctx)
}

// Put stores assets. It replaces those that an earlier attempt stored and that
// have changed at the source since.
func (i *Import) Put(ctx context.Context, records []registry.History) error {
	there, err := i.read(ctx, records)
	if err != nil {
		return err
	}
	var missing []any
	var different []mongo.WriteModel
	for _, r := range records {
		switch found, known := there[r.ID]; {
		case !known:
			missing = append(missing, imported(r))
		case !same(found, r):
			replace := mongo.NewReplaceOneModel().SetFilter(withID(r.ID)).SetReplacement(imported(r))
			different = append(different, replace)
		}
	}
	return i.db.do(ctx, func(ctx context.Context) error {
		if len(missing) > 0 {
			_, err := i.db.assets.InsertMany(ctx, missing, options.InsertMany().SetOrdered(false))
			if err != nil && !onlyDuplicates(err) { // a late write of an earlier attempt; Check compares it
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

// imported returns the document of an asset. Its trail is empty, because no writer
// of this database made its revisions.
func imported(r registry.History) document {
	return document{
		ID:       r.ID,
		Position: r.Position,
		Revision: r.Revision,
		Listed:   r.Listed,
		Test:     r.Test,
		State:    r.State,
		Sealed:   r.Sealed,
		Origin:   r.Origin,
		Body:     r.Body,
		Size:     sizeOf(r.Record),
		Trail:    map[string]int64{},
		Log:      newLog(r.Log...),
	}
}

// Numbers stores the newest number of each day. It lowers none.
func (i *Import) Numbers(ctx context.Context, days map[string]int) error {
	return i.db.do(ctx, func(ctx context.Context) error {
		for day, number := range days {
			raise := bson.D{{Key: "$max", Value: bson.D{{Key: "last", Value: int64(number)}}}}
			_, err := i.db.days.UpdateOne(ctx, withID(day), raise, options.UpdateOne().SetUpsert(true))
			if err != nil {
				return fmt.Errorf("store numbers of %s: %w", day, err)
			}
		}
		return nil
	})
}

// Check compares the stored assets with records and returns an error for the
// first that differs.
func (i *Import) Check(ctx context.Context, records []registry.History) error {
	there, err := i.read(ctx, records)
	if err != nil {
		return err
	}
	for _, want := range records {
		if found, known := there[want.ID]; !known || !same(found, want) {
			return fmt.Errorf("asset %s differs from its source after the import", want.ID)
		}
	}
	return nil
}

// read returns the stored assets with the ids of records, by id.
func (i *Import) read(ctx context.Context, records []registry.History) (map[string]registry.History, error) {
	ids := make([]string, len(records))
	for at, r := range records {
		ids[at] = r.ID
	}
	var found []document
	err := i.db.do(ctx, func(ctx context.Context) (err error) {
		found, err = i.db.page(ctx, withIDs(ids), options.Find())
		return err
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
	return a.ID == b.ID && a.Position == b.Position && a.Revision == b.Revision &&
		a.Listed == b.Listed && a.Test == b.Test &&
		a.Sealed == b.Sealed && a.Origin == b.Origin && bytes.Equal(a.Body, b.Body) &&
		slices.EqualFunc(a.Log, b.Log, func(x, y registry.Revision) bool {
			return x.Revision == y.Revision && x.Position == y.Position && bytes.Equal(x.Change, y.Change)
		})
}

// Finish lets asset services use the database if it has exactly the given number
// of assets. Later positions are above last.
func (i *Import) Finish(ctx context.Context, assets int, last int64) error {
	return i.db.do(ctx, func(ctx context.Context) error {
		count, err := i.db.assets.CountDocuments(ctx, bson.D{})
		if err != nil {
			return fmt.Errorf("count assets: %w", err)
		}
		if count != int64(assets) {
			return fmt.Errorf("the database has %d assets, not %d", count, assets)
		}
		result, err := i.db.clocks.UpdateOne(ctx,
			append(withID(clockID), bson.E{Key: "format", Value: importing}),
			set(bson.E{Key: "format", Value: format}, bson.E{Key: "last", Value: last}))
		if err != nil {
			return fmt.Errorf("finish import: %w", err)
		}
		if result.MatchedCount != 1 {
			return errors.New("another process has changed the database during the import")
		}
		return nil
	})
}

// Close disconnects.
func (i *Import) Close() error { return i.db.disconnect() }
