package mongostore

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// rigTimeout suits the rig, which takes its time.
const rigTimeout = 20 * time.Second

func opener(server *mongotest.Server) storetest.Opener {
	return func(t *testing.T, name string, now func() time.Time) registry.Store {
		t.Helper()
		return open(t, server, name, now)
	}
}

var notInNames = regexp.MustCompile(`[^a-z]+`)

// open opens a store in a database of the test's own.
func open(t *testing.T, server *mongotest.Server, name string, now func() time.Time) *Store {
	t.Helper()
	database := "t" + notInNames.ReplaceAllString(t.Name(), "")
	database = database[max(0, len(database)-40):] + name
	s, err := Open(t.Context(), server.URI(t, database), Options{Now: now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Timeout: rigTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	storetest.Run(t, opener(server))
}

func TestADatabaseWithoutSizesIsUpgraded(t *testing.T) {
	server := mongotest.Start(t)
	s := open(t, server, "a", time.Now)
	var there []registry.Record
	for range 2*sizeBatch + 1 {
		r := registry.Record{ID: storetest.NewID(), Listed: true, Body: []byte(`{"title":"old"}`)}
		position, err := s.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.Position = position
		there = append(there, r)
	}
	err := s.db.do(t.Context(), func(ctx context.Context) error { // as the version before left it
		if _, err := s.db.clocks.UpdateOne(ctx, bson.D{{Key: "_id", Value: clockID}}, bson.D{{Key: "$unset", Value: bson.D{{Key: "sized", Value: ""}}}}); err != nil {
			return err
		}
		_, err := s.db.assets.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$unset", Value: bson.D{{Key: "size", Value: ""}}}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), there[0].ID, 100); !errors.Is(err, registry.ErrLarge) {
		t.Errorf("an asset of unknown size: got %v, want ErrLarge", err)
	}
	if page, err := s.Page(t.Context(), registry.Query{Limit: 100, Bodies: registry.MaxAsset}); err != nil || len(page) != 1 {
		t.Errorf("a page of assets of unknown size: got %d entries, %v, want 1", len(page), err)
	}
	s.addSizes(t.Context())
	for _, r := range there {
		if got, err := s.Get(t.Context(), r.ID, len(r.Body)); err != nil || got.Position != r.Position || got.Revision != 1 {
			t.Errorf("after the upgrade: got %+v, %v, want %+v", got, err, r)
		}
	}
	if page, err := s.Page(t.Context(), registry.Query{Limit: 100, Bodies: registry.MaxAsset}); err != nil || len(page) != len(there) {
		t.Errorf("a page after the upgrade: got %d entries, %v, want %d", len(page), err, len(there))
	}
}
