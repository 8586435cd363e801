package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
)

// batchRecord is the record of a batch (package feed), or one imported change.
type batchRecord struct {
	ID      string            `bson:"_id"` // recordID or importID
	At      int64             `bson:"at"`  // first position of the batch, or position of the imported change
	Shown   bool              `bson:"shown,omitempty"`
	IDs     []string          `bson:"ids"`         // assets that the batch changes
	Changes map[string]noted  `bson:"c"`           // the keys are ids of assets
	Wholes  map[string][]byte `bson:"w,omitempty"` // Revision.Whole of some changes; the keys are ids of assets
}

// noted is a change in a batchRecord.
type noted struct {
	Position int64  `bson:"p"`
	Revision int64  `bson:"r"`
	Before   int64  `bson:"b"`
	Listed   bool   `bson:"l,omitempty"`
	Test     bool   `bson:"t,omitempty"`
	Change   []byte `bson:"d,omitempty"`
}

// recordID returns the id of a batch's record.
func recordID(writer string, first int64) string { return fmt.Sprintf("%s/%d", writer, first) }

// newRecord returns the record of a batch. The record is not shown yet.
func newRecord(writer string, b feed.Batch, writes []feed.Write) batchRecord {
	record := batchRecord{
		ID: recordID(writer, b.First), At: b.First, IDs: b.IDs,
		Changes: make(map[string]noted, len(writes)), Wholes: map[string][]byte{},
	}
	for _, w := range writes {
		r := w.Document.(registry.Record)
		record.Changes[w.ID] = noted{
			Position: w.Position, Revision: w.Revision + 1, Before: w.Before,
			Listed: r.Listed, Test: r.Test, Change: r.Change,
		}
		if len(r.Whole) > 0 {
			record.Wholes[w.ID] = r.Whole
		}
	}
	return record
}

// revisions returns the record's changes with positions greater than the given one, ordered by position.
func (r batchRecord) revisions(after int64) []registry.Revision {
	var changes []registry.Revision
	for id := range r.Changes {
		if c := r.revision(id); c.Position > after {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b registry.Revision) int { return cmp.Compare(a.Position, b.Position) })
	return changes
}

// revision returns the change of one asset in the record.
func (r batchRecord) revision(id string) registry.Revision {
	c := r.Changes[id]
	return registry.Revision{
		ID: id, Revision: c.Revision, Position: c.Position, Before: c.Before,
		Listed: c.Listed, Test: c.Test, Change: c.Change, Whole: r.Wholes[id],
	}
}

// note stores a record, unless the store has a record with its id.
func (d *database) note(ctx context.Context, r batchRecord) error {
	return d.do(ctx, func(ctx context.Context) error {
		if _, err := d.changes.InsertOne(ctx, r); err != nil && !isDuplicate(err) {
			return fmt.Errorf("store the record of a batch: %w", err)
		}
		return nil
	})
}

// errNoRecord is returned if the record of a batch is missing, although the store has acknowledged that it stored
// the record.
var errNoRecord = errors.New("the store has lost the record of a batch")

// show marks a record as shown, so that readers see it.
func (d *database) show(ctx context.Context, id string) error {
	return d.do(ctx, func(ctx context.Context) error {
		result, err := d.changes.UpdateOne(ctx, withID(id), set(bson.E{Key: "shown", Value: true}))
		if err == nil && result.MatchedCount == 0 {
			err = errNoRecord
		}
		return errs.In(err, "show the record of a batch")
	})
}

func (f feedStore) Settle(ctx context.Context, writer string, first int64) (map[string]bool, error) {
	id := recordID(writer, first)
	if err := f.note(ctx, batchRecord{ID: id, At: first, IDs: []string{}, Changes: map[string]noted{}}); err != nil {
		return nil, err
	}
	var landed map[string]bool
	err := f.do(ctx, func(ctx context.Context) error {
		var record batchRecord
		one := options.FindOne().SetProjection(bson.D{{Key: "w", Value: 0}})
		if err := f.changes.FindOne(ctx, withID(id), one).Decode(&record); err != nil {
			return fmt.Errorf("read the record of a batch: %w", err)
		}
		var err error
		if landed, err = f.applied(ctx, record.revisions(0)); err != nil {
			return err
		}
		gone := slices.DeleteFunc(slices.Clone(record.IDs), func(id string) bool { return landed[id] })
		result, err := f.changes.UpdateOne(ctx, withID(id), settled(gone))
		if err == nil && result.MatchedCount == 0 {
			err = errNoRecord
		}
		return errs.In(err, "settle the record of a batch")
	})
	return landed, err
}

