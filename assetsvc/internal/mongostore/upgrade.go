package mongostore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

// The format before had no record. Each document had its newest changes in a ring, and
// the clock had another id. The old clock stays in the database and keeps programs away
// that know only its format: it names another format, and its last position is a text.
const (
	oldClockID = "clock"
	oldFormat  = "asset-registry assets 1"
	upgrading  = "asset-registry assets 1, being upgraded"
)

// errOlder is returned for a database of the format before.
var errOlder = errors.New("the MongoDB database has the format before and must be upgraded")

const (
	upgradeBatch    = 100 // assets
	upgradeProgress = 10 * time.Second
	drainPause      = 100 * time.Millisecond
)

// oldClock is the clock of the format before.
type oldClock struct {
	Format string              `bson:"format"`
	Last   any                 `bson:"last"` // int64, or a text once no batch may be opened any more
	Was    int64               `bson:"was"`  // Last before it became a text
	Open   map[string]int64    `bson:"open"`
	IDs    map[string][]string `bson:"ids"`
}

// oldDocument is a stored asset of the format before. Trail and Log are rings: Log maps
// a slot to a revision and a position (8 bytes each, big-endian) and the Change.
type oldDocument struct {
	Asset document          `bson:",inline"`
	Trail map[string]int64  `bson:"trail"`
	Log   map[string][]byte `bson:"log"`
}

// createClock creates the clock in a new database. It returns errOlder for a database
// of the format before.
func (d *database) createClock(ctx context.Context, fresh clock) error {
	keepAway := append(withID(oldClockID), bson.E{Key: "format", Value: format}, bson.E{Key: "last", Value: "moved"})
	if _, err := d.clocks.InsertOne(ctx, keepAway); err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("create clock: %w", err)
	}
	old, err := d.readOldClock(ctx)
	switch {
	case err != nil:
		return err
	case old.Format == oldFormat, old.Format == upgrading:
		return errOlder
	case old.Format != format:
		return fmt.Errorf("%w: %q, not %q", errForeign, old.Format, format)
	}
	if _, err := d.clocks.InsertOne(ctx, fresh); err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("create clock: %w", err)
	}
	return nil
}

func (d *database) readOldClock(ctx context.Context) (old oldClock, err error) {
	if err := d.clocks.FindOne(ctx, withID(oldClockID)).Decode(&old); err != nil {
		return old, fmt.Errorf("read clock: %w", err)
	}
	return old, nil
}

// upgrade upgrades a database of the format before. It copies what the rings have into
// the record while programs of that format go on working. Then it stops them, which
// takes a moment, and copies what has changed meanwhile. It may be interrupted and
// repeated, and several processes may run it at once.
func (d *database) upgrade(ctx context.Context, lease time.Duration, describe registry.Import, log *slog.Logger) error {
	old, err := d.readOldClock(ctx)
	if err != nil || old.Format == format {
		return err
	}
	if err := d.createIndexes(ctx); err != nil {
		return err
	}
	since := old.horizon()
	if err := d.importAssets(ctx, 0, describe, log); err != nil {
		return err
	}
	if old, err = d.stopWriters(ctx, lease); err != nil {
		return err
	}
	if err := d.importAssets(ctx, since, describe, log); err != nil {
		return err
	}
	fresh := newClock()
	fresh.Last, fresh.Tidy = old.Was, false
	if _, err := d.clocks.InsertOne(ctx, fresh); err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("create clock: %w", err)
	}
	if _, err := d.clocks.UpdateOne(ctx, withID(oldClockID), set(bson.E{Key: "format", Value: format})); err != nil {
		return fmt.Errorf("finish upgrade: %w", err)
	}
	return nil
}

// horizon returns the position up to which all changes of the format before are stored.
func (c oldClock) horizon() int64 {
	horizon, _ := c.Last.(int64)
	for _, first := range c.Open {
		horizon = min(horizon, first-1)
	}
	return horizon
}

// stopWriters lets no program of the format before open a batch, and waits for the open
// ones. It fences those that stay open for longer than the lease.
func (d *database) stopWriters(ctx context.Context, lease time.Duration) (oldClock, error) {
	for since := time.Now(); ; wait(ctx, drainPause) {
		if err := ctx.Err(); err != nil {
			return oldClock{}, err
		}
		old, err := d.readOldClock(ctx)
		if err != nil {
			return old, err
		}
		if last, counts := old.Last.(int64); counts {
			_, err := d.clocks.UpdateOne(ctx, append(withID(oldClockID), bson.E{Key: "last", Value: last}), set(
				bson.E{Key: "last", Value: "moved"}, bson.E{Key: "was", Value: last},
				bson.E{Key: "format", Value: upgrading}))
			if err != nil {
				return old, fmt.Errorf("stop writers of the format before: %w", err)
			}
			continue
		}
		if len(old.Open) == 0 {
			return old, nil
		}
		if time.Since(since) < lease {
			continue
		}
		for _, writer := range slices.Sorted(maps.Keys(old.Open)) {
			if err := (feedStore{database: d}).Fence(ctx, old.IDs[writer]); err != nil {
				return old, fmt.Errorf("fence a batch of the format before: %w", err)
			}
			if err := d.closeOld(ctx, writer, old.Open[writer]); err != nil {
				return old, fmt.Errorf("close a batch of the format before: %w", err)
			}
		}
	}
}

