package mongostore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/fault"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// rigTimeout is long enough for the slow MongoDB server of the tests.
const rigTimeout = 20 * time.Second

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	open := func(t *testing.T) storetest.Metadata {
		t.Helper()
		s := expect.Get(Open(t.Context(), server.URI(t, "files"), rigTimeout))(t)
		s.settled = 0
		t.Cleanup(func() { expect.Try(t, s.Close()) })
		return s
	}
	// Several tests use the first store, so it is closed only at the end of the whole test.
	first := open(t)
	storetest.RunMetadata(t, func(*testing.T) storetest.Metadata { return first }, open)
}

// operations are all operations of a store.
var operations = map[string]func(context.Context, *Store) error{
	"create":  func(ctx context.Context, s *Store) error { return s.Create(ctx, file.File{ID: "new"}) },
	"get":     func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "there"); return err },
	"replace": func(ctx context.Context, s *Store) error { return s.Replace(ctx, file.File{ID: "there"}) },
	"delete":  func(ctx context.Context, s *Store) error { return s.Delete(ctx, file.File{ID: "there"}) },
	"page":    func(ctx context.Context, s *Store) error { _, err := s.Page(ctx, "", 1); return err },
	"own":     func(ctx context.Context, s *Store) error { _, err := s.Own(ctx, "b", "", 1); return err },
	"recount": func(ctx context.Context, s *Store) error { return s.Recount(ctx) },
	"usage":   func(ctx context.Context, s *Store) error { _, err := s.Usage(ctx, "b"); return err },
	"removed": func(ctx context.Context, s *Store) error { _, err := s.IsRemoved(ctx, "s"); return err },
	"reading": func(ctx context.Context, s *Store) error { _, err := s.Reading(ctx); return err },
	"note":    func(ctx context.Context, s *Store) error { return s.SetReading(ctx, file.Reading{Position: 1}) },
	"await":   func(ctx context.Context, s *Store) error { return s.Await(ctx, file.Naming{File: "f"}) },
	"settle":  func(ctx context.Context, s *Store) error { return s.Settle(ctx, file.Naming{File: "f"}) },
	"waiting": func(ctx context.Context, s *Store) error { _, err := s.Awaiting(ctx, file.Naming{}, 1); return err },
	"ready":   func(ctx context.Context, s *Store) error { return s.Ready(ctx) },
}

// TestWithoutMongoDBTheStoreIsUnavailable opens a store while MongoDB is away. Each operation must be refused as one
// that may work later, until MongoDB is there, and again after it has gone.
// Promises: retry-after
func TestWithoutMongoDBTheStoreIsUnavailable(t *testing.T) {
	server := mongotest.Start(t)
	if server.Real {
		t.Skip("the server cannot be killed")
	}
	server.Kill(t)
	ready := make(chan error, 100)
	s, err := OpenLater(t.Context(), server.URI(t, "files"), time.Second, func(err error) { ready <- err })
	if err != nil {
		t.Fatalf("without MongoDB: got %v, want a store", err)
	}
	t.Cleanup(func() { expect.Try(t, s.Close()) })
	if <-ready == nil {
		t.Fatal("got a store that is ready without MongoDB, want the reason why it is not")
	}
	refuse := func(when string) {
		t.Helper()
		for name, operation := range operations {
			expect.Fault(t, operation(t.Context(), s), fault.Unavailable, "%s: %s", when, name)
		}
	}
	refuse("before MongoDB is there")
	server.Restart(t)
	for <-ready != nil {
	}
	for _, name := range []string{"ready", "page"} {
		expect.Err(t, operations[name](t.Context(), s), nil, "with MongoDB: %s", name)
	}
	server.Kill(t)
	refuse("after MongoDB has gone")
	server.Restart(t)
	for end := time.Now().Add(rigTimeout); s.Ready(t.Context()) != nil; {
		if time.Now().After(end) {
			t.Fatal("with MongoDB again: got no store that is ready, want one")
		}
	}
}

// TestAWrongAddressEndsTheStart opens stores whose addresses no server can have, and one whose name DNS does not know.
func TestAWrongAddressEndsTheStart(t *testing.T) {
	for uri, want := range map[string]error{
		"mongodb://": errAddress, "mongodb://a:b:c": errAddress, "mongodb+srv://none.invalid": nil,
	} {
		s, err := OpenLater(t.Context(), uri, time.Second, func(error) {})
		if !errors.Is(err, want) || (s == nil) != (want != nil) {
			t.Errorf("%s: got %v, want %v", uri, err, want)
		}
		if s == nil {
			continue
		}
		expect.Fault(t, s.Ready(t.Context()), fault.Unavailable, "%s", uri)
		expect.Err(t, s.Close(), nil, "%s: close", uri)
	}
}

