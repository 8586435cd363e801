// Package mongostore keeps the metadata of files in the MongoDB database of the assets (file.Files,
// file.Readings). During a failover, a read may miss the newest change. Each change requires the revision that
// was read, so a change based on an old read fails.
package mongostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"asset-registry/filesvc/internal/file"
)

const (
	defaultDatabase = "assetregistry" // the same database as the assets
	idleConnection  = 5 * time.Minute
	readingID       = "reading"
)

// Store keeps files in three collections: files, files.state and files.await.
type Store struct {
	client              *mongo.Client
	files, state, await *mongo.Collection
	timeout             time.Duration
}

// Open connects to the database at the address `uri`, and creates indexes that are missing. Each operation takes at
// most the time `timeout`.
func Open(ctx context.Context, uri string, timeout time.Duration) (*Store, error) {
	parsed, err := connstring.ParseAndValidate(uri)
	if err != nil {
		return nil, errors.New("the address of the MongoDB store is malformed") // err may quote a password
	}
	name := parsed.Database
	if name == "" {
		name = defaultDatabase
	}
	journal := true
	client, err := mongo.Connect(options.Client().ApplyURI(uri).
		SetAppName("filesvc").
		SetTimeout(timeout).
		SetServerSelectionTimeout(timeout).
		SetConnectTimeout(timeout).
		SetMaxConnIdleTime(idleConnection).
		SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journal}).
		SetReadConcern(readconcern.Majority()).
		SetReadPreference(readpref.Primary()))
	if err != nil {
		return nil, fmt.Errorf("set up MongoDB client: %w", err)
	}
	db := client.Database(name)
	s := &Store{client, db.Collection("files"), db.Collection("files.state"), db.Collection("files.await"), timeout}
	_, err = s.files.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{Key: "broker", Value: 1}, {Key: "state", Value: 1}, {Key: "size", Value: 1}}},
		{Keys: bson.D{{Key: "sha256", Value: 1}, {Key: "state", Value: 1}}},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create indexes: %w", err), s.Close())
	}
	return s, nil
}

// Close disconnects.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if err := s.client.Disconnect(ctx); err != nil {
		return fmt.Errorf("disconnect from MongoDB: %w", err)
	}
	return nil
}

// document is a file.File as it is stored.
type document struct {
	ID       string    `bson:"_id"`
	Broker   string    `bson:"broker"`
	KeyID    string    `bson:"key"`
	MD5      string    `bson:"md5"`
	SHA256   string    `bson:"sha256"`
	Size     int64     `bson:"size"`
	Declared string    `bson:"declared"`
	Detected string    `bson:"detected"`
	Title    string    `bson:"title"`
	Blob     string    `bson:"blob"`
	State    string    `bson:"state"`
	Touched  time.Time `bson:"touched"`
	Seen     int64     `bson:"seen,omitempty"`
	Named    bool      `bson:"named"`
	Swept    int64     `bson:"swept"`
	Revision int64     `bson:"revision"`

	Picture string `bson:"picture,omitempty"`
	Small   string `bson:"small,omitempty"`
	Large   string `bson:"large,omitempty"`

	RemovedBy string `bson:"removed_by,omitempty"`
	Reason    string `bson:"reason,omitempty"`
}

func documentOf(f file.File) document {
	return document{
		ID: f.ID, Broker: f.Broker, KeyID: f.KeyID, MD5: f.MD5, SHA256: f.SHA256, Size: f.Size,
		Declared: f.Declared, Detected: f.Detected, Title: f.Title, Blob: f.Blob, State: string(f.State),
		Touched: f.Touched, Seen: f.Seen, Named: f.Named, Swept: f.Swept, Revision: f.Revision,
		Picture: string(f.Picture), Small: f.Small, Large: f.Large, RemovedBy: f.RemovedBy, Reason: f.Reason,
	}
}

func (d document) file() file.File {
	return file.File{
		ID: d.ID, Broker: d.Broker, KeyID: d.KeyID, MD5: d.MD5, SHA256: d.SHA256, Size: d.Size,
		Declared: d.Declared, Detected: d.Detected, Title: d.Title, Blob: d.Blob, State: file.State(d.State),
		Touched: d.Touched.UTC(), Seen: d.Seen, Named: d.Named, Swept: d.Swept, Revision: d.Revision,
		Picture: file.Picture(d.Picture), Small: d.Small, Large: d.Large, RemovedBy: d.RemovedBy, Reason: d.Reason,
	}
}

// Create implements file.Files.
func (s *Store) Create(ctx context.Context, f file.File) error {
	_, err := s.files.InsertOne(ctx, documentOf(f))
	if mongo.IsDuplicateKeyError(err) {
		return file.ErrExists
	}
	return err
}

// Get implements file.Files.
func (s *Store) Get(ctx context.Context, id string) (file.File, error) {
	var d document
	err := s.files.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&d)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return file.File{}, file.ErrNotFound
	}
	return d.file(), err
}

// The function `of` returns a filter that matches the file with this id only if the file has this revision.
func of(id string, revision int64) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "revision", Value: revision}}
}

// Replace implements file.Files.
func (s *Store) Replace(ctx context.Context, f file.File) error {
	done, err := s.files.ReplaceOne(ctx, of(f.ID, f.Revision-1), documentOf(f))
	if err == nil && done.MatchedCount == 0 {
		return file.ErrStale
	}
	return err
}