// settled returns the update that shows a record. The update also removes the changes of some assets from the record;
// the argument `gone` has the ids of these assets.
func settled(gone []string) bson.D {
	update := set(bson.E{Key: "shown", Value: true})
	if len(gone) == 0 {
		return update
	}
	var fields bson.D
	for _, id := range gone {
		fields = append(fields, bson.E{Key: "c." + id, Value: ""}, bson.E{Key: "w." + id, Value: ""})
	}
	return append(update,
		bson.E{Key: "$unset", Value: fields},
		bson.E{Key: "$pullAll", Value: bson.D{{Key: "ids", Value: gone}}})
}

// applied reports for each asset whether its change was applied. No change of the batch may still be under way. A
// change was applied in two cases: the asset still has the position of the change, or the record has a change that
// directly follows this change.
func (f feedStore) applied(ctx context.Context, changes []registry.Revision) (map[string]bool, error) {
	ids := make([]string, len(changes))
	for i, r := range changes {
		ids[i] = r.ID
	}
	found, err := f.page(ctx, withIDs(ids), options.Find().SetProjection(only("position")))
	if err != nil {
		return nil, fmt.Errorf("read positions of assets: %w", err)
	}
	positions := make(map[string]int64, len(found))
	for _, d := range found {
		positions[d.ID] = d.Position
	}
	applied := make(map[string]bool, len(changes))
	for _, r := range changes {
		applied[r.ID] = positions[r.ID] == r.Position
		if positions[r.ID] > r.Position {
			if applied[r.ID], err = f.followed(ctx, r); err != nil {
				return nil, fmt.Errorf("find the next change of asset: %w", err)
			}
		}
	}
	return applied, nil
}

// followed reports whether the record has a change of the same asset that directly follows r.
func (f feedStore) followed(ctx context.Context, r registry.Revision) (bool, error) {
	next := bson.D{
		{Key: "ids", Value: r.ID},
		{Key: "at", Value: bson.D{{Key: "$gt", Value: r.Position}}},
		{Key: "c." + r.ID + ".b", Value: r.Position},
	}
	err := f.changes.FindOne(ctx, next, options.FindOne().SetHint(logIndex).SetProjection(only("at"))).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	return err == nil, err
}

// Log returns changes of an asset, the newest first, or registry.ErrNotFound. The result lacks the changes of
// batches that were open when Log read the clock, or were opened later: these batches are perhaps not settled yet.
func (s *Store) Log(ctx context.Context, id string, q registry.LogQuery) (log []registry.Revision, err error) {
	if _, ok := registry.ParseID(id); !ok {
		return nil, registry.ErrNotFound
	}
	if err := s.db.fresh(ctx); err != nil {
		return nil, fmt.Errorf("read the changes of an asset: %w", err)
	}
	err = s.db.do(ctx, func(ctx context.Context) error {
		now, err := s.db.readHorizon(ctx)
		if err != nil {
			return err
		}
		log, err = s.db.readLog(ctx, id, q, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the changes of an asset: %w", err)
	}
	if len(log) == 0 || !log[0].Listed { // if the newest change is listed, the asset cannot have been removed
		if _, err := s.size(ctx, id); err != nil {
			return nil, err
		}
	}
	return log, nil
}

func (d *database) readLog(
	ctx context.Context, id string, q registry.LogQuery, now clock,
) ([]registry.Revision, error) {
	within := bson.D{{Key: "$lte", Value: now.Last}}
	if q.Before > 0 {
		within = append(within, bson.E{Key: "$lt", Value: q.Before})
	}
	filter := bson.D{{Key: "ids", Value: id}, {Key: "shown", Value: true}, {Key: "at", Value: within}}
	if open := now.records(); len(open) > 0 {
		filter = append(filter, bson.E{Key: "_id", Value: bson.D{{Key: "$nin", Value: open}}})
	}
	fields := only("at", "c."+id)
	if q.Whole {
		fields = append(fields, bson.E{Key: "w." + id, Value: 1})
	}
	limit := q.Limit + 1 // one more, because the change in the newest batch may be at q.Before or above
	found, err := findAll[batchRecord](ctx, d.changes, filter, options.Find().
		SetHint(logIndex).
		SetSort(bson.D{{Key: "at", Value: -1}}).
		SetLimit(int64(limit)).
		SetBatchSize(int32(limit)+1).
		SetProjection(fields))
	if err != nil {
		return nil, err
	}
	var log []registry.Revision
	for _, record := range found {
		if r := record.revision(id); q.Before == 0 || r.Position < q.Before {
			log = append(log, r)
		}
	}
	return log[:min(len(log), q.Limit)], nil
}

// Changes returns changes of all assets up to the horizon. It reads the horizon first, because every record up to
// the horizon is final.
func (s *Store) Changes(ctx context.Context, q registry.ChangesQuery) (page registry.ChangesPage, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		age := time.Duration(0)
		if q.Recent {
			age = registry.Recently
		}
		now, err := s.db.recentHorizon(ctx, age)
		if err != nil {
			return err
		}
		page, err = s.db.readRecord(ctx, q, now.batches().Horizon())
		return err
	})
	return page, errs.In(err, "read the record")
}

