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
	"asset-registry/shared/authapi"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestMoveKeepsTextsThatAreTooLong moves an asset whose texts are longer than the rules allow. The rules check requests
// only, so a stored asset may have such texts. Move must keep the texts.
func TestMoveKeepsTextsThatAreTooLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "assets.db")
	from, err := boltstore.Open(file, boltstore.Options{Now: time.Now})
	expect.OK(t, err)
	body := fmt.Appendf(nil, `{"id":"%s","status":"pending","title":"%s","assetCustodian":{"identifier":{"id":"%s"}}}`,
		strings.Repeat("a", 32), strings.Repeat("ї", 300_000), strings.Repeat("9", 900_000))
	stored := registry.Record{ID: strings.Repeat("a", 32), Revision: 1, Listed: true, Sealed: "sealed", Body: body,
		Change: []byte(`{"v":1}`), Whole: body}
	stored.Position, err = from.Create(t.Context(), stored)
	expect.OK(t, err)
	expect.OK(t, from.Close())
	uri := mongotest.Start(t).URI(t, "moved")
	if n, err := Move(t.Context(), file, uri, func(int, int) {}); n != 1 || err != nil {
		t.Fatalf("got %d assets moved, %v, want 1, nil", n, err)
	}
	to := expect.Get(mongostore.Open(t.Context(), uri, mongostore.Options{Now: time.Now,
		Log: slog.New(slog.DiscardHandler)}))(t)
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
	from := expect.Get(boltstore.Open(file, boltstore.Options{Now: time.Now}))(t)
	ids := map[string]string{
		"lot-1": storetest.Refer(t, from, "lot-1", false), "lot-2": storetest.Refer(t, from, "lot-2", true),
	}
	expect.OK(t, from.Close())
	uri := mongotest.Start(t).URI(t, "referred")
	expect.Get(Move(t.Context(), file, uri, func(int, int) {}))(t)
	to := expect.Get(mongostore.Open(t.Context(), uri, mongostore.Options{Now: time.Now,
		Log: slog.New(slog.DiscardHandler)}))(t)
	defer to.Close()
	for reference, want := range ids {
		got, err := to.ClaimReference(t.Context(), registry.ReferenceKey("one", reference), "", storetest.NewID())
		expect.ErrorIf(t, err != nil || got != want, "%s: got %s, %v; want %s", reference, got, err, want)
	}
	expect.ErrOf(t, registry.ErrRemoved, "the removed draft")(to.Get(t.Context(), ids["lot-2"], registry.AnySize))
}

// TestCopyEndings copies endings to a store that has a later and an earlier one. The later of two must stay.
func TestCopyEndings(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *boltstore.Store {
		return expect.Get(boltstore.Open(filepath.Join(dir, name), boltstore.Options{Now: time.Now}))(t)
	}
	from, to := open("from"), open("to")
	var all []authapi.Ending
	for i := range 2*authapi.MaxEndings + 1 {
		all = append(all, authapi.Ending{ID: fmt.Sprintf("key %03d", i), Seq: 5})
	}
	expect.OK(t, errors.Join(from.KeepEndings(t.Context(), all), from.Close(), to.KeepEndings(t.Context(), []authapi.Ending{
		{ID: "key 000", Seq: 9}, {ID: "key 001", Seq: 4}}), to.Close(),
		CopyEndings(t.Context(), filepath.Join(dir, "from"), filepath.Join(dir, "to"))))
	to = open("to")
	defer to.Close()
	got, err := to.Endings(t.Context(), "", 1000)
	if err != nil || len(got) != len(all) || got[0].Seq != 9 || got[1].Seq != 5 {
		t.Errorf("got %d endings that begin with %+v, %v; want %d, the first as it was", len(got), got[:2], err, len(all))
	}
}
