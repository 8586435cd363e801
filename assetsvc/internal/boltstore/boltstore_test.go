package boltstore

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/randtest"
)

func opener(t *testing.T) storetest.Opener {
	dir := t.TempDir()
	return func(t *testing.T, name string, now func() time.Time) registry.Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, opener(t)) }

func TestFeed(t *testing.T) {
	seed := randtest.Uint64()
	s := opener(t)(t, "feed", wildClock(seed))
	report := storetest.CheckFeed(t, s, storetest.Load{Seed: seed, Writers: 16, Followers: 6, Changes: 5000,
		Assets: 200})
	t.Logf("seed %d: %v", seed, report)
	for _, v := range report.Violations {
		t.Error(v)
	}
	if report.Changes < 5000 || report.Checks < report.Changes {
		t.Errorf("got %v, want 5000 changes and at least as many checks", report)
	}
}

// wildClock returns a clock whose times are up to 5 seconds wrong, by a different amount at each call. Each call
// takes up to 200 microseconds.
func wildClock(seed uint64) func() time.Time {
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		time.Sleep(time.Duration(random.IntN(200)) * time.Microsecond)
		return time.Now().Add(time.Duration(random.IntN(10_000)-5_000) * time.Millisecond)
	}
}

func TestThePublicLogIsStored(t *testing.T) {
	dir := t.TempDir()
	storetest.RunLog(t, func(t *testing.T, name string, now func() time.Time) storetest.LogStore {
		t.Helper()
		s, err := Open(filepath.Join(dir, filepath.Base(t.Name())+name), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestWebhooksAreStored(t *testing.T) {
	dir := t.TempDir()
	storetest.RunWebhooks(t, func(t *testing.T, name string, now func() time.Time) storetest.WebhookStore {
		t.Helper()
		s, err := Open(filepath.Join(dir, filepath.Base(t.Name())+name), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}
