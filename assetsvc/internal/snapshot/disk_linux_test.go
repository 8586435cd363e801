package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/disktest"
)

// TestAFullDiskKeepsTheOldSnapshot makes a snapshot on a full disk, which must fail and keep the old snapshot.
// Then it makes one on the same disk with free space.
func TestAFullDiskKeepsTheOldSnapshot(t *testing.T) {
	s, dir := openStore(t), disktest.New(t, 4)
	create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
	k := keeper(t, s, dir)
	first := mustMake(t, k)
	create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
	free := disktest.Fill(t, dir)
	if _, err := k.Make(t.Context()); err == nil {
		t.Error("on a full disk: got no error, want one")
	}
	newest, err := k.Newest()
	if diff := cmp.Diff(first, newest); err != nil || diff != "" {
		t.Errorf("got %v; the newest snapshot differs (-want +got):\n%s", err, diff)
	}
	lines(t, k, newest)
	free()
	second := mustMake(t, k)
	if diff := cmp.Diff(wantFiles(first, second), names(t, dir)); diff != "" {
		t.Errorf("the files differ (-want +got):\n%s", diff)
	}
}
