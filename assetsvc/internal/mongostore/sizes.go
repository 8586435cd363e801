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
	sizeBatch    = 4 // documents read at once, with bodies of up to 4 MiB each
	sizeProgress = 10 * time.Second
	sizePause    = time.Second // after a failure
)

// addSizes upgrades a database of an earlier version in the background: it adds
// the missing size to each document. Until then, pages with bodies have fewer
// entries. It may be interrupted, and several processes may run it at once. A
// change of an asset stores its own size.
func (s *Store) addSizes(ctx context.Context) {
	started, done, after := time.Now(), 0, ""
	logged := started
	for ctx.Err() == nil {
		n, last, err := s.db.addSizes(ctx, after)
		if err != nil {
			s.log.Warn("upgrade of the store failed; it is retried", "error", err)
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
		if time.Since(logged) > sizeProgress {
			logged = time.Now()
			s.log.Info("upgrade of the store is under way", "assets", done)
		}
	}
}

// hasNoSize matches documents without a size.
var hasNoSize = bson.E{Key: "size", Value: bson.D{{Key: "$exists", Value: false}}}

// addSizes adds the sizes of some documents after an id. It returns the number of
// documents and the id of the last. When none is left it notes that in the
// clock and returns 0.
func (d *database) addSizes(ctx context.Context, after string) (n int, last string, err error) {
	err = d.do(ctx, func(ctx context.Context) error {
		now, err := d.readClock(ctx, only("sized"))
		if err != nil || now.Sized {
			return err
		}
		found, err := d.page(ctx, bson.D{afterID(after), hasNoSize}, options.Find().
			SetSort(bson.D{{Key: "_id", Value: 1}}).
			SetLimit(sizeBatch).
			SetProjection(only("revision", "body")))
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
				SetFilter(append(withID(doc.ID), bson.E{Key: "revision", Value: doc.Revision}, hasNoSize)).
				SetUpdate(set(bson.E{Key: "size", Value: int64(len(doc.Body))}))
		}
		if _, err := d.assets.BulkWrite(ctx, updates, options.BulkWrite().SetOrdered(false)); err != nil {
			return fmt.Errorf("add sizes: %w", err)
		}
		return nil
	})
	return n, last, err
}

func (d *database) noteSized(ctx context.Context) error {
	_, err := d.clocks.UpdateOne(ctx, withID(clockID), set(bson.E{Key: "sized", Value: true}))
	if err != nil {
		return fmt.Errorf("note that all assets have a size: %w", err)
	}
	return nil
}

// wait returns after pause, or once ctx is done.
func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
