package feed

import (
	"context"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// elections makes the primary of a real replica set step down at regular intervals.
type elections struct{ admin *mongo.Database }

const electionEach = 20 * time.Second

// newElections returns nil unless MONGO_TEST_ELECTIONS is 1, because elections disturb all other users of the
// replica set. The database user needs the role clusterManager.
func newElections(t *testing.T, store string) *elections {
	t.Helper()
	if os.Getenv("MONGO_TEST_ELECTIONS") != "1" {
		return nil
	}
	client, err := mongo.Connect(options.Client().ApplyURI(store))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &elections{client.Database("admin")}
}

// hold makes the primary step down repeatedly until ctx is done. If e is nil, it does nothing.
func (e *elections) hold(ctx context.Context, t *testing.T) {
	if e == nil {
		return
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for held := 0; ; {
			select {
			case <-time.After(electionEach):
			case <-ctx.Done():
				t.Logf("%d primaries stepped down", held)
				return
			}
			down := bson.D{{Key: "replSetStepDown", Value: 10}, {Key: "secondaryCatchUpPeriodSecs", Value: 5}}
			if err := e.admin.RunCommand(ctx, down).Err(); err != nil && ctx.Err() == nil {
				t.Errorf("step down: %v", err)
				continue
			}
			held++
		}
	}()
}
