package mongostore

import (
	"context"
	"fmt"
	"log/slog"
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

// TestACensusCountsTheAssets counts the assets of a store with a void, before and after an asset is created.
func TestACensusCountsTheAssets(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	create := func(state asset.Status) {
		t.Helper()
		r := registry.Record{ID: storetest.NewID(), State: state, Body: fmt.Appendf(nil, `{"status":%q}`, state)}
		expect.Get(s.Create(t.Context(), r))(t)
	}
	expect.OK(t, (feedStore{database: s.db}).Fence(t.Context(), []string{storetest.NewID()}))
	c, meter := newCensus(s.db, s.log), metrictest.New()
	c.from = readpref.Primary() // a secondary may lag
	defer c.measure(meter)()
	if values := meter.Read(t); len(values) != 0 {
		t.Errorf("before the first census: got metrics %v, want none", values)
	}
	for n, state := range []asset.Status{asset.Draft, asset.Draft, asset.Pending} {
		create(state)
		found := expect.Get(c.take(t.Context()))(t)
		c.last.Store(found)
		expect.Equal(t, found.all, int64(n+1), "all assets")
	}
	values := meter.Read(t)
	for state, want := range map[asset.Status]float64{asset.Draft: 2, asset.Pending: 1, asset.Active: 0} {
		got, known := values["registry.assets.stored{"+string(state)+"}"]
		expect.ErrorIf(t, !known || got != want, "%s: got %v, reported %t; want %v", state, got, known, want)
	}
	if got := values["registry.store.size{assets}"]; got <= 0 {
		t.Errorf("size of the assets: got %v, want more than 0", got)
	}
}

// TestACensusThatFailsIsToldAndForgotten keeps the census of a database that is away, after one that succeeded.
func TestACensusThatFailsIsToldAndForgotten(t *testing.T) {
	p, d := scripted(t)
	p.answers(func(command) bson.D { return bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: unauthorized}} })
	c := newCensus(d, slog.New(slog.DiscardHandler))
	c.last.Store(&counts{})
	ctx, stop := context.WithCancel(t.Context())
	c.keep(ctx, func(err error) {
		defer stop()
		expect.ErrorIf(t, err == nil || c.last.Load() != nil, "got %v and a census %v, want an error and none", err, c.last.Load())
	})
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
