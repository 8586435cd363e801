package mongostore

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

func TestOneProcessTakesTheCensusAndAllReportIt(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	create := func(state asset.Status) {
		t.Helper()
		r := registry.Record{ID: storetest.NewID(), State: state, Body: fmt.Appendf(nil, `{"status":%q}`, state)}
		expect.Get(s.Create(t.Context(), r))(t)
	}
	censusTaken(t, s)
	create(asset.Draft)
	create(asset.Draft)
	create(asset.Pending)
	void := storetest.NewID()
	expect.OK(t, (feedStore{database: s.db}).Fence(t.Context(), []string{void}))

	now := time.Now()
	clock := func() time.Time { return now }
	first, second := newCensus(s.db, clock, s.log), newCensus(s.db, clock, s.log)
	first.from, second.from = readpref.Primary(), readpref.Primary() // read from the primary: a secondary may lag
	rest := func(c *census) {                                        // until a census is due
		t.Helper()
		for range 2 {
			if mine, err := c.claim(t.Context()); err != nil || mine {
				t.Fatalf("a claim before a census is due: got %v, %v; want false", mine, err)
			}
		}
		now = now.Add(censusAge)
	}
	meter := metrictest.New()
	silence := second.measure(meter)
	if values := meter.Read(t); len(values) != 0 {
		t.Errorf("before the first census: got metrics %v, want none", values)
	}
	rest(first)
	expect.OK(t, first.look(t.Context()))
	create(asset.Active) // an asset that only the next census counts
	if mine, err := second.claim(t.Context()); err != nil || mine {
		t.Errorf("second claim: got %v, %v; want false", mine, err)
	}
	check := func(want map[asset.Status]float64) {
		t.Helper()
		expect.OK(t, second.look(t.Context()))
		values := meter.Read(t)
		got := map[asset.Status]float64{}
		for state := range want {
			count, known := values["registry.assets.stored{"+string(state)+"}"]
			if !known {
				count = -1
			}
			got[state] = count
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the census differs (-want +got, -1: not reported):\n%s", diff)
		}
		if got := values["registry.store.size{assets}"]; got <= 0 {
			t.Errorf("size of the assets: got %v, want more than 0", got)
		}
	}
	check(map[asset.Status]float64{asset.Draft: 2, asset.Pending: 1, asset.Active: 0, asset.Deleted: 0})
	now = now.Add(censusAge)
	check(map[asset.Status]float64{asset.Draft: 2, asset.Pending: 1, asset.Active: 1})
	silence()
}

// censusTaken waits until the store has taken its first census. It takes the next one a minute later.
func censusTaken(t *testing.T, s *Store) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); s.census.last.Load() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the store took no census in 20 s")
		}
	}
}

// TestNoClockStopsTheCensus stores the time of the next census as a process with a wrong clock does. Another process must
// take the census after it has seen this time for a minute.
func TestNoClockStopsTheCensus(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	s := open(t, mongotest.Start(t), "", time.Now)
	censusTaken(t, s)
	now := time.Now().UTC()
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		c := newCensus(s.db, func() time.Time { return now }, nil)
		expect.Get(c.shared().UpdateOne(t.Context(), withID(censusID),
			append(set(bson.E{Key: "due", Value: now.Add(ahead)}), bson.E{Key: "$unset", Value: bson.D{{Key: "rest"}}})))(t)
		for n, step := range []time.Duration{0, censusAge - time.Second, time.Second} {
			now = now.Add(step)
			expect.Value(t, (n == 2), "a clock %v ahead, claim %d", ahead, n)(c.claim(t.Context()))
		}
	}
}

func TestTheDiskIsTheDatabaseServers(t *testing.T) {
	reply := expect.Get(bson.Marshal(bson.D{
		{Key: "storageSize", Value: float64(4096)},
		{Key: "indexSize", Value: int32(1024)},
		{Key: "fsUsedSize", Value: float64(60e9)},
		{Key: "fsTotalSize", Value: float64(100e9)},
		{Key: "ok", Value: 1.0},
	}))(t)
	want := telemetry.StoreUse{Size: 5120, DiskFree: 40e9, DiskSize: 100e9}
	expect.NoDiff(t, cmp.Diff(want, useOf(reply)), "the disk use differs")
}

func TestLagsOfServersThatAreBehindOrSilent(t *testing.T) {
	c := newConnections()
	begun := time.Now()
	var servers []event.ServerDescription
	for _, member := range []struct {
		name, kind string
		behind     time.Duration
	}{{"primary", "RSPrimary", 0}, {"near", "RSSecondary", 2 * time.Second},
		{"behind", "RSSecondary", 90 * time.Second}} {
		s := event.ServerDescription{
			Addr: address.Address(member.name), Kind: member.kind, LastWriteTime: begun.Add(-member.behind),
		}
		servers = append(servers, s)
		c.heartbeat(&event.ServerHeartbeatSucceededEvent{Reply: s})
	}
	topology := func(servers ...event.ServerDescription) {
		c.topologyChanged(&event.TopologyDescriptionChangedEvent{
			NewDescription: event.TopologyDescription{Servers: servers},
		})
	}
	topology(servers...)
	near := func(got, want time.Duration) bool { return got > want-5*time.Second && got < want+5*time.Second }
	lags := c.lags(begun)
	if lags["primary:27017"] != 0 || !near(lags["near:27017"], 2*time.Second) ||
		!near(lags["behind:27017"], 90*time.Second) || len(lags) != 3 {
		t.Errorf("got %v, want 0, 2 and 90 s", lags)
	}
	if lags := c.lags(begun.Add(10 * time.Minute)); !near(lags["near:27017"], 10*time.Minute) {
		t.Errorf("after ten minutes of silence: got %v, want ten minutes", lags)
	}
	topology()
	if lags := c.lags(begun); lags != nil {
		t.Errorf("without a primary: got %v, want nil", lags)
	}
}

func TestALargeCensusIsRare(t *testing.T) {
	for _, c := range []struct {
		took   time.Duration
		assets int64
		want   time.Duration
	}{
		{time.Millisecond, 10, time.Minute}, {2 * time.Second, 10, 100 * time.Second},
		{time.Second, 1_000_000, 1000 * time.Second},
	} {
		expect.Equal(t, restAfter(c.took, c.assets), c.want, "%v for %d assets, a rest of", c.took, c.assets)
	}
}
