// Package mongostore keeps the metadata of files in the MongoDB database of the assets (file.Files,
// file.Readings). During a failover, a read may miss the newest change. Each change requires the revision that
// was read, so a change based on an old read fails.
package mongostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
)

const readingID = "reading"

// Store keeps files in the collections files, files.usage, files.state and files.await. While MongoDB is away, its
// methods return faults of kind Unavailable.
type Store struct {
	uri     string
	timeout time.Duration
	settled time.Duration            // by then, a change of a file has ended or was given up
	opened  atomic.Pointer[database] // nil until DNS has told the servers of the address
	unready atomic.Pointer[error]    // the reason why the indexes are not known to be there; nil: they are there

	stop    context.CancelFunc // ends the goroutine that prepares the store
	running sync.WaitGroup
}

// database has the collections.
type database struct {
	client                     *mongo.Client
	files, usage, state, await *mongo.Collection
}

// Ready returns nil if the indexes are there and MongoDB answers.
func (s *Store) Ready(ctx context.Context) error {
	if why := s.unready.Load(); why != nil {
		return unavailable(*why)
	}
	_, err := s.Reading(ctx)
	return err
}

// Clock returns the time of MongoDB's primary.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	err := s.do(func(d *database) error {
		return d.files.Database().RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
	})
	return hello.LocalTime, err
}

// The method `do` calls an operation with the collections. An error of MongoDB becomes a fault of kind Unavailable,
// because the same request may work once MongoDB has elected a primary, or answers again.
func (s *Store) do(operation func(*database) error) error {
	d := s.opened.Load()
	if d == nil {
		return unavailable(errors.New("the store is not open yet"))
	}
	err := operation(d)
	switch {
	case err == nil, errors.Is(err, file.ErrExists), errors.Is(err, file.ErrNotFound), errors.Is(err, file.ErrStale):
		return err
	}
	return unavailable(err)
}

func unavailable(cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "store", "The registry cannot reach its store now; repeat the request.")
	return fmt.Errorf("%w: %w", f, cause)
}

// Close disconnects.
func (s *Store) Close() error {
	s.stop()
	s.running.Wait()
	d := s.opened.Load()
	if d == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	return errs.In(d.client.Disconnect(ctx), "disconnect from MongoDB")
}

func withID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }

// document is a file.File as it is stored. It has the same fields in the same order.
type document struct {
	ID       string     `bson:"_id"`
	Broker   string     `bson:"broker"`
	KeyID    string     `bson:"key"`
	MD5      string     `bson:"md5"`
	SHA256   string     `bson:"sha256"`
	Size     int64      `bson:"size"`
	Declared string     `bson:"declared"`
	Detected string     `bson:"detected"`
	Title    string     `bson:"title"`
	Blob     string     `bson:"blob"`
	State    file.State `bson:"state"`
	Touched  time.Time  `bson:"touched"`
	Seen     int64      `bson:"seen,omitempty"`
	Named    bool       `bson:"named"`
	Swept    int64      `bson:"swept"`
	Revision int64      `bson:"revision"`

	Picture file.Picture `bson:"picture,omitempty"`
	Small   string       `bson:"small,omitempty"`
	Large   string       `bson:"large,omitempty"`

	Ended int64     `bson:"ended,omitempty"`
	Again time.Time `bson:"again,omitempty"`

	RemovedBy string `bson:"removed_by,omitempty"`
	Reason    string `bson:"reason,omitempty"`
}

func (d document) file() file.File {
	d.Touched, d.Again = d.Touched.UTC(), d.Again.UTC()
	return file.File(d)
}

func (s *Store) Get(ctx context.Context, id string) (found file.File, err error) {
	err = s.do(func(d *database) error {
		var doc document
		err := d.files.FindOne(ctx, withID(id)).Decode(&doc)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return file.ErrNotFound
		}
		if err == nil {
			found = doc.file()
		}
		return err
	})
	return found, err
}

// after reads the documents that match a filter and whose ids are greater than the argument `id`, in their order.
func after(ctx context.Context, c *mongo.Collection, filter bson.D, id string, limit int, into any) error {
	filter = append(filter, bson.E{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}})
	cursor, err := c.Find(ctx, filter,
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)).SetBatchSize(int32(limit)+1))
	if err != nil {
		return err
	}
	return cursor.All(ctx, into)
}

