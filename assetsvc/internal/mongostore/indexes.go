package mongostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// pageIndex and allIndex are the indexes of pages: of one mode, and of all modes. They have
// all fields of an entry without its body, so MongoDB reads no document for a page.
var (
	pageIndex = only("listed", "test", "position", "size", "_id")
	allIndex  = only("listed", "position", "test", "size", "_id")
)

// ownIndex is the index of the lists of brokers. It too has all fields of an entry without its
// body.
var ownIndex = only("owner", "position", "test", "state", "size", "_id")

// recordIndex and logIndex are the indexes of the record: of all changes, and of one asset.
var (
	recordIndex = only("shown", "at")
	logIndex    = only("ids", "at")
)

// stateIndex is the index of the census.
var stateIndex = only("state")

// webhookIndex is the index of the webhooks of one broker.
var webhookIndex = only("broker", "byAdmin", "_id")

// placeIndex returns an index that lets each place of a broker have one webhook. It leaves
// out webhooks without a place. The driver changes the options of a model, so stores that
// start at once must not share one.
func placeIndex() mongo.IndexModel {
	return mongo.IndexModel{Keys: only("place"), Options: options.Index().SetUnique(true).SetSparse(true)}
}

const (
	buildTimeout  = 24 * time.Hour   // of a command that builds indexes
	buildProgress = 10 * time.Second // between two lines of the log
)

// errNoIndex is returned while an index does not stand.
var errNoIndex = errors.New("an index of the store does not stand")

// createIndexes creates the indexes of the store, and returns nil once they stand.
func (d *database) createIndexes(ctx context.Context, log *slog.Logger) error {
	for _, c := range []struct {
		in   *mongo.Collection
		keys []bson.D
		more []mongo.IndexModel
	}{
		{d.assets, []bson.D{pageIndex, allIndex, ownIndex}, nil},
		{d.changes, []bson.D{recordIndex, logIndex}, nil},
		{d.hooks, []bson.D{webhookIndex}, []mongo.IndexModel{placeIndex()}},
	} {
		models := c.more
		for _, keys := range c.keys {
			models = append(models, mongo.IndexModel{Keys: keys})
		}
		if err := d.build(ctx, log, c.in, models); err != nil {
			return err
		}
	}
	return nil
}

// build creates indexes of a collection that are missing, in one scan of it. In a large
// collection that takes minutes, so it has no timeout of an operation: MongoDB gives up an
// index whose command ends. Another process may build the same. So build asks in the end
// whether each index can be used.
func (d *database) build(
	ctx context.Context, log *slog.Logger, in *mongo.Collection, models []mongo.IndexModel,
) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	replicated, err := d.isReplicated(ctx)
	if err != nil {
		return err
	}
	how := options.CreateIndexes()
	if replicated { // another server refuses the option
		how.SetCommitQuorumMajority()
	}
	begun, ended := time.Now(), d.tellProgress(ctx, log, in)
	_, err = in.Indexes().CreateMany(ctx, models, how)
	ended()
	if err != nil {
		return fmt.Errorf("create indexes of %s: %w", in.Name(), d.explained(err))
	}
	for _, m := range models {
		if err := d.stands(ctx, in, m.Keys.(bson.D)); err != nil {
			return err
		}
	}
	if took := time.Since(begun); took > buildProgress {
		log.Info("the indexes of the store stand", "collection", in.Name(), "took", took.Round(time.Second))
	}
	return nil
}

// isReplicated tells whether the server belongs to a replica set or a sharded cluster.
func (d *database) isReplicated(ctx context.Context) (bool, error) {
	var hello struct {
		SetName string `bson:"setName"`
		Message string `bson:"msg"`
	}
	err := d.do(ctx, func(ctx context.Context) error {
		return d.clocks.Database().RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
	})
	return hello.SetName != "" || hello.Message == "isdbgrid", err
}

// tellProgress logs from time to time that indexes are being built, until ended is called.
func (d *database) tellProgress(ctx context.Context, log *slog.Logger, in *mongo.Collection) (ended func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		begun, tick := time.Now(), time.NewTicker(buildProgress)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var documents int64
			err := d.do(ctx, func(ctx context.Context) (err error) {
				documents, err = in.EstimatedDocumentCount(ctx)
				return err
			})
			if err == nil {
				log.Info("MongoDB is building indexes of the store", "collection", in.Name(), "documents", documents,
					"since", time.Since(begun).Round(time.Second))
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// stands returns nil if MongoDB uses an index. It refuses the hint if the index is missing
// or is being built.
func (d *database) stands(ctx context.Context, in *mongo.Collection, keys bson.D) error {
	err := d.do(ctx, func(ctx context.Context) error {
		one := options.FindOne().SetHint(keys).SetProjection(only("_id"))
		if err := in.FindOne(ctx, bson.D{}, one).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
			return err
		}
		return nil
	})
	var refused mongo.CommandError
	if errors.As(err, &refused) && refused.Code == badHint {
		return fmt.Errorf("%w: of %s by %v", errNoIndex, in.Name(), keys)
	}
	return err
}

// badHint is MongoDB's error code for a hint that names no index that stands.
const badHint = 2
