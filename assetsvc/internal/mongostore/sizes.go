package mongostore

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	sizeBatch    = 4 // documents with their bodies, of 4 MiB at most
	sizeProgress = 10 * time.Second
	sizePause    = time.Second // after a failure
)

// addSizes upgrades a database of a version whose documents have no size: it
// adds the size to each, in the background. Until that is done, pages with
// bodies are short. It may be interrupted, and done by several processes at
// once. A change made meanwhile brings its own size.
func (s *Store) addSizes(ctx context.Context) {
	started, done, after := time.Now(), 0, ""
	told := started
	for ctx.Err() == nil {
		n, last, err := s.db.addSizes(ctx, after)
		if err != nil {
			s.log.Warn("upgrade of the store is interrupted; it goes on", "error", err)
			wait(ctx, sizePause)
			continue
		}
		if n == 0 {
			if done > 0 {
				s.log.Info("upgrade of the store is done", "assets", done, "seconds", time.Since(started).Seconds())
			}
			return
		}
		done, after = done+n, last
		if time.Since(told) > sizeProgress {
			told = time.Now()
			s.log.Info("upgrade of the store: sizes are added", "assets", done)
		}
	}
}

// addSizes adds the sizes of some documents after an id, and returns how many
// there were, and the last one's id. None is left when it returns 0: it notes
// that in the clock.
func (d *database) addSizes(ctx context.Context, after string) (n int, last string, err error) {
	err = d.do(ctx, func(ctx context.Context) error {
		now, err := d.readClock(ctx, bson.D{{Key: "sized", Value: 1}})
		if err != nil || now.Sized {
			return err
		}
		found, err := d.page(ctx,
			bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: after}}}, {Key: "size", Value: bson.D{{Key: "$exists", Value: false}}}},
			options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(sizeBatch).
				SetProjection(bson.D{{Key: "revision", Value: 1}, {Key: "body", Value: 1}}))
		if err != nil {
			return fmt.Errorf("find assets without size: %w", err)
		}
		if n = len(found); n == 0 {
			return d.noteSized(ctx)
		}
		last = found[n-1].ID
		updates := make([]mongo.WriteModel, n)
		for i, doc := range found {
			updates[i] = mongo.NewUpdateOneModel().
				SetFilter(bson.D{{Key: "_id", Value: doc.ID}, {Key: "revision", Value: doc.Revision}, {Key: "size", Value: bson.D{{Key: "$exists", Value: false}}}}).
				SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "size", Value: int64(len(doc.Body))}}}})
		}
		if _, err := d.assets.BulkWrite(ctx, updates, options.BulkWrite().SetOrdered(false)); err != nil {
			return fmt.Errorf("add sizes: %w", err)
		}
		return nil
	})
	return n, last, err
}

func (d *database) noteSized(ctx context.Context) error {
	_, err := d.clocks.UpdateOne(ctx, bson.D{{Key: "_id", Value: clockID}}, bson.D{{Key: "$set", Value: bson.D{{Key: "sized", Value: true}}}})
	if err != nil {
		return fmt.Errorf("note that all assets have a size: %w", err)
	}
	return nil
}

// wait returns after a time, or when ctx is done.
func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
