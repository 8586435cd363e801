package boltstore

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/testing/expect"
)

// inState returns the record of an asset in the given state.
func inState(id string, state asset.Status) registry.Record {
	return registry.Record{ID: id, State: state, Sealed: "sealed", Body: fmt.Appendf(nil, `{"status":%q}`, state)}
}

func checkCensus(t *testing.T, meter metrictest.Meter, drafts, pending float64) {
	t.Helper()
	values := meter.Read(t)
	for _, c := range []struct {
		state string
		want  float64
	}{{"draft", drafts}, {"pending", pending}, {"complete", 0}} {
		if got, known := values["registry.assets.stored{"+c.state+"}"]; !known || got != c.want {
			t.Errorf("assets in state %s: got %v (reported: %v), want %v", c.state, got, known, c.want)
		}
	}
}

func TestTheCensusFollowsTheAssets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	meter := metrictest.New()
	s := expect.Get(Open(path, Options{Now: time.Now, Meter: meter}))(t)
	checkCensus(t, meter, 0, 0)
	ids := []string{storetest.NewID(), storetest.NewID(), storetest.NewID()}
	for _, id := range ids {
		expect.Get(s.Create(t.Context(), inState(id, asset.Draft)))(t)
	}
	published := inState(ids[0], asset.Pending)
	published.Revision = 1
	expect.Get(s.Replace(t.Context(), published))(t)
	expect.ErrOf(t, registry.ErrStale, "")(s.Replace(t.Context(), published))
	checkCensus(t, meter, 2, 1)
	values := meter.Read(t)
	size := values["registry.store.size{assets}"]
	disk, free := values["registry.store.disk.size{assets}"], values["registry.store.disk.free{assets}"]
	if size <= 0 || disk <= free {
		t.Errorf("got a file of %v bytes, a disk of %v with %v free; want size > 0 and disk > free", size, disk, free)
	}
	expect.OK(t, s.Close())
	if values := meter.Read(t); len(values) != 0 {
		t.Errorf("after close: got metrics %v, want none", values)
	}
}
