package mongostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/dataformat"
)

// importing is the format that a database has during an import. Asset services refuse the database until Finish
// has set the final format.
const importing = format + ", being moved in"

// importTimeout is the timeout of one operation of an import.
const importTimeout = time.Minute

// ErrInUse is returned for a database that already has assets. An import needs an empty database.
var ErrInUse = errors.New("the MongoDB database holds assets already; name another one")

// Import copies assets with their positions and revisions, the record of their changes, and webhooks into a new
// database. First call Put for all assets, PutChanges for all changes, and PutWebhooks for all webhooks. Then call
// Check for all assets, and CheckChanges for all changes. At the end, call Numbers, Finish and Close. Each call may be
// repeated.
type Import struct{ db *database }

// OpenImport begins an import into the database that uri names, or continues an interrupted import. It returns
// ErrInUse if the database has assets already, unless they come from an import that is not finished.
func OpenImport(ctx context.Context, uri string) (*Import, error) {
	db, err := connect(uri, importTimeout)
	if err != nil {
		return nil, err
	}
	i := &Import{db}
	err = db.open(ctx)
	if err == nil {
		err = db.do(ctx, i.begin)
	}
	if err == nil {
		err = db.createIndexes(ctx, slog.Default())
	}
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

func (i *Import) begin(ctx context.Context) error {
	fresh := newClock()
	fresh.Format = importing
	if err := i.db.createClock(ctx, fresh); err != nil {
		return err
	}
	// The field `last` is 0 until a position is given out. So the filter matches a database that an asset service has
	// prepared, but has stored nothing in.
	_, err := i.db.clocks.UpdateOne(ctx,
		append(withID(clockID), bson.E{Key: "format", Value: format}, bson.E{Key: "last", Value: int64(0)}),
		set(bson.E{Key: "format", Value: importing}))
	if err != nil {
		return fmt.Errorf("take database: %w", err)
	}
	switch found, err := i.db.readFormat(ctx); {
	case err != nil:
		return err
	case found == format:
		return ErrInUse
	case found != importing:
		return fmt.Errorf("%w: %w", errForeign, dataformat.Refusal(found, format))
	}
	return nil
}

// Put stores assets. If an asset has changed at the source since an earlier attempt stored it, Put replaces the stored
// asset.
func (i *Import) Put(ctx context.Context, records []registry.Record) error {
	there, err := i.read(ctx, records)
	if err != nil {
		return err
	}
	var missing []any
	var different []mongo.WriteModel
	for _, r := range records {
		switch found, known := there[r.ID]; {
		case !known:
			missing = append(missing, storedAs(r))
		case !same(found, r):
			replace := mongo.NewReplaceOneModel().SetFilter(withID(r.ID)).SetReplacement(storedAs(r))
			different = append(different, replace)
		}
	}
	return i.db.do(ctx, func(ctx context.Context) error {
		if len(missing) > 0 {
			_, err := i.db.assets.InsertMany(ctx, missing, options.InsertMany().SetOrdered(false))
			if err != nil && !onlyDuplicates(err) { // duplicates are from an earlier attempt; Check compares them
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

// Numbers stores the newest number of each day. A number that is already higher stays.
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

// Check compares records with the stored assets. It returns an error for the first record that differs or is
// missing.
func (i *Import) Check(ctx context.Context, records []registry.Record) error {
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

// read returns the stored assets with the ids of `records`. The keys are the ids.
func (i *Import) read(ctx context.Context, records []registry.Record) (map[string]registry.Record, error) {
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
	byID := make(map[string]registry.Record, len(found))
	for _, d := range found {
		byID[d.ID] = d.record()
	}
	return byID, nil
}

func same(a, b registry.Record) bool {
	return a.ID == b.ID && a.Position == b.Position && a.Revision == b.Revision &&
		a.Listed == b.Listed && a.Test == b.Test && a.Removed == b.Removed &&
		a.Sealed == b.Sealed && a.Origin == b.Origin && bytes.Equal(a.Body, b.Body)
}

// PutChanges stores changes of the record. Changes that an earlier attempt stored stay unchanged.
func (i *Import) PutChanges(ctx context.Context, changes []registry.Revision) error {
	records := make([]any, len(changes))
	for at, r := range changes {
		records[at] = importedChange(r)
	}
	return i.db.do(ctx, func(ctx context.Context) error { return i.db.addRecords(ctx, records) })
}

// addRecords stores imported changes. Changes whose ids are in the store already stay unchanged.
func (d *database) addRecords(ctx context.Context, records []any) error {
	if len(records) == 0 {
		return nil
	}
	_, err := d.changes.InsertMany(ctx, records, options.InsertMany().SetOrdered(false))
	if err != nil && !onlyDuplicates(err) {
		return fmt.Errorf("store changes: %w", err)
	}
	return nil
}

// importedChange returns the record of an imported change. Each imported change has its own record, because no
// batch of this database made the change.
func importedChange(r registry.Revision) batchRecord {
	record := batchRecord{
		ID: importID(r.Position), At: r.Position, Shown: true, IDs: []string{r.ID},
		Changes: map[string]noted{r.ID: {
			Position: r.Position, Revision: r.Revision, Before: r.Before,
			Listed: r.Listed, Test: r.Test, Change: r.Change,
		}},
	}
	if len(r.Whole) > 0 {
		record.Wholes = map[string][]byte{r.ID: r.Whole}
	}
	return record
}

// importID returns the id of the record of an imported change.
func importID(position int64) string { return fmt.Sprintf("import/%d", position) }

// CheckChanges compares changes of the source with the stored changes. It returns an error for the first change
// that differs or is missing.
func (i *Import) CheckChanges(ctx context.Context, changes []registry.Revision) error {
	ids := make([]string, len(changes))
	for at, r := range changes {
		ids[at] = importID(r.Position)
	}
	var found []batchRecord
	err := i.db.do(ctx, func(ctx context.Context) (err error) {
		found, err = findAll[batchRecord](ctx, i.db.changes, withIDs(ids))
		return err
	})
	if err != nil {
		return fmt.Errorf("read changes back: %w", err)
	}
	stored := make(map[int64]registry.Revision, len(found))
	for _, record := range found {
		for _, r := range record.revisions(0) {
			stored[r.Position] = r
		}
	}
	for _, want := range changes {
		if r, known := stored[want.Position]; !known || !sameChange(r, want) {
			return fmt.Errorf("the change of asset %s at %d differs from its source after the import", want.ID,
				want.Position)
		}
	}
	return nil
}

// PutWebhooks stores all webhooks, with their positions. It first removes all webhooks from the database, because an
// earlier attempt may have stored some.
func (i *Import) PutWebhooks(ctx context.Context, all []webhook.Endpoint) error {
	return i.db.do(ctx, func(ctx context.Context) error {
		if _, err := i.db.hooks.DeleteMany(ctx, bson.D{}); err != nil {
			return fmt.Errorf("remove webhooks of an earlier attempt: %w", err)
		}
		if len(all) == 0 {
			return nil
		}
		hooks := make([]any, len(all))
		for at, e := range all {
			hooks[at] = hookOf(e)
		}
		if _, err := i.db.hooks.InsertMany(ctx, hooks); err != nil {
			return fmt.Errorf("store webhooks: %w", err)
		}
		return nil
	})
}

func sameChange(a, b registry.Revision) bool {
	return a.ID == b.ID && a.Position == b.Position && a.Revision == b.Revision && a.Before == b.Before &&
		a.Listed == b.Listed && a.Test == b.Test && bytes.Equal(a.Change, b.Change) && bytes.Equal(a.Whole, b.Whole)
}

// Finish checks that the database has exactly the given numbers of assets, changes and webhooks, and then lets
// asset services use it. All positions that the asset services give out later are above the position `last`.
func (i *Import) Finish(ctx context.Context, assets, changes, webhooks int, last int64) error {
	for _, c := range []struct {
		of   string
		in   *mongo.Collection
		want int
	}{
		{"assets", i.db.assets, assets}, {"changes", i.db.changes, changes}, {"webhooks", i.db.hooks, webhooks},
	} {
		count, err := i.db.count(ctx, c.in)
		if err != nil {
			return fmt.Errorf("count %s: %w", c.of, err)
		}
		if count != c.want {
			return fmt.Errorf("the database has %d %s, not %d", count, c.of, c.want)
		}
	}
	return i.db.do(ctx, func(ctx context.Context) error {
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

// counted is the largest number of ids that one operation reads to count them.
const counted = 10_000

// count counts the documents of a collection. It reads their ids in pieces, because one operation that counts a
// large collection takes longer than the timeout of an operation.
func (d *database) count(ctx context.Context, in *mongo.Collection) (count int, err error) {
	for after := ""; ; {
		var ids []document
		err := d.do(ctx, func(ctx context.Context) (err error) {
			ids, err = findAll[document](ctx, in, bson.D{afterID(after)}, options.Find().SetSort(only("_id")).
				SetProjection(only("_id")).SetLimit(counted).SetBatchSize(counted+1))
			return err
		})
		if err != nil {
			return 0, err
		}
		if count += len(ids); len(ids) < counted {
			return count, nil
		}
		after = ids[len(ids)-1].ID
	}
}

// Close disconnects from the database.
func (i *Import) Close() error { return i.db.disconnect() }
