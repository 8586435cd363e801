package mongostore

import (
	"context"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

func TestRange(t *testing.T) {
	server := mongotest.Start(t)
	storetest.RunRange(t, func(t *testing.T, name string, now func() time.Time) storetest.RangeStore {
		t.Helper()
		return open(t, server, name, now)
	})
}

// TestARangeHasNoVoids reads a range that contains an id which a fence has made unusable. The page must be
// empty.
func TestARangeHasNoVoids(t *testing.T) {
	s := open(t, mongotest.Start(t), "void", time.Now)
	id := storetest.NewID()
	expect.OK(t, s.db.do(t.Context(), func(ctx context.Context) error {
		_, err := s.db.assets.InsertOne(ctx, document{ID: id, Revision: voidRevision})
		return err
	}))
	page, err := s.Range(t.Context(), registry.RangeQuery{Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(page.Entries) != 0 || page.Next != "" {
		t.Errorf("got %v, %v; want an empty last page", page, err)
	}
}
