package mongostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
	"asset-registry/shared/sleep"
)

// boundedReads is the maximum number of attempts of Get to read an asset within the limit of bytes. Get tries again
// if the asset was too large in the first read and has become small enough since. The maximum is for a client that
// changes the size of an asset all the time.
const boundedReads = 2

// Get returns an asset. It returns registry.ErrNotFound if the asset does not exist, and registry.ErrLarge if its
// body has more bytes than the given limit (most).
func (s *Store) Get(ctx context.Context, id string, most int) (registry.Record, error) {
	if err := s.db.fresh(ctx); err != nil {
		return registry.Record{}, fmt.Errorf("get asset: %w", err)
	}
	if most == registry.AnySize {
		found, err := s.find(ctx, id, bson.D{})
		return s.db.recordOf(found), err
	}
	for range boundedReads {
		found, fits, err := s.findUpTo(ctx, id, most)
		if err != nil || fits {
			return s.db.recordOf(found), err
		}
		size, err := s.size(ctx, id)
		if err != nil {
			return registry.Record{}, err
		}
		if size > int64(most) {
			return registry.Record{}, registry.ErrLarge
		}
	}
	return registry.Record{}, registry.ErrLarge // the size changes too often; the caller allows more bytes next time
}

// Look implements registry.Store. Without the function see, it does not transfer the body.
func (s *Store) Look(
	ctx context.Context, id string, most int, see func(body []byte) error,
) (r registry.Record, err error) {
	if see != nil {
		if r, err = s.Get(ctx, id, most); err == nil {
			err = see(r.Body)
		}
		r.Body = nil
		return r, err
	}
	if err := s.db.fresh(ctx); err != nil {
		return r, fmt.Errorf("look at asset: %w", err)
	}
	found, err := s.find(ctx, id, bson.D{{Key: "body", Value: 0}})
	return s.db.recordOf(found), err
}

// recordOf makes the record that Get returns, from the document of an asset. The record of a removed asset has only
// its id and its origin.
func (d *database) recordOf(found document) registry.Record {
	if found.Removed {
		return registry.Record{ID: found.ID, Origin: found.Origin}
	}
	r := found.record()
	if entered := found.trail().Entered(); entered > d.horizon.Load() {
		r.Entered = entered
	}
	return r
}

// findUpTo returns an asset if its body has no more bytes than the given limit (most); the result `fits` is then true.
// If the body is larger, or if the asset does not exist, it reads no body.
func (s *Store) findUpTo(ctx context.Context, id string, most int) (found document, fits bool, err error) {
	small := append(withID(id), bson.E{Key: "size", Value: bson.D{{Key: "$lte", Value: most}}})
	err = s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, small).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return document{}, false, nil
	case err != nil:
		return document{}, false, fmt.Errorf("get asset: %w", err)
	case found.Removed:
		return found, true, registry.ErrRemoved
	}
	return found, true, nil
}

// size returns the number of bytes of an asset's body, or registry.ErrNotFound.
func (s *Store) size(ctx context.Context, id string) (int64, error) {
	found, err := s.find(ctx, id, only("revision", "removed", "size"))
	return found.Size, err
}

// find returns the given fields of an asset, or registry.ErrNotFound. The parameter `fields` must include the
// fields `revision` and `removed`; if it is empty, all fields are returned. For a removed asset, find returns its
// fields and registry.ErrRemoved.
func (s *Store) find(ctx context.Context, id string, fields bson.D) (found document, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, withID(id), options.FindOne().SetProjection(fields)).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments) || err == nil && found.isVoid():
		return document{}, registry.ErrNotFound
	case err != nil:
		return document{}, fmt.Errorf("get asset: %w", err)
	case found.Removed:
		return found, registry.ErrRemoved
	}
	return found, nil
}

// horizonFields are the fields of the clock that determine the horizon.
var horizonFields = only("last", "open")

// pageTurns is the maximum number of attempts of readPage to read a page. An attempt reads the clock first, and
// fails if an asset changes too often after that.
const pageTurns = 4

// Pauses of Page between two attempts while too many assets are above the horizon. Each pause is twice as long as
// the previous one, up to mostPagePause.
const (
	firstPagePause = 20 * time.Millisecond
	mostPagePause  = 200 * time.Millisecond
)

