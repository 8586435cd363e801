package mongostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
)

const (
	clockID = "clock"                   // id of the clock
	format  = "asset-registry assets 3" // name of the format of the collections and their documents
)

// clock is the document that orders all changes (feed.Clock).
type clock struct {
	ID     string              `bson:"_id"`
	Format string              `bson:"format"`
	Last   int64               `bson:"last"` // newest position given out
	Open   map[string]int64    `bson:"open"` // writer -> first position of its open batch
	IDs    map[string][]string `bson:"ids"`  // writer -> documents of its open batch
}

func newClock() clock {
	return clock{ID: clockID, Format: format, Open: map[string]int64{}, IDs: map[string][]string{}}
}

func (c clock) batches() feed.Clock {
	open := make(map[string]feed.Batch, len(c.Open))
	for writer, first := range c.Open {
		open[writer] = feed.Batch{First: first, IDs: c.IDs[writer]}
	}
	return feed.Clock{Last: c.Last, Open: open}
}

// errNoClock is returned for a database that has no clock of this format. Either the store has not prepared the
// database yet, or the clock is lost. The order of the changes is lost with the clock, so the store reads and writes
// nothing without it.
var errNoClock = errors.New("the store has no clock")

// readClock reads the given fields of the clock, in the session of ctx. An empty projection reads all fields.
func (d *database) readClock(ctx context.Context, fields bson.D) (clock, error) {
	var now clock
	ours := append(withID(clockID), bson.E{Key: "format", Value: format})
	err := d.clocks.FindOne(ctx, ours, options.FindOne().SetProjection(fields)).Decode(&now)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return clock{}, errNoClock
	case err != nil:
		return clock{}, fmt.Errorf("read clock: %w", err)
	}
	return now, nil
}

// reading is what a reading of the clock has found, without the ids of open batches.
type reading struct {
	clock
	begun time.Time
}

// readHorizon reads the fields of the clock that determine the horizon.
func (d *database) readHorizon(ctx context.Context) (clock, error) {
	begun := time.Now()
	now, err := d.readClock(ctx, horizonFields)
	if err == nil {
		d.passed(now.batches().Horizon())
		d.recent.Store(&reading{now, begun})
	}
	return now, err
}

// recentHorizon returns a reading of the horizon that is younger than the given age; 0 reads it now. Pages and logs do
// not use it: they must show what was acknowledged before they were asked for (F4). Whoever waits for news and uses it
// asks more often, by as much as the reading may be old, and so hears no later.
func (d *database) recentHorizon(ctx context.Context, age time.Duration) (clock, error) {
	if age == 0 {
		return d.readHorizon(ctx)
	}
	d.sharing.Lock()
	defer d.sharing.Unlock()
	if last := d.recent.Load(); last != nil && time.Since(last.begun) < age {
		return last.clock, nil
	}
	return d.readHorizon(ctx)
}

// createClock creates the clock, unless the database already has a document with the clock's id. The clock has the same
// id in every format. So createClock does not replace the clock of another format, and the program then refuses the
// database.
func (d *database) createClock(ctx context.Context, fresh clock) error {
	if _, err := d.clocks.InsertOne(ctx, fresh); err != nil && !isDuplicate(err) {
		return fmt.Errorf("create clock: %w", err)
	}
	return nil
}

// readFormat returns the format of the database.
func (d *database) readFormat(ctx context.Context) (string, error) {
	var found struct {
		Format string `bson:"format"`
	}
	err := d.clocks.FindOne(ctx, withID(clockID), options.FindOne().SetProjection(only("format"))).Decode(&found)
	return found.Format, errs.In(err, "read the format of the database")
}

// feedStore implements feed.Store on the database.
type feedStore struct{ *database }

// Open implements feed.Store. The clock that it returns has only the field Last and the batch of this writer, without
// the IDs of that batch.
//
// If the batch was refused, Open removes its record. It does not wait for the removal, which would delay the next
// Open. It does not remove a record that is shown. A shown record means that an earlier attempt of this Open was
// applied, and that a watcher has settled the batch since. This record must stay, so that a late insert of the same
// record fails.
func (f feedStore) Open(
	ctx context.Context, writer string, b feed.Batch, writes []feed.Write,
) (now feed.Clock, opened bool, err error) {
	record := newRecord(writer, b, writes)
	var both errgroup.Group
	both.Go(func() error { return f.note(ctx, record) })
	both.Go(func() error { return f.lookUp(ctx, writes) })
	both.Go(func() (err error) {
		now, opened, err = f.take(ctx, writer, b)
		return err
	})
	if err := both.Wait(); err != nil {
		return feed.Clock{}, false, err
	}
	if !opened && now.Open[writer].First != b.First {
		ctx := context.WithoutCancel(ctx)
		f.removals.Go(func() { f.remove(ctx, record.ID) })
	}
	return now, opened, nil
}

// remove removes a record that no reader has seen. If that fails, the record stays, which is harmless: nothing
// ever shows it.
func (d *database) remove(ctx context.Context, id string) {
	_ = d.do(ctx, func(ctx context.Context) error {
		_, err := d.changes.DeleteOne(ctx, append(withID(id), notShown))
		return err
	})
}

// notShown matches records that no reader has seen.
var notShown = bson.E{Key: "shown", Value: bson.D{{Key: "$ne", Value: true}}}

