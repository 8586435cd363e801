package assetsvc

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/mongostore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// TestMoveKeepsTextsThatAreTooLong moves an asset whose texts are longer than the rules allow. The rules check requests
// only, so a stored asset may have such texts. Move must keep the texts.
func TestMoveKeepsTextsThatAreTooLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "assets.db")
	from, err := boltstore.Open(file, boltstore.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Appendf(nil, `{"id":"%s","status":"pending","title":"%s","assetCustodian":{"identifier":{"id":"%s"}}}`,
		strings.Repeat("a", 32), strings.Repeat("ї", 300_000), strings.Repeat("9", 900_000))
	stored := registry.Record{ID: strings.Repeat("a", 32), Revision: 1, Listed: true, Sealed: "sealed", Body: body,
		Change: []byte(`{"v":1}`), Whole: body}
	if stored.Position, err = from.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	uri := mongotest.Start(t).URI(t, "moved")
	if n, err := Move(t.Context(), file, uri, func(int, int) {}); n != 1 || err != nil {
		t.Fatalf("got %d assets moved, %v, want 1, nil", n, err)
	}
	to, err := mongostore.Open(t.Context(), uri, mongostore.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	got, err := to.Get(t.Context(), stored.ID, len(body))
	if err != nil || !bytes.Equal(got.Body, body) || got.Position != stored.Position {
		t.Errorf("got %d bytes at %d, %v, want the %d bytes of before at %d", len(got.Body), got.Position, err,
			len(body), stored.Position)
	}
}

// TestMoveKeepsReferences moves an asset that was created under a reference, and the reference of a draft that
// was removed. Afterwards each reference still stands for the same asset.
func TestMoveKeepsReferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "assets.db")
	from, err := boltstore.Open(file, boltstore.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{
		"lot-1": storetest.Refer(t, from, "lot-1", false), "lot-2": storetest.Refer(t, from, "lot-2", true),
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	uri := mongotest.Start(t).URI(t, "referred")
	if _, err := Move(t.Context(), file, uri, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	to, err := mongostore.Open(t.Context(), uri, mongostore.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for reference, want := range ids {
		got, err := to.ClaimReference(t.Context(), registry.ReferenceKey("one", reference), "", storetest.NewID())
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", reference, got, err, want)
		}
	}
	if _, err := to.Get(t.Context(), ids["lot-2"], registry.AnySize); !errors.Is(err, registry.ErrRemoved) {
		t.Errorf("the removed draft: got %v, want %v", err, registry.ErrRemoved)
	}
}
