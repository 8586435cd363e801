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

	"asset-registry/shared/sleep"
)

// pageIndex is the index for pages of one mode. allIndex is the index for pages of all modes. They contain all
// fields of an entry except its body, so MongoDB reads no document to find the entries of a page.
var (
	pageIndex = only("listed", "test", "position", "size", "_id")
	allIndex  = only("listed", "position", "test", "size", "_id")
)

// The lists of a broker's own assets have an index of all assets, one of each mode, and one of each state, so that a
// page reads no more keys than it has entries. They also contain all fields of an entry except its body.
var (
	ownIndex      = only("owner", "position", "test", "state", "size", "_id")
	ownModeIndex  = only("owner", "test", "position", "state", "size", "_id")
	ownStateIndex = only("owner", "state", "test", "position", "size", "_id")
)

// recordIndex finds the changes of all assets in their order. logIndex finds the changes of one asset.
var (
	recordIndex = only("shown", "at")
	logIndex    = only("ids", "at")
)

// stateIndex is the index of the census.
var stateIndex = only("state")

// webhookIndex is the index of the webhooks of one broker.
var webhookIndex = only("broker", "byAdmin", "_id")

// placeIndex returns an index that allows one webhook in each place. A place includes its broker. Webhooks without a
// place are not in the index. It returns a new model each time, because the driver changes the options of a model. So
// two stores that start at the same time must not share a model.
func placeIndex() mongo.IndexModel {
	return mongo.IndexModel{Keys: only("place"), Options: options.Index().SetUnique(true).SetSparse(true)}
}

const (
	buildTimeout  = 24 * time.Hour   // time limit of one command that builds indexes
	buildProgress = 10 * time.Second // time between two lines about the progress in the log
)

// errNoIndex is returned while an index is missing or is still being built.
var errNoIndex = errors.New("an index of the store does not stand")

// createIndexes creates the indexes of the store. It returns nil once MongoDB can use all of them.
func (d *database) createIndexes(ctx context.Context, log *slog.Logger) error {
	for _, c := range []struct {
		in   *mongo.Collection
		keys []bson.D
		more []mongo.IndexModel
	}{
		{d.assets, []bson.D{pageIndex, allIndex, ownIndex, ownModeIndex, ownStateIndex}, nil},
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

// build creates the missing indexes of a collection, in one scan of it. The timeout of an operation does not apply: a
// large collection takes minutes, and MongoDB gives up the indexes if the command ends early. Another process may be
// building the same indexes, so the method finally asks for each index whether MongoDB can use it.
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
	if replicated { // a server without replication refuses this option
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

// isReplicated reports whether the server belongs to a replica set or a sharded cluster.
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

// tellProgress logs at each interval of buildProgress that MongoDB is building indexes, until the caller calls the
// function `ended`.
func (d *database) tellProgress(ctx context.Context, log *slog.Logger, in *mongo.Collection) (ended func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for begun := time.Now(); sleep.For(ctx, buildProgress); {
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

// stands returns nil if MongoDB can use the index with these keys. MongoDB refuses a query with a hint at an
// index that is missing or is being built.
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

// badHint is MongoDB's error code for a hint at an index that it cannot use.
const badHint = 2
