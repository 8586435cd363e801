package mongostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestConformanceWithFreshReads runs the tests that every store must pass, with a barrier before each read.
func TestConformanceWithFreshReads(t *testing.T) {
	server := mongotest.Start(t)
	var mu sync.Mutex
	addresses := map[string]string{} // the keys are names of databases; a test may open a database again
	storetest.Run(t, func(t *testing.T, name string, now func() time.Time) registry.Store {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		uri, there := addresses[t.Name()+name]
		if !there {
			uri = server.URI(t, fmt.Sprintf("fresh%d", len(addresses)))
			if !server.Real {
				_, uri = newNode(t, server, fmt.Sprintf("fresh%d", len(addresses)))
			}
			addresses[t.Name()+name] = uri
		}
		// The lease is so long that no batch is fenced.
		return openAt(t, uri, now, Options{FreshReads: true, Lease: time.Minute})
	})
}

// readers are the reads that must show all acknowledged changes. Each returns the position that it shows for an
// asset.
var readers = []struct {
	name string
	read func(ctx context.Context, s *Store, id string) (int64, error)
}{
	{"Get", func(ctx context.Context, s *Store, id string) (int64, error) {
		r, err := s.Get(ctx, id, registry.AnySize)
		return r.Position, err
	}},
	{"Get with a limit", func(ctx context.Context, s *Store, id string) (int64, error) {
		r, err := s.Get(ctx, id, registry.MaxAsset)
		return r.Position, err
	}},
	{"Page", func(ctx context.Context, s *Store, _ string) (int64, error) {
		page, err := s.Page(ctx, registry.Query{Limit: 1, Descending: true})
		if err != nil || len(page.Entries) == 0 {
			return 0, err
		}
		return page.Entries[0].Position, nil
	}},
	{"Log", func(ctx context.Context, s *Store, id string) (int64, error) {
		log, err := s.Log(ctx, id, registry.LogQuery{Limit: 1})
		if err != nil || len(log) == 0 {
			return 0, err
		}
		return log[0].Position, nil
	}},
}

// TestAReadFollowsABarrierOnTheWire checks the commands that arrive at the server: a barrier must come before
// each read.
func TestAReadFollowsABarrierOnTheWire(t *testing.T) {
	n, uri := newNode(t, mongotest.Start(t), "wire")
	// The lease is so long that the watcher does not read.
	s := openWith(t, uri, Options{FreshReads: true, Lease: time.Hour})
	r := mustCreate(t, s)
	for _, c := range readers {
		n.arrived()
		expect.Value(t, r.Position, "%s", c.name)(c.read(t.Context(), s, r.ID))
		barriers, reads := 0, 0
		var answered uint32 // operation time of the barrier's answer
		for _, a := range n.arrived() {
			_, limited := a.raw.Lookup("maxTimeMS").AsInt64OK()
			_, stateless := a.raw.LookupErr("filter", "state")
			_, unindexed := a.raw.LookupErr("hint", "state")
			switch {
			case a.level == "linearizable":
				barriers, answered = barriers+1, a.time
				if of := a.body[0]; of.Key != "find" || of.Value != "clock" || a.after != 0 || !limited {
					t.Errorf("%s: got the barrier %v, want find of the clock with maxTimeMS, after no time", c.name, a.raw)
				}
			case stateless == nil || unindexed == nil || strings.Contains(a.asks, "$group"):
				// The census sent this command, so no barrier is needed.
			case barriers == 0 || a.level != "majority" || a.after < answered:
				t.Errorf("%s: got the read %v, want a majority read after time %d", c.name, a.raw, answered)
			default:
				reads++
			}
		}
		if barriers != 1 || reads == 0 {
			t.Errorf("%s: got %d barriers and then %d reads, want 1 and some", c.name, barriers, reads)
		}
	}
}

// TestADeposedPrimaryAnswersNoFreshRead changes an asset at the new primary, and then reads it from the old
// primary. A fresh read must fail. Without fresh reads, the old primary shows the asset as it was before the
// change.
func TestADeposedPrimaryAnswersNoFreshRead(t *testing.T) {
	server := mongotest.Start(t)
	for _, c := range []struct {
		name         string
		fresh, found bool
		stale        bool // the read shows the asset as it was before the change
	}{
		{"reads without barriers go back in time", false, false, true},
		{"a deposed primary does not answer a barrier", true, false, false},
		{"nor a read after a barrier of the new primary", true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			database := fmt.Sprintf("deposed%v%v", c.fresh, c.found)
			n, uri := newNode(t, server, database)
			s := openWith(t, uri, Options{FreshReads: c.fresh})
			other := openWith(t, server.URI(t, database), Options{})
			r := mustCreate(t, s)
			for _, look := range readers {
				if got, err := look.read(t.Context(), s, r.ID); err != nil || got != r.Position {
					t.Fatalf("%s before: got position %d, %v; want %d", look.name, got, err, r.Position)
				}
			}
			n.depose(c.found)
			changed := expect.Get(other.Replace(t.Context(), r))(t)
			for _, look := range readers {
				got, err := look.read(t.Context(), s, r.ID)
				switch {
				case c.stale && (err != nil || got != r.Position):
					t.Errorf("%s: got position %d, %v; want the old %d", look.name, got, err, r.Position)
				case !c.stale && (err == nil || errors.Is(err, registry.ErrNotFound)):
					t.Errorf("%s: got position %d, %v; want an error of the store", look.name, got, err)
				}
			}
			if err := s.Ready(t.Context()); (err == nil) != c.stale {
				t.Errorf("Ready: got %v, want an error: %v", err, !c.stale)
			}
			n.reelect()
			for _, look := range readers {
				expect.Value(t, changed, "%s after", look.name)(look.read(t.Context(), s, r.ID))
			}
		})
	}
}

// TestAServerWithoutTimesRefusesFreshReads reads from a server that belongs to no replica set. The reads must
// fail, because the answers do not say which state they show.
func TestAServerWithoutTimesRefusesFreshReads(t *testing.T) {
	n, uri := newNode(t, mongotest.Start(t), "timeless")
	s := openWith(t, uri, Options{FreshReads: true})
	r := mustCreate(t, s)
	n.mu.Lock()
	n.timeless = true
	n.mu.Unlock()
	for _, look := range readers {
		expect.ErrOf(t, errNoTime, "%s", look.name)(look.read(t.Context(), s, r.ID))
	}
	expect.Err(t, s.Ready(t.Context()), errNoTime, "Ready")
}

// TestReadsWithoutBarriersSendNone checks that a store which was opened without fresh reads sends no barriers.
func TestReadsWithoutBarriersSendNone(t *testing.T) {
	n, uri := newNode(t, mongotest.Start(t), "none")
	s := openWith(t, uri, Options{})
	r := mustCreate(t, s)
	for _, look := range readers {
		expect.NilOf(t, "%s", look.name)(look.read(t.Context(), s, r.ID))
	}
	if arrived := n.arrived(); barriersOf(arrived) != 0 || len(arrived) == 0 {
		t.Errorf("got %d barriers among %d reads, want none among some", barriersOf(arrived), len(arrived))
	}
}

func barriersOf(arrived []arrival) (barriers int) {
	for _, a := range arrived {
		if a.level == "linearizable" {
			barriers++
		}
	}
	return barriers
}