// Page returns assets of the feed, or of a broker, up to the horizon. It reads the horizon first, because every
// change up to the horizon is already stored (package feed). While too many assets are above the horizon, Page
// waits, but not longer than Store.patience.
func (s *Store) Page(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	if err := s.db.fresh(ctx); err != nil {
		return page, fmt.Errorf("read page: %w", err)
	}
	if q.Owner != "" && !s.filled.Load() {
		return page, fmt.Errorf("read page: %w", errFilling)
	}
	begun := time.Now()
	for pause := firstPagePause; ; pause = min(2*pause, mostPagePause) {
		page, err := s.readPage(ctx, q)
		switch {
		case err == nil:
			return page, nil
		case !errors.Is(err, errManyAbove) || time.Since(begun) >= s.patience || !sleep.For(ctx, pause):
			return registry.FeedPage{}, fmt.Errorf("read page: %w", err)
		}
	}
}

// readPage reads a page. If an asset has changed too often since the clock was read, readPage reads the clock
// again and starts anew.
func (s *Store) readPage(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	for range pageTurns {
		err = s.db.do(ctx, func(ctx context.Context) (err error) {
			page, err = s.db.feedPage(ctx, q)
			return err
		})
		if !errors.Is(err, errUnknownPlace) {
			break
		}
	}
	return page, err
}

func (d *database) feedPage(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	now, err := d.readHorizon(ctx)
	if err != nil {
		return page, err
	}
	horizon := now.batches().Horizon()
	page.Upto = horizon
	after, upto := rangeOf(q, horizon)
	if after >= upto {
		return page, nil
	}
	if err := d.boundAbove(ctx, q, now.Last, horizon); err != nil {
		return page, err
	}
	found, err := d.page(ctx, pageFilter(q, after, upto), pageOptions(q, "position", "size", "test"))
	if err != nil {
		return page, err
	}
	if len(found) == q.Limit { // the page is full: its range ends with the last entry
		if last := found[q.Limit-1].Position; q.Descending {
			after = last - 1
		} else {
			upto = last
		}
	}
	moved, err := d.moved(ctx, q, after, upto, horizon)
	if err != nil {
		return page, err
	}
	found = merge(q, found, moved)
	fit := len(found)
	if q.Bodies > 0 {
		fit = fitting(found, q.Bodies)
		if err := d.addBodies(ctx, q, found[:fit]); err != nil {
			return page, err
		}
	}
	if fit < len(found) || len(found) == q.Limit {
		page.Upto = found[fit-1].Position
	}
	page.Entries = make([]registry.Entry, fit)
	for i, d := range found[:fit] {
		page.Entries[i] = registry.Entry{
			ID: d.ID, Position: d.Position, Test: d.Test, Body: d.Body, Origin: d.Origin, Moved: d.moved,
		}
	}
	return page, nil
}

// wholeAnswer is a number of documents that no query of a page exceeds. With it, one answer has all documents, up to
// the 16 MB of an answer.
const wholeAnswer = 20_000

func (d *database) page(ctx context.Context, filter bson.D, how *options.FindOptionsBuilder) ([]document, error) {
	return findAll[document](ctx, d.assets, filter, how.SetBatchSize(wholeAnswer))
}

// findAll returns the documents of a collection that match a filter.
func findAll[T any](
	ctx context.Context, in *mongo.Collection, filter bson.D, how ...options.Lister[options.FindOptions],
) (found []T, err error) {
	cursor, err := in.Find(ctx, filter, how...)
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	return found, err
}

// addBodies adds the bodies to the entries of a page. If an asset is no longer at the position of its entry, the
// asset has changed since the entries were read, and addBodies marks the entry as moved.
func (d *database) addBodies(ctx context.Context, q registry.Query, entries []document) error {
	at := make(map[int64]*document, len(entries)) // the keys are positions; no two assets share a position
	var positions bson.A
	for i := range entries {
		if e := &entries[i]; !e.moved {
			e.moved = true
			at[e.Position] = e
			positions = append(positions, e.Position)
		}
	}
	if len(positions) == 0 {
		return nil
	}
	all := inAll(q) // a position belongs to one asset in one state
	there := append(selected(all), bson.E{Key: "position", Value: bson.D{{Key: "$in", Value: positions}}})
	found, err := d.page(ctx, there,
		options.Find().SetHint(indexOf(all)).SetProjection(only("position", "body", "origin")))
	for _, f := range found {
		e := at[f.Position]
		e.moved, e.Body = false, f.Body
		if q.Owner != "" {
			e.Origin = f.Origin
		}
	}
	return err
}

// fitting returns the number of entries, from the first one, that fit on a page. Their bodies have at most `most`
// bytes together. The first entry always fits.
func fitting(entries []document, most int) int {
	sum := 0
	for i, e := range entries {
		if sum += int(e.Size); sum > most && i > 0 {
			return i
		}
	}
	return len(entries)
}