// take puts a batch on the clock if the batch's positions are above the newest position given out.
func (f feedStore) take(ctx context.Context, writer string, b feed.Batch) (now feed.Clock, opened bool, err error) {
	err = f.do(ctx, func(ctx context.Context) error {
		result, err := f.clocks.UpdateOne(ctx,
			append(withID(clockID), bson.E{Key: "last", Value: bson.D{{Key: "$lt", Value: b.First}}}),
			set(
				bson.E{Key: "last", Value: b.Last()},
				bson.E{Key: "open." + writer, Value: b.First},
				bson.E{Key: "ids." + writer, Value: b.IDs},
			))
		if err != nil {
			return err
		}
		if opened = result.MatchedCount == 1; opened {
			now = feed.Clock{Last: b.Last(), Open: map[string]feed.Batch{writer: b}}
			return nil
		}
		current, err := f.readClock(ctx, only("last", "open."+writer))
		now = current.batches()
		return err
	})
	return now, opened, err
}

func (f feedStore) Close(ctx context.Context, writer string, first int64) error {
	batch := bson.D{{Key: "open." + writer, Value: ""}, {Key: "ids." + writer, Value: ""}}
	return f.do(ctx, func(ctx context.Context) error {
		_, err := f.clocks.UpdateOne(ctx,
			append(withID(clockID), bson.E{Key: "open." + writer, Value: first}),
			bson.D{{Key: "$unset", Value: batch}})
		return err
	})
}

// Clock implements feed.Store. If a recent reading shows no open batch, Clock returns that reading.
func (f feedStore) Clock(ctx context.Context) (feed.Clock, error) {
	var now clock
	err := f.do(ctx, func(ctx context.Context) (err error) {
		if now, err = f.recentHorizon(ctx, registry.Recently); err == nil && len(now.Open) > 0 {
			now, err = f.readClock(ctx, bson.D{})
		}
		return err
	})
	return now.batches(), err
}

// Write implements feed.Store. Each Document in writes is a registry.Record. Write inserts the new assets,
// updates the changed ones and shows the record, with three commands at the same time.
func (f feedStore) Write(
	ctx context.Context, writer string, b feed.Batch, writes []feed.Write,
) (applied int, err error) {
	var both errgroup.Group
	both.Go(func() error { return f.show(ctx, recordID(writer, b.First)) })
	both.Go(func() (err error) {
		applied, err = f.apply(ctx, writes)
		return err
	})
	if err := both.Wait(); err != nil {
		return 0, err
	}
	return applied, nil
}

// apply applies the writes whose guards hold, and returns the number of these writes.
func (f feedStore) apply(ctx context.Context, writes []feed.Write) (applied int, err error) {
	former, err := f.formerOf(ctx, writes)
	if err != nil {
		return 0, err
	}
	var creations, changes []mongo.WriteModel
	for _, w := range writes {
		r := w.Document.(registry.Record)
		if w.Revision == 0 {
			creations = append(creations, mongo.NewInsertOneModel().SetDocument(newDocument(w, r)))
			continue
		}
		changes = append(changes, mongo.NewUpdateOneModel().
			SetFilter(append(withID(w.ID), bson.E{Key: "revision", Value: w.Revision})).
			SetUpdate(update(w, r, former[w.ID])))
	}
	var created, changed int
	var both errgroup.Group
	both.Go(func() (err error) {
		created, err = f.bulk(ctx, creations)
		return err
	})
	both.Go(func() (err error) {
		changed, err = f.bulk(ctx, changes)
		return err
	})
	err = both.Wait()
	return created + changed, err
}

// bulk sends writes of one kind, and returns how many were applied.
func (f feedStore) bulk(ctx context.Context, models []mongo.WriteModel) (applied int, err error) {
	if len(models) == 0 {
		return 0, nil
	}
	err = f.do(ctx, func(ctx context.Context) error {
		result, err := f.assets.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
		if result != nil {
			applied = int(result.InsertedCount + result.MatchedCount)
		}
		if onlyDuplicates(err) {
			return nil // these documents existed, so their creations were not applied, which is no error
		}
		return err
	})
	return applied, err
}

// Fence implements feed.Store. It first inserts voids for all ids, so that every id has a document, and then
// raises the revision of each document.
func (f feedStore) Fence(ctx context.Context, ids []string) error {
	voids := make([]any, len(ids))
	for i, id := range ids {
		voids[i] = bson.D{{Key: "_id", Value: id}, {Key: "revision", Value: int64(voidRevision)}}
	}
	return f.do(ctx, func(ctx context.Context) error {
		_, err := f.assets.InsertMany(ctx, voids, options.InsertMany().SetOrdered(false))
		if err != nil && !onlyDuplicates(err) {
			return fmt.Errorf("insert voids: %w", err)
		}
		raise := bson.D{{Key: "$inc", Value: bson.D{{Key: "revision", Value: int64(1)}}}}
		result, err := f.assets.UpdateMany(ctx, withIDs(ids), raise)
		if err != nil {
			return fmt.Errorf("raise revisions: %w", err)
		}
		if result.MatchedCount != int64(len(ids)) {
			return fmt.Errorf("raise revisions: the store has %d of %d documents", result.MatchedCount, len(ids))
		}
		return nil
	})
}

// duplicateKey is MongoDB's error code for an insert with an id that exists.
const duplicateKey = 11000

// onlyDuplicates reports whether the only failures of a bulk write are duplicate ids. All other writes of the
// bulk write were then applied.
func onlyDuplicates(err error) bool {
	var bulk mongo.BulkWriteException
	if !errors.As(err, &bulk) || bulk.WriteConcernError != nil {
		return false
	}
	for _, e := range bulk.WriteErrors {
		if e.Code != duplicateKey {
			return false
		}
	}
	return len(bulk.WriteErrors) > 0
}
