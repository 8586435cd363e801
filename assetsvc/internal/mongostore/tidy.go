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
	sizeBatch    = 4   // documents read at once, with bodies of up to 4 MiB each
	ringBatch    = 500 // documents changed at once
	tidyProgress = 10 * time.Second
	tidyPause    = time.Second // after a failure
)

// tidy brings the documents of earlier versions up to date, in the background: it adds
// the missing size to each, and removes the rings of its newest changes, which the
// record has. Until then, pages with bodies have fewer entries. It may be interrupted,
// and several processes may run it at once. A change of an asset does the same.
func (s *Store) tidy(ctx context.Context) {
	started, done := time.Now(), 0
	logged := started
	for _, step := range []func(ctx context.Context, after string) (n int, last string, err error){
		s.db.addSizes, s.db.dropRings,
	} {
		for after := ""; ctx.Err() == nil; {
			n, last, err := step(ctx, after)
			if err != nil {
				s.log.Warn("tidying the store failed; it is retried", "error", err)
				wait(ctx, tidyPause)
				continue
			}
			if n == 0 {
				break
			}
			done, after = done+n, last
			if time.Since(logged) > tidyProgress {
				logged = time.Now()
				s.log.Info("the documents of the store are brought up to date", "changed", done)
			}
		}
	}
	for ctx.Err() == nil {
		err := s.db.noteTidy(ctx)
		if err == nil {
			break
		}
		s.log.Warn("tidying the store failed; it is retried", "error", err)
		wait(ctx, tidyPause)
	}
	if done > 0 && ctx.Err() == nil {
		s.log.Info("the documents of the store are up to date", "changed", done,
			"seconds", time.Since(started).Seconds())
	}
}

// hasNoSize matches documents without a size, hasRings those with a ring.
var (
	hasNoSize = bson.E{Key: "size", Value: bson.D{{Key: "$exists", Value: false}}}
	hasRings  = bson.E{Key: "trail", Value: bson.D{{Key: "$exists", Value: true}}}
)

// untidy reads up to limit documents after an id that match a filter. It returns none
// if the clock says that all are tidy.
func (d *database) untidy(
	ctx context.Context, after string, matches bson.E, limit int64, fields ...string,
) ([]document, error) {
	now, err := d.readClock(ctx, only("tidy"))
	if err != nil || now.Tidy {
		return nil, err
	}
	return d.page(ctx, bson.D{afterID(after), matches}, options.Find().
		SetSort(bson.D{{Key: "_id", Value: 1}}).
		SetLimit(limit).
		SetProjection(only(fields...)))
}

// addSizes adds the sizes of some documents after an id. It returns the number of
// documents and the id of the last.
func (d *database) addSizes(ctx context.Context, after string) (n int, last string, err error) {
	err = d.do(ctx, func(ctx context.Context) error {
		found, err := d.untidy(ctx, after, hasNoSize, sizeBatch, "revision", "body")
		if err != nil || len(found) == 0 {
			return err
		}
		n, last = len(found), found[len(found)-1].ID
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

// dropRings removes the rings of some documents after an id. It returns the number of
// documents and the id of the last.
func (d *database) dropRings(ctx context.Context, after string) (n int, last string, err error) {
	err = d.do(ctx, func(ctx context.Context) error {
		found, err := d.untidy(ctx, after, hasRings, ringBatch, "revision")
		if err != nil || len(found) == 0 {
			return err
		}
		n, last = len(found), found[len(found)-1].ID
		ids := make([]string, n)
		for i, doc := range found {
			ids[i] = doc.ID
		}
		if _, err := d.assets.UpdateMany(ctx, withIDs(ids), bson.D{withoutRings}); err != nil {
			return fmt.Errorf("remove rings: %w", err)
		}
		return nil
	})
	return n, last, err
}

// noteTidy notes in the clock that no document is of an earlier version, unless the
// clock says so already.
func (d *database) noteTidy(ctx context.Context) error {
	return d.do(ctx, func(ctx context.Context) error {
		untidy := append(withID(clockID), bson.E{Key: "tidy", Value: false})
		if _, err := d.clocks.UpdateOne(ctx, untidy, set(bson.E{Key: "tidy", Value: true})); err != nil {
			return fmt.Errorf("note that the documents are up to date: %w", err)
		}
		return nil
	})
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
