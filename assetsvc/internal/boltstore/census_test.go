package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/metrictest"
)

// kept returns a record of an asset in a state.
func kept(id string, state asset.Status) registry.Record {
	return registry.Record{ID: id, State: state, Sealed: "sealed", Body: fmt.Appendf(nil, `{"status":%q}`, state)}
}

func checkCensus(t *testing.T, meter metrictest.Meter, drafts, pending float64) {
	t.Helper()
	told := meter.Read(t)
	for name, want := range map[string]float64{"draft": drafts, "pending": pending, "complete": 0} {
		if got, known := told["registry.assets.stored{"+name+"}"]; !known || got != want {
			t.Errorf("of state %s there are %v (told: %v), want %v", name, got, known, want)
		}
	}
}

func TestTheCensusFollowsTheAssets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	meter := metrictest.New()
	s, err := Open(path, Options{Now: time.Now, Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	checkCensus(t, meter, 0, 0)
	ids := []string{storetest.NewID(), storetest.NewID(), storetest.NewID()}
	for _, id := range ids {
		if _, err := s.Create(t.Context(), kept(id, asset.Draft)); err != nil {
			t.Fatal(err)
		}
	}
	published := kept(ids[0], asset.Pending)
	published.Revision = 1
	if _, err := s.Replace(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), published); !errors.Is(err, registry.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
	checkCensus(t, meter, 2, 1)
	told := meter.Read(t)
	if told["registry.store.size{assets}"] <= 0 || told["registry.store.disk.size{assets}"] <= told["registry.store.disk.free{assets}"] {
		t.Errorf("of the file and its disk it is told %v", told)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if told := meter.Read(t); len(told) != 0 {
		t.Errorf("a closed store tells %v", told)
	}
}

func TestAFileFromBeforeTheCensusIsCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	s, err := Open(path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	id := storetest.NewID()
	old := kept(id, "") // its body alone tells the state
	old.Body = []byte(`{"id":"x","status":"pending"}`)
	_, err1 := s.Create(t.Context(), old)
	_, err2 := s.Create(t.Context(), kept(storetest.NewID(), asset.Draft))
	dropped := s.file.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(censusBucket) })
	if err := errors.Join(err1, err2, dropped, s.Close()); err != nil {
		t.Fatal(err)
	}
	meter := metrictest.New()
	if s, err = Open(path, Options{Now: time.Now, Meter: meter}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	checkCensus(t, meter, 1, 1)
	back := kept(id, asset.Draft)
	back.Revision = 1
	if _, err := s.Replace(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	checkCensus(t, meter, 2, 0)
}
