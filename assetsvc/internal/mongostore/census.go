package mongostore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/telemetry"
)

const (
	censusLook    = 15 * time.Second // between readings of the census
	censusAge     = time.Minute      // of a census that is taken anew
	censusShare   = 50               // a census may take a 50th of the time until the next
	censusTimeout = time.Minute      // for counting
	indexTimeout  = time.Hour        // for the index that the counting needs
	censusID      = "states"
)

// censusDocument is what the asset services share: one of them takes the census,
// all tell it. It is the only document of its collection.
type censusDocument struct {
	Due    time.Time `bson:"due"` // when it is to be taken anew
	Counts []struct {
		State asset.Status `bson:"state"`
		Count int64        `bson:"count"`
	} `bson:"counts"`
	Size     int64 `bson:"size"` // bytes of data and indexes
	DiskFree int64 `bson:"diskFree"`
	DiskSize int64 `bson:"diskSize"` // 0: the server does not tell
}

// census counts the assets by state, and asks for the room that they take. Its
// reads go to a secondary where there is one, and wait for nothing.
type census struct {
	assets, shared *mongo.Collection
	now            func() time.Time
	last           atomic.Pointer[censusDocument] // nil: not known yet
}

func newCensus(db *database, now func() time.Time) *census {
	apart := db.client.Database(db.assets.Database().Name(), options.Database().SetReadPreference(readpref.SecondaryPreferred()))
	return &census{assets: apart.Collection("assets"), shared: db.assets.Database().Collection("census"), now: now}
}

// keep keeps the census until ctx is done.
func (c *census) keep(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(censusLook)
	defer tick.Stop()
	for indexed := false; ; {
		err := error(nil)
		if !indexed {
			err = c.index(ctx)
			indexed = err == nil
		}
		if err == nil {
			err = c.look(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.last.Store(nil)
			failed(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// index makes the index of states. Of a large collection that takes minutes, in
// which the service works, so it is not a part of prepare.
func (c *census) index(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	if _, err := c.assets.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "state", Value: 1}}}); err != nil {
		return fmt.Errorf("make index of states: %w", err)
	}
	return nil
}

// look takes the census if it is due and nobody else does, or reads it.
func (c *census) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	mine, err := c.claim(ctx)
	if err == nil && mine {
		err = c.take(ctx)
	}
	if err != nil {
		return err
	}
	var found censusDocument
	if err := c.shared.FindOne(ctx, bson.D{{Key: "_id", Value: censusID}}).Decode(&found); err != nil {
		return fmt.Errorf("read census: %w", err)
	}
	if found.Counts != nil { // the first is taken at another process
		c.last.Store(&found)
	}
	return nil
}

// claim tells whether the census is this process's to take: it is due, and who
// claims it first puts that off.
func (c *census) claim(ctx context.Context) (mine bool, err error) {
	now := c.now()
	_, err = c.shared.InsertOne(ctx, bson.D{{Key: "_id", Value: censusID}, {Key: "due", Value: now.Add(censusAge)}})
	if err == nil {
		return true, nil
	}
	if !mongo.IsDuplicateKeyError(err) {
		return false, fmt.Errorf("claim first census: %w", err)
	}
	result, err := c.shared.UpdateOne(ctx,
		bson.D{{Key: "_id", Value: censusID}, {Key: "due", Value: bson.D{{Key: "$lte", Value: now}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "due", Value: now.Add(censusAge)}}}})
	if err != nil {
		return false, fmt.Errorf("claim census: %w", err)
	}
	return result.ModifiedCount == 1, nil
}

