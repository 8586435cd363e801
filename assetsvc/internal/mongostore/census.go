package mongostore

import (
	"context"
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
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
)

const (
	censusAge     = time.Minute      // least time from one census to the next
	censusShare   = 50               // counting takes at most a 50th of the time until the next census
	censusKey     = time.Millisecond // least time until the next census for each asset that was counted
	censusTimeout = time.Minute      // limit for the time of one census
	censusRetry   = 15 * time.Second // time until the next census after one that failed
)

// census counts the assets in each state and reads the size of the database, for the metrics of this process. Other
// processes count, too, so they need not agree on a time. It counts on a secondary if the replica set has one, and uses
// no session.
type census struct {
	db   *database
	log  *slog.Logger
	last atomic.Pointer[counts] // the newest result; nil: unknown
	from *readpref.ReadPref     // which server counts
}

// counts is the result of a census.
type counts struct {
	assets registry.Census
	all    int64 // the number of all assets
	use    telemetry.StoreUse
}

func newCensus(db *database, log *slog.Logger) *census {
	return &census{db: db, log: log, from: readpref.SecondaryPreferred()}
}

// keep updates the census until ctx is done. The database must be opened. The function `failed` gets each error;
// the census is then unknown until the next success.
func (c *census) keep(ctx context.Context, failed func(error)) {
	for pause := time.Duration(0); sleep.For(ctx, pause); {
		begun := time.Now()
		found, err := c.take(ctx)
		switch c.last.Store(found); {
		case err == nil:
			pause = restAfter(time.Since(begun), found.all)
		case ctx.Err() == nil:
			pause = censusRetry
			failed(err)
		}
	}
}

// take creates the index of states if it is missing, and counts the assets. Requests are answered while MongoDB builds
// the index. With an error, the result is nil.
func (c *census) take(ctx context.Context) (*counts, error) {
	if err := c.db.build(ctx, c.log, c.db.assets, []mongo.IndexModel{{Keys: stateIndex}}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	assets := c.db.assets.Clone(options.Collection().SetReadPreference(c.from))
	found := &counts{assets: registry.Census{}}
	for _, state := range asset.Statuses { // each count reads only the index
		count, err := assets.CountDocuments(ctx, bson.D{{Key: "state", Value: state}},
			options.Count().SetHint(stateIndex))
		if err != nil {
			return nil, fmt.Errorf("count assets: %w", c.db.explained(err))
		}
		found.assets[state] = count
		found.all += count
	}
	reply, err := c.db.assets.Database().RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}},
		options.RunCmd().SetReadPreference(c.from)).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask for the size of the database: %w", c.db.explained(err))
	}
	found.use = useOf(reply)
	return found, nil
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
	if last := c.last.Load(); last != nil {
		return last.assets
	}
	return nil
}

// use returns the size of the database and of its disk; all zero if they are unknown.
func (c *census) use(context.Context) telemetry.StoreUse {
	if last := c.last.Load(); last != nil {
		return last.use
	}
	return telemetry.StoreUse{}
}

// measure reports the census to meter until the caller calls the function `silence`.
func (c *census) measure(meter metric.Meter) (silence func()) {
	assets, room := registry.MeasureCensus(meter, c.counted), telemetry.MeasureStore(meter, "assets", c.use)
	return func() { assets(); room() }
}
