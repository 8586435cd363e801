package mongostore

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// TestStoresWithDifferentClocksAreServedAlike lets four stores create assets at the same time. No store may
// create far fewer assets than another store. The stand-in for MongoDB runs one command at a time, in any order,
// so the test accepts larger differences there. Package feed has the same test in virtual time.
func TestStoresWithDifferentClocksAreServedAlike(t *testing.T) {
	server := mongotest.Start(t)
	count, tenths := int64(160), int64(3)
	if server.Real {
		count, tenths = 400, 5
	}
	for _, most := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
		var stores []*Store
		for i := range 4 {
			drift := most * time.Duration(i) / 3
			stores = append(stores, open(t, server, "alike", func() time.Time { return time.Now().Add(drift) }))
		}
		made := createAtOnce(t, stores, count)
		for i, n := range made {
			if n*10 < slices.Max(made)*tenths {
				t.Errorf("%v apart, store %d: got %d creations of %v, want %d tenths of the best at least", most, i, n, made,
					tenths)
			}
		}
	}
}

// createAtOnce creates the given number of assets, in all stores at the same time. It returns how many each
// store has created.
func createAtOnce(t *testing.T, stores []*Store, count int64) (made []int64) {
	const clients = 4 // of each store
	var left atomic.Int64
	left.Store(count)
	each := make([]atomic.Int64, len(stores))
	var running sync.WaitGroup
	for i := range len(stores) * clients {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				r := registry.Record{ID: storetest.NewID(), Listed: true, Body: body}
				if _, err := stores[i/clients].Create(t.Context(), r); err != nil {
					t.Errorf("store %d: %v", i/clients, err)
					return
				}
				each[i/clients].Add(1)
			}
		})
	}
	running.Wait()
	for i := range each {
		made = append(made, each[i].Load())
	}
	return made
}

// TestPositionsFollowTheStoresClock gives a machine a clock that differs from the store's clock. In some cases, the
// machine's clock also jumps after both clocks were read. Positions must follow the store's clock, unless it is far
// ahead of the machine's clock even without the jump.
func TestPositionsFollowTheStoresClock(t *testing.T) {
	for _, c := range []struct {
		name              string
		ahead, jump, want time.Duration // ahead, jump: of the machine's clock; want: lead over the store's clock
	}{
		{"both agree", 0, 0, 0},
		{"100 ms behind", -100 * time.Millisecond, 0, 0},
		{"100 ms ahead", 100 * time.Millisecond, 0, 0},
		{"a day ahead", 24 * time.Hour, 0, 0},
		{"a jump of an hour ahead", 0, time.Hour, 0},
		{"a jump of an hour back", 0, -time.Hour, 0},
		{"a clock that was an hour behind is set", -time.Hour, time.Hour, 0},
		{"the store's clock is an hour ahead", -time.Hour, 0, -time.Hour},
		{"the store's clock is a minute ahead", -time.Minute, 0, -time.Minute},
		{"the store's clock is a day ahead", -24 * time.Hour, 0, -24 * time.Hour},
		{"the store's clock is ten years ahead", -87600 * time.Hour, 0, -87600 * time.Hour},
		{"the store's clock is a minute behind", time.Minute, 0, 0},
		{"the store's clock is ten years behind", 87600 * time.Hour, 0, 0},
		{"a jump of ten years ahead", 0, 87600 * time.Hour, 0},
		{"a jump of ten years back", 0, -87600 * time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ahead := c.ahead
			s := newStoreTime(func() time.Time { return time.Now().Add(ahead) }, nil, slog.New(slog.DiscardHandler))
			s.store, s.at = time.Now(), time.Now()
			time.Sleep(time.Minute)
			ahead += c.jump
			if got := time.Until(s.now()); got != c.want {
				t.Errorf("%s: got positions %v ahead, want %v", c.name, got, c.want)
			}
		})
	}
}

// TestAMachineBehindFollowsTwoWitnesses has a machine whose clock is an hour behind the store's.
func TestAMachineBehindFollowsTwoWitnesses(t *testing.T) {
	s := open(t, mongotest.Start(t), "behind", time.Now)
	behind := func() time.Time { return time.Now().Add(-time.Hour) }
	for _, c := range []struct {
		name string
		peer func() time.Time // nil: no peer is known
		last time.Time
		want bool
	}{
		{"the peer and the newest position", time.Now, time.Now(), true},
		{"the peer alone", time.Now, behind(), false},
		{"the newest position alone", behind, time.Now(), false},
		{"no peer is known", nil, time.Now(), false},
	} {
		peers := func() (all []time.Time) {
			if c.peer != nil {
				all = append(all, c.peer())
			}
			return all
		}
		clock := newStoreTime(behind, peers, slog.New(slog.DiscardHandler))
		if _, err := clock.measure(t.Context(), s.db, c.last.UnixMicro()); err != nil {
			t.Fatal(err)
		}
		if got := clock.now().Sub(behind()) > time.Minute; got != c.want {
			t.Errorf("%s: got the store's time %v, want %v", c.name, got, c.want)
		}
	}
	if got, err := s.Clock(t.Context()); err != nil || time.Since(got).Abs() > time.Minute {
		t.Errorf("got the store's clock %v and %v, want the time", got, err)
	}
}