// rangeOf returns the range of positions that a page may have: greater than the first result, and at most the
// second.
func rangeOf(q registry.Query, horizon int64) (after, upto int64) {
	switch {
	case !q.Descending:
		return q.Offset, horizon
	case q.Offset > 0:
		return 0, min(horizon, q.Offset-1)
	default:
		return 0, horizon
	}
}

func pageFilter(q registry.Query, after, upto int64) bson.D {
	within := bson.D{{Key: "$gt", Value: after}, {Key: "$lte", Value: upto}}
	return append(selected(q), bson.E{Key: "position", Value: within})
}

// selected returns a filter for all assets that the pages of a query list, whatever the offset of the page.
func selected(q registry.Query) bson.D {
	filter := bson.D{{Key: "listed", Value: true}}
	if q.Owner != "" {
		filter = bson.D{{Key: "owner", Value: q.Owner}}
		if q.State != "" {
			filter = append(filter, bson.E{Key: "state", Value: q.State})
		}
	}
	switch {
	case q.Mode != registry.All:
		filter = append(filter, bson.E{Key: "test", Value: q.Mode == registry.Test})
	case q.State != "": // MongoDB merges the keys of both modes, in the order of their positions
		filter = append(filter, bson.E{Key: "test", Value: bson.D{{Key: "$in", Value: bson.A{false, true}}}})
	}
	return filter
}

// inAll returns the query of the list of q in all modes and states.
func inAll(q registry.Query) registry.Query {
	return registry.Query{Mode: registry.All, Owner: q.Owner}
}

func indexOf(q registry.Query) bson.D {
	switch {
	case q.State != "":
		return ownStateIndex
	case q.Owner != "" && q.Mode != registry.All:
		return ownModeIndex
	case q.Owner != "":
		return ownIndex
	case q.Mode == registry.All:
		return allIndex
	default:
		return pageIndex
	}
}

func pageOptions(q registry.Query, names ...string) *options.FindOptionsBuilder {
	direction := 1
	if q.Descending {
		direction = -1
	}
	return options.Find().
		SetHint(indexOf(q)).
		SetSort(bson.D{{Key: "position", Value: direction}}).
		SetLimit(int64(q.Limit)).
		SetProjection(only(names...))
}

// Range returns listed assets in the order of their ids. It first reads the sizes of the next q.Limit documents,
// and then the bodies that fit on the page. Both reads use the index by id. So a page looks at no more than
// q.Limit documents, even if many of them are drafts and voids.
func (s *Store) Range(ctx context.Context, q registry.RangeQuery) (page registry.RangePage, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		onwards := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: q.From}}}}
		looked, err := s.db.byID(ctx, onwards, q.Limit, "listed", "size")
		if err != nil || len(looked) == 0 {
			return err
		}
		fit := fittingListed(looked, q.Bytes)
		last := looked[fit-1].ID
		if fit < len(looked) || len(looked) == q.Limit {
			page.Next = registry.NextID(last)
		}
		within := bson.D{
			{Key: "_id", Value: bson.D{{Key: "$gte", Value: q.From}, {Key: "$lte", Value: last}}},
			{Key: "listed", Value: true},
		}
		// The second read also finds assets that were created since the first read. So the limit may end the page before
		// the id in `last`.
		found, err := s.db.byID(ctx, within, q.Limit, "position", "body")
		for _, d := range found {
			page.Entries = append(page.Entries, registry.Entry{ID: d.ID, Position: d.Position, Body: d.Body})
		}
		if err == nil && len(found) == q.Limit {
			page.Next = registry.NextID(found[len(found)-1].ID)
		}
		return err
	})
	return page, errs.In(err, "read assets by id")
}

// byID returns some fields of the first documents, in the order of their ids. The parameter `limit` is the largest
// number of documents.
func (d *database) byID(ctx context.Context, filter bson.D, limit int, names ...string) ([]document, error) {
	return d.page(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)).
		SetProjection(only(names...)))
}

// fittingListed returns the number of documents, from the first one, that fit on a page. The bodies of the listed
// documents among them have at most `most` bytes together. The first listed body always fits.
func fittingListed(looked []document, most int) int {
	sum := 0
	for i, d := range looked {
		if !d.Listed {
			continue
		}
		size := int(d.Size)
		if sum += size; sum > most && sum > size {
			return i
		}
	}
	return len(looked)
}
