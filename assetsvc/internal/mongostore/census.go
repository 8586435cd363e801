package mongostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
	"asset-registry/shared/telemetry"
)

const (
	censusLook    = 15 * time.Second // time between two reads of the census
	censusAge     = time.Minute      // least time from the beginning of one census to the next
	censusShare   = 50               // counting takes at most a 50th of the time until the next census
	censusKey     = time.Millisecond // least time until the next census for each asset that was counted
	censusTimeout = time.Minute      // limit for the time of one census, from its beginning to its result
	censusID      = "states"
)

// censusDocument is the result of a census, which all asset services share. One of them counts, and all of them
// report the counts. It is the only document of its collection.
type censusDocument struct {
	// Due is new for each census. A process compares it with no clock: a clock that was wrong once would stop the census
	// of all processes. Processes of an earlier version take the next census at this time.
	Due    time.Time     `bson:"due"`
	Rest   time.Duration `bson:"rest"` // time from the census to the next one
	Counts []struct {
		State asset.Status `bson:"state"`
		Count int64        `bson:"count"`
	} `bson:"counts"`
	Size     int64 `bson:"size"` // bytes of data and indexes
	DiskFree int64 `bson:"diskFree"`
	DiskSize int64 `bson:"diskSize"` // 0: the server does not report it
}

// census counts the assets in each state and reads the size of the database. It counts on a secondary if the
// replica set has one, and uses no session.
type census struct {
	db   *database
	now  func() time.Time // has a monotonic time
	log  *slog.Logger
	last atomic.Pointer[censusDocument] // the newest result; nil: unknown
	from *readpref.ReadPref             // which server counts

	due   time.Time // the stored time Due that this process saw last
	since time.Time // when it first saw this Due
}

func newCensus(db *database, now func() time.Time, log *slog.Logger) *census {
	return &census{db: db, now: now, log: log, from: readpref.SecondaryPreferred()}
}

// shared returns the collection of the census.
func (c *census) shared() *mongo.Collection { return c.db.assets.Database().Collection("census") }

// keep updates the census until ctx is done. The database must be opened. The function `failed` gets each error;
// the census is then unknown until the next success.
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

// index creates the index of states. Requests are answered while MongoDB builds it.
func (c *census) index(ctx context.Context) error {
	return c.db.build(ctx, c.log, c.db.assets, []mongo.IndexModel{{Keys: stateIndex}})
}

// look takes the census if it is due and no other process is taking it. Then it reads the newest result.
func (c *census) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	mine, err := c.claim(ctx)
	if err == nil && mine {
		err = c.take(ctx)
	}
	if err != nil {
		return c.db.explained(err)
	}
	var found censusDocument
	if err := c.shared().FindOne(ctx, withID(censusID)).Decode(&found); err != nil {
		return fmt.Errorf("read census: %w", c.db.explained(err))
	}
	if found.Counts != nil { // Counts is nil until a process has finished the first census
		c.last.Store(&found)
	}
	return nil
}

// claim reports whether this process must take the census. It must if it has seen the same Due for the time Rest,
// unless another process has set the next one first.
func (c *census) claim(ctx context.Context) (mine bool, err error) {
	now := c.now()
	next := now.Add(censusAge).UTC().Truncate(time.Millisecond)
	claimed := set(bson.E{Key: "due", Value: next}, bson.E{Key: "rest", Value: censusAge})
	var last censusDocument
	err = c.shared().FindOne(ctx, withID(censusID)).Decode(&last)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		_, err = c.shared().InsertOne(ctx, append(withID(censusID), bson.E{Key: "due", Value: next}))
		if isDuplicate(err) {
			return false, nil
		}
		return err == nil, err
	case err != nil:
		return false, fmt.Errorf("read the last census: %w", err)
	case !last.Due.Equal(c.due):
		c.due, c.since = last.Due, now
		return false, nil
	case now.Sub(c.since) < min(max(last.Rest, censusAge), censusShare*censusTimeout):
		return false, nil
	}
	result, err := c.shared().UpdateOne(ctx, append(withID(censusID), bson.E{Key: "due", Value: last.Due}), claimed)
	if err != nil {
		return false, fmt.Errorf("claim census: %w", err)
	}
	return result.ModifiedCount == 1, nil
}

// take counts the assets, and stores the result for all asset services.
func (c *census) take(ctx context.Context) error {
	begun := c.now()
	assets := c.db.assets.Clone(options.Collection().SetReadPreference(c.from))
	var counts bson.A
	all := int64(0)
	for _, state := range asset.Statuses { // each count reads only the index
		count, err := assets.CountDocuments(ctx, bson.D{{Key: "state", Value: state}},
			options.Count().SetHint(stateIndex))
		if err != nil {
			return fmt.Errorf("count assets: %w", err)
		}
		counts = append(counts, bson.D{{Key: "state", Value: state}, {Key: "count", Value: count}})
		all += count
	}
	reply, err := c.db.assets.Database().RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}},
		options.RunCmd().SetReadPreference(c.from)).Raw()
	if err != nil {
		return fmt.Errorf("ask for the size of the database: %w", err)
	}
	use := useOf(reply)
	ended := c.now()
	pause := restAfter(ended.Sub(begun), all)
	_, err = c.shared().UpdateOne(ctx, withID(censusID), set(
		bson.E{Key: "due", Value: ended.Add(pause)},
		bson.E{Key: "rest", Value: pause},
		bson.E{Key: "counts", Value: counts},
		bson.E{Key: "size", Value: use.Size},
		bson.E{Key: "diskFree", Value: use.DiskFree},
		bson.E{Key: "diskSize", Value: use.DiskSize},
	))
	return errs.In(err, "write census")
}

// restAfter returns the time until the next census after one that took a time and counted some assets.
func restAfter(took time.Duration, assets int64) time.Duration {
	return max(censusAge, censusShare*took, time.Duration(assets)*censusKey)
}

// useOf returns the sizes from an answer of MongoDB's command dbStats. The disk is the disk of the server that
// answered.
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

// counted returns the last census; nil if it is unknown.
func (c *census) counted(context.Context) registry.Census {
	last := c.last.Load()
	if last == nil {
		return nil
	}
	counted := registry.Census{}
	for _, c := range last.Counts {
		counted[c.State] = c.Count
	}
	return counted
}

// use returns the size of the database and of its disk; all zero if they are unknown.
func (c *census) use(context.Context) telemetry.StoreUse {
	last := c.last.Load()
	if last == nil {
		return telemetry.StoreUse{}
	}
	return telemetry.StoreUse{Size: last.Size, DiskFree: last.DiskFree, DiskSize: last.DiskSize}
}

// measure reports the census to meter until the caller calls the function `silence`.
func (c *census) measure(meter metric.Meter) (silence func()) {
	assets, room := registry.MeasureCensus(meter, c.counted), telemetry.MeasureStore(meter, "assets", c.use)
	return func() { assets(); room() }
}