func (s *Store) Page(ctx context.Context, from string, limit int) ([]file.File, error) {
	return s.page(ctx, bson.D{}, from, limit)
}

func (s *Store) Own(ctx context.Context, broker, from string, limit int) ([]file.File, error) {
	return s.page(ctx, bson.D{{Key: "broker", Value: broker}}, from, limit)
}

func (s *Store) page(ctx context.Context, filter bson.D, from string, limit int) (files []file.File, err error) {
	var documents []document
	err = s.do(func(d *database) error { return after(ctx, d.files, filter, from, limit, &documents) })
	for _, d := range documents {
		files = append(files, d.file())
	}
	return files, err
}

func (s *Store) IsRemoved(ctx context.Context, sha256 string) (is bool, err error) {
	err = s.do(func(d *database) error {
		n, err := d.files.CountDocuments(ctx, bson.D{
			{Key: "sha256", Value: sha256}, {Key: "state", Value: string(file.Removed)},
		}, options.Count().SetLimit(1))
		is = n > 0
		return err
	})
	return is, err
}

// reading is a file.Reading as it is stored.
type reading struct {
	Position int64     `bson:"position"`
	Complete time.Time `bson:"complete"`
	Hours    int64     `bson:"hours"`
	Began    int64     `bson:"began"`
}

func (s *Store) Reading(ctx context.Context) (found file.Reading, err error) {
	err = s.do(func(d *database) error {
		var r reading
		err := d.state.FindOne(ctx, withID(readingID)).Decode(&r)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		r.Complete = r.Complete.UTC()
		found = file.Reading(r)
		return err
	})
	return found, err
}

func (s *Store) SetReading(ctx context.Context, r file.Reading) error {
	change := bson.D{{Key: "$max", Value: bson.D{{Key: "position", Value: r.Position}}}}
	if !r.Complete.IsZero() {
		change = append(change, bson.E{Key: "$set", Value: bson.D{
			{Key: "complete", Value: r.Complete}, {Key: "began", Value: r.Began},
		}})
	}
	return s.do(func(d *database) error {
		_, err := d.state.UpdateOne(ctx, withID(readingID), change, options.UpdateOne().SetUpsert(true))
		return err
	})
}

func (s *Store) PassHour(ctx context.Context, hours int64) error {
	still := any(hours)
	if hours == 0 { // a reading of an earlier version has no count
		still = bson.D{{Key: "$in", Value: bson.A{nil, 0}}}
	}
	return s.do(func(d *database) error {
		_, err := d.state.UpdateOne(ctx, bson.D{{Key: "_id", Value: readingID}, {Key: "hours", Value: still}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "hours", Value: int64(1)}}}}, options.UpdateOne().SetUpsert(hours == 0))
		if mongo.IsDuplicateKeyError(err) { // another process has counted the first hour
			return nil
		}
		return err
	})
}

func awaitID(n file.Naming) string { return n.File + "/" + n.Asset }

func (s *Store) Await(ctx context.Context, n file.Naming) error {
	return s.do(func(d *database) error {
		_, err := d.await.InsertOne(ctx, bson.D{{Key: "_id", Value: awaitID(n)}})
		if mongo.IsDuplicateKeyError(err) {
			return nil
		}
		return err
	})
}

func (s *Store) Settle(ctx context.Context, n file.Naming) error {
	return s.do(func(d *database) error {
		_, err := d.await.DeleteOne(ctx, bson.D{{Key: "_id", Value: awaitID(n)}})
		return err
	})
}

func (s *Store) Awaiting(ctx context.Context, from file.Naming, limit int) (found []file.Naming, err error) {
	var documents []struct {
		ID string `bson:"_id"`
	}
	err = s.do(func(d *database) error { return after(ctx, d.await, bson.D{}, awaitID(from), limit, &documents) })
	for _, d := range documents {
		id, asset, _ := strings.Cut(d.ID, "/")
		found = append(found, file.Naming{File: id, Asset: asset})
	}
	return found, err
}

var (
	_ file.Files    = (*Store)(nil)
	_ file.Readings = (*Store)(nil)
	_ file.Awaited  = (*Store)(nil)
)
