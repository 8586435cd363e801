package mongostore

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/sleep"
)

// count is the usage of a broker as it is stored. It is raised before a change of a file and lowered after one, so a
// process that is killed leaves too much in it and never too little.
type count struct {
	Broker  string `bson:"_id"`
	Waiting int64  `bson:"waiting"`
	Bytes   int64  `bson:"bytes"`
	Changes int64  `bson:"changes"` // grows with each change
	Whole   bool   `bson:"whole"`   // false until the files that were there before the count are counted
}

// add adds n times the usage of f to the count of its broker.
func (d *database) add(ctx context.Context, n int64, f file.File) error {
	u := file.Usage{}.Add(n, f.Usage())
	if u == (file.Usage{}) {
		return nil
	}
	_, err := d.usage.UpdateOne(ctx, withID(f.Broker), bson.D{{Key: "$inc", Value: bson.D{
		{Key: "waiting", Value: u.Waiting}, {Key: "bytes", Value: u.Bytes}, {Key: "changes", Value: int64(1)},
	}}}, options.UpdateOne().SetUpsert(true))
	return err
}

func (s *Store) Create(ctx context.Context, f file.File) error {
	return s.do(func(d *database) error {
		if err := d.add(ctx, 1, f); err != nil {
			return err
		}
		_, err := d.files.InsertOne(ctx, document(f))
		if mongo.IsDuplicateKeyError(err) {
			return errors.Join(file.ErrExists, d.add(ctx, -1, f))
		}
		return err
	})
}

// The function `of` returns a filter that matches the file with this id only if the file has this revision.
func of(id string, revision int64) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "revision", Value: revision}}
}

// Replace implements file.Files. Only a file that gets its bytes, or is removed, has another usage.
func (s *Store) Replace(ctx context.Context, f file.File) error {
	return s.do(func(d *database) error {
		next, filter := document(f), of(f.ID, f.Revision-1)
		same := append(filter, bson.E{Key: "state", Value: bson.D{{Key: "$ne", Value: string(file.Registered)}}})
		switch f.State {
		case file.Registered:
			same = filter
		case file.Removed:
			return d.remove(ctx, filter, next)
		}
		done, err := d.files.ReplaceOne(ctx, same, next)
		if err != nil || done.MatchedCount > 0 {
			return err
		}
		if f.State == file.Registered {
			return file.ErrStale
		}
		return d.fill(ctx, filter, f)
	})
}

// remove replaces a file by one in the state Removed.
func (d *database) remove(ctx context.Context, filter bson.D, next document) error {
	var old document
	err := d.files.FindOneAndReplace(ctx, filter, next).Decode(&old)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return file.ErrStale
	}
	if err != nil {
		return err
	}
	return d.add(ctx, -1, old.file())
}

// fill replaces a file in the state Registered by one that has bytes.
func (d *database) fill(ctx context.Context, filter bson.D, f file.File) error {
	waiting := f
	waiting.State, waiting.Size = file.Registered, 0
	if err := d.add(ctx, 1, f); err != nil {
		return err
	}
	filter = append(filter, bson.E{Key: "state", Value: string(file.Registered)})
	done, err := d.files.ReplaceOne(ctx, filter, document(f))
	switch {
	case err != nil:
		return err
	case done.MatchedCount == 0:
		return errors.Join(file.ErrStale, d.add(ctx, -1, f))
	}
	return d.add(ctx, -1, waiting)
}

func (s *Store) Delete(ctx context.Context, f file.File) error {
	return s.do(func(d *database) error {
		done, err := d.files.DeleteOne(ctx, of(f.ID, f.Revision))
		switch {
		case err != nil:
			return err
		case done.DeletedCount == 0:
			return file.ErrStale
		}
		return d.add(ctx, -1, f)
	})
}

func (s *Store) Usage(ctx context.Context, broker string) (u file.Usage, err error) {
	err = s.do(func(d *database) error {
		var c count
		err := d.usage.FindOne(ctx, withID(broker)).Decode(&c)
		if err == nil && c.Whole {
			u = file.Usage{Waiting: c.Waiting, Bytes: c.Bytes}
			return nil
		}
		if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			return err
		}
		all, err := d.sums(ctx, bson.D{{Key: "broker", Value: broker}})
		u = all[broker]
		return err
	})
	return u, err
}

// sums counts the files that match a filter, by broker.
func (d *database) sums(ctx context.Context, filter bson.D) (map[string]file.Usage, error) {
	all := map[string]file.Usage{}
	waiting := append(slices.Clone(filter), bson.E{Key: "state", Value: string(file.Registered)})
	err := d.sum(ctx, waiting, 1, func(broker string, n int64) { all[broker] = file.Usage{Waiting: n} })
	if err != nil {
		return nil, err
	}
	kept := append(slices.Clone(filter), bson.E{Key: "state", Value: bson.D{{Key: "$ne", Value: string(file.Removed)}}})
	err = d.sum(ctx, kept, "$size", func(broker string, n int64) {
		all[broker] = file.Usage{Waiting: all[broker].Waiting, Bytes: n}
	})
	return all, err
}

// sum adds up a value of the files that match a filter, by broker.
func (d *database) sum(ctx context.Context, filter bson.D, value any, add func(broker string, n int64)) error {
	cursor, err := d.files.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: filter}},
		{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: "$broker"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: value}}},
		}}},
	})
	if err != nil {
		return err
	}
	var groups []struct {
		Broker string `bson:"_id"`
		N      int64  `bson:"n"`
	}
	if err := cursor.All(ctx, &groups); err != nil {
		return err
	}
	for _, g := range groups {
		add(g.Broker, g.N)
	}
	return nil
}

// Recount implements file.Files. A count is corrected if nothing has changed it since a moment before which each change
// had ended, or was given up.
func (s *Store) Recount(ctx context.Context) error {
	return s.do(func(d *database) error {
		cursor, err := d.usage.Find(ctx, bson.D{})
		if err != nil {
			return err
		}
		var counts []count
		if err := cursor.All(ctx, &counts); err != nil || !sleep.For(ctx, s.settled) {
			return errors.Join(err, ctx.Err())
		}
		all, err := d.sums(ctx, bson.D{})
		if err != nil {
			return err
		}
		for _, c := range counts {
			if err := d.correct(ctx, c, c.Broker, all[c.Broker]); err != nil {
				return err
			}
			delete(all, c.Broker)
		}
		for broker, u := range all {
			if err := d.correct(ctx, count{}, broker, u); err != nil {
				return err
			}
		}
		return nil
	})
}

// correct replaces the count `former` by the usage u, if nothing has changed it.
func (d *database) correct(ctx context.Context, former count, broker string, u file.Usage) error {
	if former.Whole && u == (file.Usage{Waiting: former.Waiting, Bytes: former.Bytes}) {
		return nil
	}
	next := count{Broker: broker, Waiting: u.Waiting, Bytes: u.Bytes, Changes: former.Changes, Whole: true}
	if former.Broker == "" {
		_, err := d.usage.InsertOne(ctx, next)
		if mongo.IsDuplicateKeyError(err) {
			return nil // a change has made the count meanwhile
		}
		return err
	}
	filter := bson.D{{Key: "_id", Value: broker}, {Key: "changes", Value: former.Changes}}
	_, err := d.usage.ReplaceOne(ctx, filter, next)
	return err
}