func (d *database) closeOld(ctx context.Context, writer string, first int64) error {
	batch := bson.D{{Key: "open." + writer, Value: ""}, {Key: "ids." + writer, Value: ""}}
	_, err := d.clocks.UpdateOne(ctx, append(withID(oldClockID), bson.E{Key: "open." + writer, Value: first}),
		bson.D{{Key: "$unset", Value: batch}})
	return err
}

// importAssets adds the kept changes of assets changed after a position to the
// record. An asset that was changed
// in the new format has no ring, and its record is complete.
func (d *database) importAssets(
	ctx context.Context, since int64, describe registry.Import, log *slog.Logger,
) (err error) {
	total, err := d.assets.EstimatedDocumentCount(ctx)
	if err != nil {
		return fmt.Errorf("count assets: %w", err)
	}
	changed := bson.D{{Key: "position", Value: bson.D{{Key: "$gt", Value: since}}}}
	cursor, err := d.assets.Find(ctx, append(changed, hasRings), options.Find().SetBatchSize(sizeBatch))
	if err != nil {
		return fmt.Errorf("read assets: %w", err)
	}
	defer func() { err = errors.Join(err, cursor.Close(ctx)) }()
	var records []any
	size, done, started := 0, 0, time.Now()
	logged := started
	for cursor.Next(ctx) {
		var found oldDocument
		if err := cursor.Decode(&found); err != nil {
			return fmt.Errorf("read assets: %w", err)
		}
		added, bytes, err := found.records(describe)
		if err != nil {
			return fmt.Errorf("asset %s: %w", found.Asset.ID, err)
		}
		records, size, done = append(records, added...), size+bytes, done+1
		if len(records) >= upgradeBatch || size > maxBytes {
			if err := d.addRecords(ctx, records); err != nil {
				return err
			}
			records, size = nil, 0
		}
		if time.Since(logged) > upgradeProgress {
			logged = time.Now()
			log.Info("the data are upgraded to a new format", "assets", done, "of", total,
				"seconds", time.Since(started).Seconds())
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("read assets: %w", err)
	}
	return d.addRecords(ctx, records)
}

// addRecords stores imported changes. It ignores those that are stored already.
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

// records returns the records of the kept changes, and their bytes. The newest one
// describes the whole asset. The format before does not tell whether the asset was
// listed after the others.
func (d oldDocument) records(describe registry.Import) (records []any, size int, err error) {
	if d.Asset.isVoid() {
		return nil, 0, nil
	}
	kept, err := d.kept()
	if err != nil {
		return nil, 0, err
	}
	newest := registry.Revision{
		ID: d.Asset.ID, Revision: d.Asset.Revision, Position: d.Asset.Position,
		Listed: d.Asset.Listed, Test: d.Asset.Test,
	}
	before := int64(0)
	for _, r := range kept {
		if r.Position == newest.Position {
			newest.Revision, newest.Change = r.Revision, r.Change
			continue
		}
		r.Before, before = before, r.Position
		records, size = append(records, importedChange(r)), size+len(r.Change)
	}
	newest.Before = before
	if newest.Change, newest.Whole, err = describe(d.Asset.record(), newest.Change); err != nil {
		return nil, 0, err
	}
	return append(records, importedChange(newest)), size + len(newest.Change) + len(newest.Whole), nil
}

// kept returns the changes in the ring, the oldest first.
func (d oldDocument) kept() ([]registry.Revision, error) {
	var kept []registry.Revision
	for slot, entry := range d.Log {
		if len(entry) < 8+8 {
			return nil, fmt.Errorf("slot %s of the ring is too short", slot)
		}
		kept = append(kept, registry.Revision{
			ID:       d.Asset.ID,
			Revision: int64(binary.BigEndian.Uint64(entry)),
			Position: int64(binary.BigEndian.Uint64(entry[8:])),
			Change:   entry[8+8:],
		})
	}
	slices.SortFunc(kept, func(a, b registry.Revision) int { return cmp.Compare(a.Position, b.Position) })
	return kept, nil
}

// importedChange returns the record of one change that no batch of this database made.
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
