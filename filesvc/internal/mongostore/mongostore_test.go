package mongostore

import (
	"context"
	"errors"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/fault"
	"asset-registry/shared/mongotest"
)

// rigTimeout is long enough for the slow MongoDB server of the tests.
const rigTimeout = 20 * time.Second

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	open := func(t *testing.T) storetest.Metadata {
		t.Helper()
		s, err := Open(t.Context(), server.URI(t, "files"), rigTimeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
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
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if <-ready == nil {
		t.Fatal("got a store that is ready without MongoDB, want the reason why it is not")
	}
	refuse := func(when string) {
		t.Helper()
		for name, operation := range operations {
			if err := operation(t.Context(), s); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s: %s: got %v, want a fault of kind Unavailable", when, name, err)
			}
		}
	}
	refuse("before MongoDB is there")
	server.Restart(t)
	for <-ready != nil {
	}
	for _, name := range []string{"ready", "page"} {
		if err := operations[name](t.Context(), s); err != nil {
			t.Errorf("with MongoDB: %s: got %v, want no error", name, err)
		}
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
		if err := s.Ready(t.Context()); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: got %v, want a fault of kind Unavailable", uri, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: got %v, want no error", uri, err)
		}
	}
}