// recordBatch is the largest number of records in one answer of the database.
const recordBatch = 100

func (d *database) readRecord(
	ctx context.Context, q registry.ChangesQuery, horizon int64,
) (page registry.ChangesPage, err error) {
	if horizon <= q.After {
		return registry.ChangesPage{Upto: horizon}, nil
	}
	// A batch that begins below q.After, by less than maxBatch positions, may have changes above q.After.
	within := bson.D{{Key: "$gt", Value: q.After - maxBatch}, {Key: "$lte", Value: horizon}}
	fields := only("at", "c")
	if q.Whole {
		fields = append(fields, bson.E{Key: "w", Value: 1})
	}
	cursor, err := d.changes.Find(ctx, bson.D{{Key: "shown", Value: true}, {Key: "at", Value: within}},
		options.Find().SetHint(recordIndex).SetSort(bson.D{{Key: "at", Value: 1}}).SetProjection(fields).
			SetBatchSize(int32(min(recordBatch, q.Limit+1))))
	if err != nil {
		return page, err
	}
	defer func() { err = errors.Join(err, cursor.Close(ctx)) }()
	size := 0
	for cursor.Next(ctx) {
		var record batchRecord
		if err := cursor.Decode(&record); err != nil {
			return page, err
		}
		for _, r := range record.revisions(q.After) {
			size += len(r.Change) + len(r.Whole)
			if len(page.Changes) == q.Limit || len(page.Changes) > 0 && size > q.Bytes {
				page.Upto, page.More = page.Changes[len(page.Changes)-1].Position, true
				return page, nil
			}
			page.Changes = append(page.Changes, r)
		}
	}
	page.Upto = horizon
	return page, cursor.Err()
}

// records returns the ids of the records of the open batches.
func (c clock) records() []string {
	var open []string
	for _, writer := range slices.Sorted(maps.Keys(c.Open)) {
		open = append(open, recordID(writer, c.Open[writer]))
	}
	return open
}

func (s *Store) Rewrite(ctx context.Context, old registry.Revision, change, whole []byte) (done bool, err error) {
	if _, ok := registry.ParseID(old.ID); !ok {
		return false, nil
	}
	at, wholeAt := "c."+old.ID, "w."+old.ID
	// The batch of the change begins less than maxBatch positions below the change.
	within := bson.D{{Key: "$gt", Value: old.Position - maxBatch}, {Key: "$lte", Value: old.Position}}
	same := bson.D{
		{Key: "ids", Value: old.ID},
		{Key: "at", Value: within},
		{Key: at + ".p", Value: old.Position},
		{Key: at + ".d", Value: old.Change},
	}
	update := set(bson.E{Key: at + ".d", Value: change}, bson.E{Key: wholeAt, Value: whole})
	if len(whole) == 0 {
		update = append(set(bson.E{Key: at + ".d", Value: change}),
			bson.E{Key: "$unset", Value: bson.D{{Key: wholeAt, Value: ""}}})
	}
	err = s.db.do(ctx, func(ctx context.Context) error {
		result, err := s.db.changes.UpdateOne(ctx, same, update)
		if err == nil {
			done = result.MatchedCount == 1
		}
		return err
	})
	return done, errs.In(err, "rewrite a change")
}
