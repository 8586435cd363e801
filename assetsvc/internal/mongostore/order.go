package mongostore

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
)

const (
	clockID = "clock"                   // id of the one document in the clock's collection
	format  = "asset-registry assets 1" // what the database holds and how
)

// clock is that document.
type clock struct {
	ID     string              `bson:"_id"`
	Format string              `bson:"format"`
	Last   int64               `bson:"last"`  // newest position given out
	Open   map[string]int64    `bson:"open"`  // writer -> first position of its batch
	IDs    map[string][]string `bson:"ids"`   // writer -> documents of its batch
	Sized  bool                `bson:"sized"` // every document has its size
}

func newClock() clock {
	return clock{ID: clockID, Format: format, Open: map[string]int64{}, IDs: map[string][]string{}, Sized: true}
}

func (c clock) batches() feed.Clock {
	open := make(map[string]feed.Batch, len(c.Open))
	for writer, first := range c.Open {
		open[writer] = feed.Batch{First: first, IDs: c.IDs[writer]}
	}
	return feed.Clock{Last: c.Last, Open: open}
}

// errNoClock: a store without its clock has lost its order. Nothing is read or
// written until it is back.
var errNoClock = errors.New("the store has no clock")

// readClock reads some fields of the clock, in the session of ctx.
func (d *database) readClock(ctx context.Context, fields bson.D) (clock, error) {
	var now clock
	err := d.clocks.FindOne(ctx, bson.D{{Key: "_id", Value: clockID}}, options.FindOne().SetProjection(fields)).Decode(&now)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return clock{}, errNoClock
	case err != nil:
		return clock{}, fmt.Errorf("read clock: %w", err)
	}
	return now, nil
}

// order is the database as a feed.Store.
type order struct{ *database }

// Open is feed.Store's. The clock that it returns has Last, and of the batches
// only the writer's own, without ids.
func (o order) Open(ctx context.Context, writer string, b feed.Batch) (now feed.Clock, opened bool, err error) {
	err = o.do(ctx, func(ctx context.Context) error {
		result, err := o.clocks.UpdateOne(ctx,
			bson.D{{Key: "_id", Value: clockID}, {Key: "last", Value: bson.D{{Key: "$lt", Value: b.First}}}},
			bson.D{{Key: "$set", Value: bson.D{
				{Key: "last", Value: b.Last()},
				{Key: "open." + writer, Value: b.First},
				{Key: "ids." + writer, Value: b.IDs},
			}}})
		if err != nil {
			return err
		}
		if opened = result.MatchedCount == 1; opened {
			now = feed.Clock{Last: b.Last(), Open: map[string]feed.Batch{writer: b}}
			return nil
		}
		current, err := o.readClock(ctx, bson.D{{Key: "last", Value: 1}, {Key: "open." + writer, Value: 1}})
		now = current.batches()
		return err
	})
	return now, opened, err
}

// Close is feed.Store's.
func (o order) Close(ctx context.Context, writer string, first int64) error {
	return o.do(ctx, func(ctx context.Context) error {
		_, err := o.clocks.UpdateOne(ctx,
			bson.D{{Key: "_id", Value: clockID}, {Key: "open." + writer, Value: first}},
			bson.D{{Key: "$unset", Value: bson.D{{Key: "open." + writer, Value: ""}, {Key: "ids." + writer, Value: ""}}}})
		return err
	})
}

// Clock is feed.Store's.
func (o order) Clock(ctx context.Context) (feed.Clock, error) {
	var now clock
	err := o.do(ctx, func(ctx context.Context) (err error) {
		now, err = o.readClock(ctx, bson.D{})
		return err
	})
	return now.batches(), err
}

// Write is feed.Store's; the writes' documents are registry.Records. It costs
// a round trip for those that create assets and one for those that change some.
func (o order) Write(ctx context.Context, writes []feed.Write) (applied int, err error) {
	models := make([]mongo.WriteModel, len(writes))
	for i, w := range writes {
		r := w.Document.(registry.Record)
		if w.Revision == 0 {
			models[i] = mongo.NewInsertOneModel().SetDocument(newDocument(w, r))
			continue
		}
		models[i] = mongo.NewUpdateOneModel().
			SetFilter(bson.D{{Key: "_id", Value: w.ID}, {Key: "revision", Value: w.Revision}}).
			SetUpdate(update(w, r))
	}
	err = o.do(ctx, func(ctx context.Context) error {
		result, err := o.assets.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
		if result != nil {
			applied = int(result.InsertedCount + result.MatchedCount)
		}
		if onlyDuplicates(err) {
			return nil // their guard, that there be no such document, did not hold
		}
		return err
	})
	return applied, err
}

// Landed is feed.Store's.
func (o order) Landed(ctx context.Context, writes []feed.Write) ([]feed.Answer, error) {
	ids := make([]string, len(writes))
	for i, w := range writes {
		ids[i] = w.ID
	}
	var found []document
	err := o.do(ctx, func(ctx context.Context) error {
		cursor, err := o.assets.Find(ctx, withIDs(ids), options.Find().SetProjection(bson.D{{Key: "trail", Value: 1}, {Key: "revision", Value: 1}}))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
	})
	if err != nil {
		return nil, err
	}
	byID := make(map[string]document, len(found))
	for _, d := range found {
		byID[d.ID] = d
	}
	answers := make([]feed.Answer, len(writes))
	for i, w := range writes {
		answers[i] = byID[w.ID].landed(w)
	}
	return answers, nil
}

// Fence is feed.Store's. Voids come first, so that there is something of every
// id whose revision can be raised.
func (o order) Fence(ctx context.Context, ids []string) error {
	voids := make([]any, len(ids))
	for i, id := range ids {
		voids[i] = bson.D{{Key: "_id", Value: id}, {Key: "revision", Value: int64(voidRevision)}}
	}
	return o.do(ctx, func(ctx context.Context) error {
		_, err := o.assets.InsertMany(ctx, voids, options.InsertMany().SetOrdered(false))
		if err != nil && !onlyDuplicates(err) {
			return fmt.Errorf("insert voids: %w", err)
		}
		_, err = o.assets.UpdateMany(ctx, withIDs(ids), bson.D{{Key: "$inc", Value: bson.D{{Key: "revision", Value: int64(1)}}}})
		if err != nil {
			return fmt.Errorf("raise revisions: %w", err)
		}
		return nil
	})
}

func withIDs(ids []string) bson.D {
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
}

// duplicateKey is MongoDB's error code for an insert whose id is taken.
const duplicateKey = 11000

// onlyDuplicates tells whether err is of inserts whose ids are taken, and of
// nothing else: the other writes of the bulk are done.
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