// TestTheCountErrsToTheSafeSide leaves out the last step of changes, as a kill does, and takes the counts away, as an
// older store has none. A count is never too small, and Recount corrects it unless a change came between.
func TestTheCountErrsToTheSafeSide(t *testing.T) {
	server, ctx := mongotest.Start(t), t.Context()
	s, err := Open(ctx, server.URI(t, "counts"), rigTimeout)
	expect.OK(t, err)
	t.Cleanup(func() { expect.Try(t, s.Close()) })
	s.settled = 0
	d := s.opened.Load()
	has := func(when string, want file.Usage) {
		t.Helper()
		expect.Value(t, want, "%s", when)(s.Usage(ctx, "b"))
	}
	do := func(err error) {
		t.Helper()
		expect.OK(t, err)
	}
	f := file.File{ID: "1", Broker: "b", State: file.Registered, Revision: 1}
	do(s.Create(ctx, f))
	do(s.Recount(ctx))
	has("after a registration", file.Usage{Waiting: 1})
	f.State, f.Size, f.Revision = file.Stored, 7, 2
	do(d.add(ctx, 1, f)) // killed before the file is replaced
	has("after a kill", file.Usage{Waiting: 1, Bytes: 7})
	do(s.Replace(ctx, f))
	has("after the upload", file.Usage{Bytes: 14})
	do(s.Recount(ctx))
	has("after a count", file.Usage{Bytes: 7})
	f.State, f.Revision = file.Removed, 3
	do(s.Replace(ctx, f))
	f.Revision = 4
	do(s.Replace(ctx, f))
	has("after two removals", file.Usage{})

	_, err = d.usage.DeleteMany(ctx, bson.D{})
	do(err)
	g := file.File{ID: "2", Broker: "b", State: file.Stored, Size: 5, Revision: 1}
	_, err = d.files.InsertOne(ctx, document(g))
	do(err)
	has("without a count", file.Usage{Bytes: 5})
	do(s.Create(ctx, file.File{ID: "3", Broker: "b", State: file.Registered, Revision: 1}))
	has("with a count of changes only", file.Usage{Waiting: 1, Bytes: 5})
	do(d.correct(ctx, count{Broker: "b", Changes: 0}, "b", file.Usage{}))
	do(d.correct(ctx, count{}, "b", file.Usage{}))
	has("after a correction that a change has overtaken", file.Usage{Waiting: 1, Bytes: 5})
	do(s.Recount(ctx))
	g.Revision = 1
	do(s.Delete(ctx, g))
	has("after a deletion", file.Usage{Waiting: 1})
}

var filesOfOthers = flag.Int("mongo.files", 10_000, "number of files of others, beside which keys are counted on a real server")

// TestOperationsReadWhatTheyReturn counts the keys and documents that MongoDB reads, beside many files of others.
func TestOperationsReadWhatTheyReturn(t *testing.T) {
	server, ctx := mongotest.Start(t), t.Context()
	if !server.Real {
		t.Skip("the stand-in counts no keys")
	}
	s := expect.Get(Open(ctx, server.URI(t, "costs"), rigTimeout))(t)
	t.Cleanup(func() { expect.Try(t, s.Close()) })
	s.settled = 0
	d := s.opened.Load()
	var files []any
	for i := range *filesOfOthers + 100 {
		f := file.File{ID: fmt.Sprintf("%032x", i), Broker: "another", State: file.Stored, Size: 1, Revision: 1}
		if i%(*filesOfOthers/100+1) == 7 {
			f.Broker = "one"
		}
		f.SHA256 = f.ID + f.ID
		files = append(files, document(f))
	}
	for some := range slices.Chunk(files, 1000) { // rigTimeout bounds each
		expect.Get(d.files.InsertMany(ctx, some))(t)
	}
	expect.OK(t, s.Recount(ctx))
	read := func() (n int64) {
		var status struct {
			Metrics struct {
				QueryExecutor struct {
					Scanned        int64 `bson:"scanned"`
					ScannedObjects int64 `bson:"scannedObjects"`
				} `bson:"queryExecutor"`
			} `bson:"metrics"`
		}
		expect.OK(t, d.client.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus",
			Value: 1}}).Decode(&status))
		return status.Metrics.QueryExecutor.Scanned + status.Metrics.QueryExecutor.ScannedObjects
	}
	one := files[7].(document).file()
	for name, c := range map[string]struct {
		do   func() error
		most int64 // keys and documents
	}{
		"a page":         {func() error { _, err := s.Page(ctx, "", 100); return err }, 202},
		"a broker's own": {func() error { _, err := s.Own(ctx, "one", one.ID, 50); return err }, 102},
		"nobody's":       {func() error { _, err := s.Own(ctx, "nobody", "", 100); return err }, 2},
		"usage":          {func() error { _, err := s.Usage(ctx, "another"); return err }, 2},
		"a removed sum":  {func() error { _, err := s.IsRemoved(ctx, one.SHA256); return err }, 2},
		"a file":         {func() error { _, err := s.Get(ctx, one.ID); return err }, 2},
	} {
		const others = 20 // what the set reads for itself meanwhile
		before := read()
		expect.OK(t, c.do())
		if got := read() - before; got > c.most+others {
			t.Errorf("%s: got %d keys and documents read, want at most %d", name, got, c.most)
		}
	}
}
