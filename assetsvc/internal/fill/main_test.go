package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

// TestFillEndsWhenTheStoreFails fills a store that refuses every write, like a store on a full disk. The command
// must end with the error of the store.
func TestFillEndsWhenTheStoreFails(t *testing.T) {
	store := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{Now: time.Now}))(t)
	expect.OK(t, store.Close())
	example := record.Object{
		{Name: "id", Value: strings.Repeat("a", 32)}, {Name: "status", Value: "pending"}, {Name: "title", Value: "x"},
	}
	expect.Says(t, fill(t.Context(), store, example, 10_000, 1), "write asset", "")
}
