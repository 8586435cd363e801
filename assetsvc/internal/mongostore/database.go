package mongostore

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/fair"
)

// The method `do` runs operations in one session, with one deadline for all of them. The session sees everything that
// this process has seen before. Errors of the configuration say in one line what an operator can check. While a
// reading waits for MongoDB, it has no place.
func (d *database) do(ctx context.Context, operations func(context.Context) error) error {
	if !d.opened.Load() {
		return errNotOpened
	}
	return fair.Rest(ctx, func() error { return d.inSession(ctx, operations) })
}

func (d *database) inSession(ctx context.Context, operations func(context.Context) error) error {
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
	return d.explained(operations(mongo.NewSessionContext(ctx, session)))
}

// advance stores t in the field `seen` if t is later than the time there. A nil t changes nothing.
func (d *database) advance(t *bson.Timestamp) {
	for t != nil {
		seen := d.seen.Load()
		if seen != nil && seen.Compare(*t) >= 0 || d.seen.CompareAndSwap(seen, t) {
			return
		}
	}
}

// errForeign is returned for a database that contains something other than assets, or assets in another format.
var errForeign = errors.New("the MongoDB database cannot be read")

// claim creates the clock if it is missing, and checks the format of the database. Several processes may do this
// at the same time.
func (d *database) claim(ctx context.Context) error {
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
		return nil
	})
}

// takeNumbers reserves asset numbers for a day, as many as the parameter `count` says, and returns the first of them.
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
