package boltstore

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// TestAChangeIsAnnouncedBeforeItIsWritten reads the asset when the store calls Options.Changing, and when it
// calls the function that Changing has returned. The first read must find the old position, and the second the
// new one.
func TestAChangeIsAnnouncedBeforeItIsWritten(t *testing.T) {
	var s *Store
	var told []string
	var before, after []int64 // positions of the asset in the first read, and in the second read
	ended := make(chan struct{}, 3)
	position := func(id string) int64 {
		now, err := s.Get(t.Context(), id, registry.AnySize)
		expect.Nil(t, err, "get %s", id)
		return now.Position
	}
	s, err := Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: time.Now, Changing: func(ids []string) func() {
		told, before = append(told, ids...), append(before, position(ids[0]))
		return func() {
			after = append(after, position(ids[0]))
			ended <- struct{}{}
		}
	}})
	expect.OK(t, err)
	defer s.Close()
	r := registry.Record{ID: storetest.NewID(), Listed: true, Sealed: "sealed", Body: []byte("{}")}
	if r.Position, err = s.Create(t.Context(), r); err != nil { // a new asset is not announced: nobody has read it yet
		t.Fatal(err)
	}
	r.Revision = 1
	newer := expect.Get(s.Replace(t.Context(), r))(t)
	<-ended
	if _, err := s.Replace(t.Context(), r); err == nil { // the store has a newer revision by now
		t.Error("replace a revision that is gone: got no error, want one")
	}
	<-ended // done is also called for a batch that changes nothing
	if want := []string{r.ID, r.ID}; !slices.Equal(told, want) {
		t.Errorf("got announcements of %v, want %v", told, want)
	}
	if want := []int64{r.Position, newer}; !slices.Equal(before, want) {
		t.Errorf("got the asset at %v when its changes are announced, want %v", before, want)
	}
	if want := []int64{newer, newer}; !slices.Equal(after, want) {
		t.Errorf("got the asset at %v when its changes are done, want %v", after, want)
	}
}
