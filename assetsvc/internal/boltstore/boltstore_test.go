package boltstore

import (
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// opener returns a function that opens a store as a T.
func opener[T any](t *testing.T) func(t *testing.T, name string, now func() time.Time) T {
	dir := t.TempDir()
	return func(t *testing.T, name string, now func() time.Time) T {
		t.Helper()
		s := expect.Get(Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{Now: now}))(t)
		t.Cleanup(func() { s.Close() })
		return any(s).(T)
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, opener[registry.Store](t)) }

func TestFeed(t *testing.T) {
	seed := randtest.Uint64()
	s := opener[registry.Store](t)(t, "feed", wildClock(seed))
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

func TestThePublicLogIsStored(t *testing.T) { storetest.RunLog(t, opener[storetest.LogStore](t)) }

func TestWebhooksAreStored(t *testing.T) { storetest.RunWebhooks(t, opener[storetest.WebhookStore](t)) }

// TestAMalformedIDIsNoAsset uses malformed ids, such as the id of an asset in capital letters, or a part of it. The
// store must neither find nor create an asset with such an id. Afterwards it must still take writes.
func TestAMalformedIDIsNoAsset(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	const id = "00112233445566778899aabbccddeeff"
	expect.Get(s.Create(t.Context(), registry.Record{ID: id, Body: []byte("{}")}))(t)
	for _, malformed := range []string{strings.ToUpper(id), id[:30], id + "00", "", "x"} {
		expect.ErrOf(t, registry.ErrNotFound, "%q", malformed)(s.Get(t.Context(), malformed, registry.AnySize))
		created := registry.Record{ID: malformed, Body: []byte("{}")}
		expect.ErrOf(t, registry.ErrNotFound, "%q is created", malformed)(s.Create(t.Context(), created))
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("afterwards: got %v, want a store that takes writes", err)
	}
}

// TestCloseWaitsForAcceptedWrites closes the store when a write begins, while another write waits. Both must succeed,
// and Close must not return before them.
func TestCloseWaitsForAcceptedWrites(t *testing.T) {
	var s *Store
	second, closed := make(chan error, 1), make(chan error, 1)
	s, err := Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: time.Now, Changing: func([]string) func() {
		go func() {
			_, err := s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("{}")})
			second <- err
		}()
		for len(s.queue) == 0 {
			runtime.Gosched()
		}
		go func() { closed <- s.Close() }()
		<-s.closed
		select {
		case <-closed:
			t.Error("Close has returned before the writes, want it to wait")
			close(closed)
		case <-time.After(50 * time.Millisecond):
		}
		return func() {}
	}})
	expect.OK(t, err)
	r := registry.Record{ID: storetest.NewID(), Body: []byte("{}")}
	r.Position, err = s.Create(t.Context(), r)
	expect.OK(t, err)
	r.Revision, r.Body = 1, []byte(`{"a":1}`)
	expect.NilOf(t, "the write under way")(s.Replace(t.Context(), r))
	expect.Nil(t, <-second, "the write that waits")
	expect.Try(t, <-closed)
	expect.FailsOf(t, "a number of a closed store")(s.NextNumber(t.Context(), "2026-11-20"))
}

func TestEndingsAreKept(t *testing.T) { storetest.RunEndings(t, opener[registry.Store](t)) }