// take counts, and tells all asset services.
func (c *census) take(ctx context.Context) error {
	begun := c.now()
	if err := c.fillIn(ctx); err != nil {
		return err
	}
	var counts bson.A
	for _, state := range asset.Statuses { // each a count on the index
		count, err := c.assets.CountDocuments(ctx, bson.D{{Key: "state", Value: state}})
		if err != nil {
			return fmt.Errorf("count assets: %w", err)
		}
		counts = append(counts, bson.D{{Key: "state", Value: state}, {Key: "count", Value: count}})
	}
	reply, err := c.assets.Database().RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}}).Raw()
	if err != nil {
		return fmt.Errorf("ask for the size of the database: %w", err)
	}
	use := useOf(reply)
	ended := c.now()
	_, err = c.shared.UpdateOne(ctx, bson.D{{Key: "_id", Value: censusID}}, bson.D{{Key: "$set", Value: bson.D{
		{Key: "due", Value: ended.Add(max(censusAge, censusShare*ended.Sub(begun)))},
		{Key: "counts", Value: counts},
		{Key: "size", Value: use.Size}, {Key: "diskFree", Value: use.DiskFree}, {Key: "diskSize", Value: use.DiskSize},
	}}})
	if err != nil {
		return fmt.Errorf("write census: %w", err)
	}
	return nil
}

// fillIn gives assets a state that were written before there were any. A guard
// keeps it from those that change meanwhile, which get one by that.
func (c *census) fillIn(ctx context.Context) error {
	cursor, err := c.assets.Find(ctx, bson.D{{Key: "state", Value: nil}, {Key: "revision", Value: bson.D{{Key: "$gt", Value: 0}}}},
		options.Find().SetProjection(bson.D{{Key: "revision", Value: 1}, {Key: "body", Value: 1}}).SetLimit(1000).SetBatchSize(10))
	if err != nil {
		return fmt.Errorf("look for assets without a state: %w", err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	var models []mongo.WriteModel
	for cursor.Next(ctx) { // one body at a time
		var d document
		if err := cursor.Decode(&d); err != nil {
			return fmt.Errorf("look for assets without a state: %w", err)
		}
		if state := registry.StateOf(d.Body); state != "" {
			models = append(models, mongo.NewUpdateOneModel().
				SetFilter(bson.D{{Key: "_id", Value: d.ID}, {Key: "revision", Value: d.Revision}}).
				SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "state", Value: state}}}}))
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("look for assets without a state: %w", err)
	}
	if len(models) == 0 {
		return nil
	}
	if _, err := c.assets.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false)); err != nil {
		return fmt.Errorf("give assets their states: %w", err)
	}
	return nil
}

// useOf reads what dbStats answers. Members of a replica set tell of their own disk.
func useOf(reply bson.Raw) telemetry.StoreUse {
	number := func(name string) int64 {
		value, err := reply.LookupErr(name)
		if err != nil {
			return 0
		}
		if n, ok := value.AsInt64OK(); ok {
			return n
		}
		f, _ := value.DoubleOK()
		return int64(f)
	}
	use := telemetry.StoreUse{Size: number("storageSize") + number("indexSize"), DiskSize: number("fsTotalSize")}
	use.DiskFree = use.DiskSize - number("fsUsedSize")
	return use
}

// counted returns the last census; nil while it is not known.
func (c *census) counted(context.Context) registry.Census {
	last := c.last.Load()
	if last == nil {
		return nil
	}
	counted := registry.Census{}
	for _, of := range last.Counts {
		counted[of.State] = of.Count
	}
	return counted
}

// use returns how much room the assets take.
func (c *census) use(context.Context) telemetry.StoreUse {
	last := c.last.Load()
	if last == nil {
		return telemetry.StoreUse{}
	}
	return telemetry.StoreUse{Size: last.Size, DiskFree: last.DiskFree, DiskSize: last.DiskSize}
}

// measure tells a meter of the census until silence.
func (c *census) measure(meter metric.Meter) (silence func() error, err error) {
	assets, err := registry.MeasureCensus(meter, c.counted)
	if err != nil {
		return nil, err
	}
	room, err := telemetry.MeasureStore(meter, "assets", c.use)
	if err != nil {
		return nil, errors.Join(err, assets())
	}
	return func() error { return errors.Join(assets(), room()) }, nil
}
