package mongostore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"asset-registry/shared/dataformat"
)

// database holds the collections and creates the sessions that use them.
type database struct {
	client  *mongo.Client
	assets  *mongo.Collection
	changes *mongo.Collection
	clocks  *mongo.Collection
	log     *mongo.Collection
	days    *mongo.Collection
	hooks   *mongo.Collection
	senders *mongo.Collection
	timeout time.Duration                  // of one operation
	seen    atomic.Pointer[bson.Timestamp] // newest operation that this process knows of
	barrier *barrier                       // of fresh reads; nil: reads need none

	removals sync.WaitGroup // of records of refused batches
}

const (
	idleConnection  = 5 * time.Minute
	defaultDatabase = "assetregistry"
)

// connect returns the database that uri names, or "assetregistry" if uri names
// none. It does not wait for an answer.
func connect(uri string, timeout time.Duration, also ...*options.ClientOptions) (*database, error) {
	parsed, err := connstring.ParseAndValidate(uri)
	if err != nil {
		return nil, errors.New("the address of the MongoDB store is malformed") // err may quote a password
	}
	name := parsed.Database
	if name == "" {
		name = defaultDatabase
	}
	journal := true
	ours := options.Client().ApplyURI(uri).
		SetAppName("assetsvc").
		SetTimeout(timeout).
		SetServerSelectionTimeout(timeout).
		SetConnectTimeout(timeout).
		SetMaxConnIdleTime(idleConnection).
		SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journal}).
		SetReadConcern(readconcern.Majority()).
		SetReadPreference(readpref.Primary())
	d := &database{}
	all := options.MergeClientOptions(append(also, ours)...)
	client, err := mongo.Connect(all.SetMonitor(d.listening(all.Monitor)))
	if err != nil {
		return nil, fmt.Errorf("set up MongoDB client: %w", err)
	}
	db := client.Database(name)
	*d = database{
		client:  client,
		assets:  db.Collection("assets"),
		changes: db.Collection("changes"),
		clocks:  db.Collection("clock"),
		log:     db.Collection("log"),
		days:    db.Collection("numbers"),
		hooks:   db.Collection("webhooks"),
		senders: db.Collection("senders"),
		timeout: timeout,
	}
	return d, nil
}

func (d *database) disconnect() error {
	d.removals.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	if err := d.client.Disconnect(ctx); err != nil {
		return fmt.Errorf("disconnect from MongoDB: %w", err)
	}
	return nil
}

// do runs operations in one session, with one deadline for all of them. The
// session sees everything that this process has seen before.
func (d *database) do(ctx context.Context, operations func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	session, err := d.client.StartSession()
	if err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	if seen := d.seen.Load(); seen != nil {
		if err := session.AdvanceOperationTime(seen); err != nil {
			return fmt.Errorf("advance session: %w", err)
		}
	}
	return operations(mongo.NewSessionContext(ctx, session))
}

// advance moves seen forward to t. A nil t changes nothing.
func (d *database) advance(t *bson.Timestamp) {
	for t != nil {
		seen := d.seen.Load()
		if seen != nil && seen.Compare(*t) >= 0 || d.seen.CompareAndSwap(seen, t) {
			return
		}
	}
}

// errForeign is returned for a database that holds other data than assets, or assets in
// another format.
var errForeign = errors.New("the MongoDB database cannot be read")

// feedIndexes are the indexes of the feed: of one mode, and of all modes.
var feedIndexes = []bson.D{
	{{Key: "listed", Value: 1}, {Key: "test", Value: 1}, {Key: "position", Value: 1}},
	{{Key: "listed", Value: 1}, {Key: "position", Value: 1}},
}

// recordIndexes are the indexes of the record: of all changes, and of one asset.
var recordIndexes = []bson.D{
	{{Key: "shown", Value: 1}, {Key: "at", Value: 1}},
	{{Key: "ids", Value: 1}, {Key: "at", Value: 1}},
}

// webhookIndexes are the indexes of webhooks: of those of one broker.
var webhookIndexes = []bson.D{{{Key: "broker", Value: 1}, {Key: "byAdmin", Value: 1}, {Key: "_id", Value: 1}}}

// placeIndex returns an index that lets each place of a broker have one webhook. It leaves
// out webhooks without a place. The driver changes the options of a model, so stores that
// start at once must not share one.
func placeIndex() mongo.IndexModel {
	return mongo.IndexModel{
		Keys: bson.D{{Key: "place", Value: 1}}, Options: options.Index().SetUnique(true).SetSparse(true),
	}
}

// prepare creates the indexes and the clock if they are missing. It may be
// repeated, and several processes may run it at once.
func (d *database) prepare(ctx context.Context) error {
	return d.do(ctx, func(ctx context.Context) error {
		if err := d.createClock(ctx, newClock()); err != nil {
			return err
		}
		found, err := d.readFormat(ctx)
		if err != nil {
			return err
		}
		if found != format {
			return fmt.Errorf("%w: %w", errForeign, dataformat.Refusal(found, format))
		}
		return d.createIndexes(ctx)
	})
}

// createIndexes creates one index at a time: the MongoDB server of the tests
// fails to create several at once if they exist.
func (d *database) createIndexes(ctx context.Context) error {
	for collection, indexes := range map[*mongo.Collection][]bson.D{
		d.assets: feedIndexes, d.changes: recordIndexes, d.hooks: webhookIndexes,
	} {
		for _, fields := range indexes {
			if _, err := collection.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: fields}); err != nil {
				return fmt.Errorf("create index: %w", err)
			}
		}
	}
	if _, err := d.hooks.Indexes().CreateOne(ctx, placeIndex()); err != nil {
		return fmt.Errorf("create index: %w", err)
	}
	return nil
}

// takeNumbers reserves count numbers of a day and returns the first.
func (d *database) takeNumbers(ctx context.Context, day string, count int) (first int, err error) {
	var after struct {
		Last int64 `bson:"last"`
	}
	err = d.do(ctx, func(ctx context.Context) error {
		return d.days.FindOneAndUpdate(ctx, withID(day),
			bson.D{{Key: "$inc", Value: bson.D{{Key: "last", Value: int64(count)}}}},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After),
		).Decode(&after)
	})
	if err != nil {
		return 0, fmt.Errorf("take numbers of %s: %w", day, err)
	}
	return int(after.Last) - count + 1, nil
}