// Delete implements file.Files.
func (s *Store) Delete(ctx context.Context, f file.File) error {
	done, err := s.files.DeleteOne(ctx, of(f.ID, f.Revision))
	if err == nil && done.DeletedCount == 0 {
		return file.ErrStale
	}
	return err
}

// Page implements file.Files.
func (s *Store) Page(ctx context.Context, after string, limit int) ([]file.File, error) {
	cursor, err := s.files.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: after}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)))
	if err != nil {
		return nil, err
	}
	var documents []document
	if err := cursor.All(ctx, &documents); err != nil {
		return nil, err
	}
	var files []file.File
	for _, d := range documents {
		files = append(files, d.file())
	}
	return files, nil
}

// Usage implements file.Files.
func (s *Store) Usage(ctx context.Context, broker string) (u file.Usage, err error) {
	mine := bson.D{{Key: "broker", Value: broker}}
	waiting := append(mine, bson.E{Key: "state", Value: string(file.Registered)})
	if u.Waiting, err = s.files.CountDocuments(ctx, waiting); err != nil {
		return u, err
	}
	cursor, err := s.files.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: append(mine, bson.E{
			Key: "state", Value: bson.D{{Key: "$ne", Value: string(file.Removed)}},
		})}},
		{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: nil}, {Key: "bytes", Value: bson.D{{Key: "$sum", Value: "$size"}}},
		}}},
	})
	if err != nil {
		return u, err
	}
	var sums []struct {
		Bytes int64 `bson:"bytes"`
	}
	if err := cursor.All(ctx, &sums); err != nil || len(sums) == 0 {
		return u, err
	}
	u.Bytes = sums[0].Bytes
	return u, nil
}

// IsRemoved implements file.Files.
func (s *Store) IsRemoved(ctx context.Context, sha256 string) (bool, error) {
	n, err := s.files.CountDocuments(ctx, bson.D{
		{Key: "sha256", Value: sha256}, {Key: "state", Value: string(file.Removed)},
	}, options.Count().SetLimit(1))
	return n > 0, err
}

// reading is a file.Reading as it is stored.
type reading struct {
	Position int64     `bson:"position"`
	Complete time.Time `bson:"complete"`
	Hours    int64     `bson:"hours"`
	Began    int64     `bson:"began"`
}

// Reading implements file.Readings.
func (s *Store) Reading(ctx context.Context) (file.Reading, error) {
	var r reading
	err := s.state.FindOne(ctx, bson.D{{Key: "_id", Value: readingID}}).Decode(&r)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return file.Reading{}, nil
	}
	found := file.Reading{Position: r.Position, Hours: r.Hours, Began: r.Began}
	if !r.Complete.IsZero() {
		found.Complete = r.Complete.UTC()
	}
	return found, err
}

// SetReading implements file.Readings.
func (s *Store) SetReading(ctx context.Context, r file.Reading) error {
	change := bson.D{{Key: "$max", Value: bson.D{{Key: "position", Value: r.Position}}}}
	if !r.Complete.IsZero() {
		change = append(change, bson.E{Key: "$set", Value: bson.D{
			{Key: "complete", Value: r.Complete}, {Key: "began", Value: r.Began},
		}})
	}
	_, err := s.state.UpdateOne(ctx, bson.D{{Key: "_id", Value: readingID}}, change, options.UpdateOne().SetUpsert(true))
	return err
}

// PassHour implements file.Readings.
func (s *Store) PassHour(ctx context.Context, hours int64) error {
	still := any(hours)
	if hours == 0 { // a reading of an earlier version has no count
		still = bson.D{{Key: "$in", Value: bson.A{nil, 0}}}
	}
	_, err := s.state.UpdateOne(ctx, bson.D{{Key: "_id", Value: readingID}, {Key: "hours", Value: still}},
		bson.D{{Key: "$inc", Value: bson.D{{Key: "hours", Value: int64(1)}}}}, options.UpdateOne().SetUpsert(hours == 0))
	if mongo.IsDuplicateKeyError(err) { // another process has counted the first hour
		return nil
	}
	return err
}

func awaitID(n file.Naming) string { return n.File + "/" + n.Asset }

// Await implements file.Awaited.
func (s *Store) Await(ctx context.Context, n file.Naming) error {
	_, err := s.await.InsertOne(ctx, bson.D{{Key: "_id", Value: awaitID(n)}})
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

// Settle implements file.Awaited.
func (s *Store) Settle(ctx context.Context, n file.Naming) error {
	_, err := s.await.DeleteOne(ctx, bson.D{{Key: "_id", Value: awaitID(n)}})
	return err
}

// Awaiting implements file.Awaited.
func (s *Store) Awaiting(ctx context.Context, after file.Naming, limit int) ([]file.Naming, error) {
	cursor, err := s.await.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: awaitID(after)}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)))
	if err != nil {
		return nil, err
	}
	var documents []struct {
		ID string `bson:"_id"`
	}
	if err := cursor.All(ctx, &documents); err != nil {
		return nil, err
	}
	var found []file.Naming
	for _, d := range documents {
		id, asset, _ := strings.Cut(d.ID, "/")
		found = append(found, file.Naming{File: id, Asset: asset})
	}
	return found, nil
}

var (
	_ file.Files    = (*Store)(nil)
	_ file.Readings = (*Store)(nil)
	_ file.Awaited  = (*Store)(nil)
)
