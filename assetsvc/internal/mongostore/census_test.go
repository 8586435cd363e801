package mongostore

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/mongotest"
)

func TestOneOfManyTakesTheCensusAndAllTellIt(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	create := func(state asset.Status) string {
		t.Helper()
		r := registry.Record{ID: storetest.NewID(), State: state, Sealed: "sealed", Body: fmt.Appendf(nil, `{"status":%q}`, state)}
		if _, err := s.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	create(asset.Draft)
	create(asset.Draft)
	old := create(asset.Pending)
	void := storetest.NewID()
	if err := (order{s.db}).Fence(t.Context(), []string{void}); err != nil {
		t.Fatal(err)
	}
	// As the version before has left it.
	if _, err := s.db.assets.UpdateByID(t.Context(), old, bson.D{{Key: "$unset", Value: bson.D{{Key: "state", Value: ""}}}}); err != nil {
		t.Fatal(err)
	}

	now := time.Now().Add(time.Hour) // when the store's own is long over
	first, second := newCensus(s.db, func() time.Time { return now }), newCensus(s.db, func() time.Time { return now })
	meter := metrictest.New()
	silence, err := second.measure(meter)
	if err != nil {
		t.Fatal(err)
	}
	if told := meter.Read(t); len(told) != 0 {
		t.Errorf("a census that nobody has taken tells %v", told)
	}
	if err := first.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(asset.Active) // which only the next census has
	if mine, err := second.claim(t.Context()); err != nil || mine {
		t.Errorf("the census is taken twice: %v, %v", mine, err)
	}
	check := func(want map[asset.Status]float64) {
		t.Helper()
		if err := second.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := meter.Read(t)
		for state, want := range want {
			if got, known := told["registry.assets.stored{"+string(state)+"}"]; !known || got != want {
				t.Errorf("of state %s there are %v (told: %v), want %v", state, got, known, want)
			}
		}
		if got := told["registry.store.size{assets}"]; got <= 0 {
			t.Errorf("the size of the assets is %v, want more than 0", got)
		}
	}
	check(map[asset.Status]float64{asset.Draft: 2, asset.Pending: 1, asset.Active: 0, asset.Deleted: 0})
	now = now.Add(time.Hour)
	check(map[asset.Status]float64{asset.Draft: 2, asset.Pending: 1, asset.Active: 1})
	if err := silence(); err != nil {
		t.Error(err)
	}
}

func TestTheDiskIsThatOfMongoDB(t *testing.T) {
	reply, err := bson.Marshal(bson.D{{Key: "storageSize", Value: float64(4096)}, {Key: "indexSize", Value: int32(1024)},
		{Key: "fsUsedSize", Value: float64(60e9)}, {Key: "fsTotalSize", Value: float64(100e9)}, {Key: "ok", Value: 1.0}})
	if err != nil {
		t.Fatal(err)
	}
	if got := useOf(reply); got.Size != 5120 || got.DiskFree != 40e9 || got.DiskSize != 100e9 {
		t.Errorf("got %+v, want 5120, 40e9 and 100e9 bytes", got)
	}
}

func TestAServerThatIsBehindOrSilentIsTold(t *testing.T) {
	c := newConnections()
	begun := time.Now()
	var servers []event.ServerDescription
	for name, wrote := range map[string]time.Time{"primary": begun, "near": begun.Add(-2 * time.Second), "behind": begun.Add(-90 * time.Second)} {
		s := event.ServerDescription{Addr: address.Address(name), Kind: "RSSecondary", LastWriteTime: wrote}
		if name == "primary" {
			s.Kind = "RSPrimary"
		}
		servers = append(servers, s)
		c.beaten(&event.ServerHeartbeatSucceededEvent{Reply: s})
	}
	c.changed(&event.TopologyDescriptionChangedEvent{NewDescription: event.TopologyDescription{Servers: servers}})
	near := func(got, want time.Duration) bool { return got > want-5*time.Second && got < want+5*time.Second }
	lags := c.lags(begun)
	if lags["primary:27017"] != 0 || !near(lags["near:27017"], 2*time.Second) || !near(lags["behind:27017"], 90*time.Second) || len(lags) != 3 {
		t.Errorf("got %v, want 0, 2 and 90 s", lags)
	}
	if lags := c.lags(begun.Add(10 * time.Minute)); !near(lags["near:27017"], 10*time.Minute) {
		t.Errorf("after ten minutes of silence got %v, want as much", lags)
	}
	c.changed(&event.TopologyDescriptionChangedEvent{NewDescription: event.TopologyDescription{Servers: servers[:0]}})
	if lags := c.lags(begun); lags != nil {
		t.Errorf("without a primary got %v, want nothing", lags)
	}
}
