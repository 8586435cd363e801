package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/randtest"
)

// naive is a store without a protocol for the feed: it takes the time of a change first and writes later, so its
// feed loses changes. CheckFeed must report that. A checker that never fails proves nothing.
type naive struct {
	mu     sync.Mutex
	assets map[string]registry.Record
	number int
}

func (s *naive) put(r registry.Record, guard func(current registry.Record, found bool) error) (int64, error) {
	position := time.Now().UnixMicro()
	time.Sleep(time.Duration(randtest.IntN(300)) * time.Microsecond) // a slow write
	s.mu.Lock()
	defer s.mu.Unlock()
	current, found := s.assets[r.ID]
	if err := guard(current, found); err != nil {
		return 0, err
	}
	r.Position, r.Revision = position, current.Revision+1
	s.assets[r.ID] = r
	return position, nil
}

func (s *naive) Create(_ context.Context, r registry.Record) (int64, error) {
	return s.put(r, func(_ registry.Record, found bool) error {
		if found {
			return registry.ErrExists
		}
		return nil
	})
}

func (s *naive) Replace(_ context.Context, r registry.Record) (int64, error) {
	return s.put(r, func(current registry.Record, _ bool) error {
		if current.Revision != r.Revision {
			return registry.ErrStale
		}
		return nil
	})
}

func (s *naive) Get(_ context.Context, id string, _ int) (registry.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.assets[id]
	if !found {
		return r, registry.ErrNotFound
	}
	return r, nil
}

func (s *naive) Look(ctx context.Context, id string, most int, see func([]byte) error) (registry.Record, error) {
	r, err := s.Get(ctx, id, most)
	if err == nil && see != nil {
		err = see(r.Body)
	}
	r.Body = nil
	return r, err
}

func (s *naive) Page(_ context.Context, q registry.Query) (registry.FeedPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []registry.Entry
	for _, r := range s.assets {
		wanted := q.Mode == registry.All || r.Test == (q.Mode == registry.Test)
		after := r.Position > q.Offset
		if q.Descending {
			after = r.Position < q.Offset || q.Offset == 0
		}
		if r.Listed && wanted && after {
			entries = append(entries, registry.Entry{ID: r.ID, Position: r.Position, Test: r.Test})
		}
	}
	slices.SortFunc(entries, func(a, b registry.Entry) int {
		if q.Descending {
			a, b = b, a
		}
		return int(a.Position - b.Position)
	})
	if len(entries) > q.Limit {
		return registry.FeedPage{Entries: entries[:q.Limit], Upto: entries[q.Limit-1].Position}, nil
	}
	return registry.FeedPage{Entries: entries, Upto: s.last()}, nil
}

// The method `last` returns the newest position.
func (s *naive) last() (last int64) {
	for _, r := range s.assets {
		last = max(last, r.Position)
	}
	return last
}

func (s *naive) NextNumber(context.Context, string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	return s.number, nil
}

func (s *naive) Log(context.Context, string, registry.LogQuery) ([]registry.Revision, error) {
	return nil, nil
}

func (s *naive) Changes(context.Context, registry.ChangesQuery) (registry.ChangesPage, error) {
	return registry.ChangesPage{}, nil
}

func (s *naive) Rewrite(context.Context, registry.Revision, []byte, []byte) (bool, error) {
	return false, nil
}

func (s *naive) ClaimReference(context.Context, string, string, string) (string, error) {
	return "", nil
}

func (s *naive) Ready(context.Context) error { return nil }
func (s *naive) Close() error                { return nil }

func TestTheCheckerCatchesANaiveStore(t *testing.T) {
	const attempts = 20
	for seed := range uint64(attempts) {
		store := &naive{assets: map[string]registry.Record{}}
		report := CheckFeed(t, store, Load{Seed: seed, Writers: 16, Followers: 6, Changes: 1000, Assets: 100})
		for _, v := range report.Violations {
			if strings.HasPrefix(v, "F1:") {
				t.Logf("seed %d: %v; %s", seed, report, v)
				return
			}
		}
	}
	t.Errorf("got no violation of F1 in %d runs on a store that loses changes, want one", attempts)
}
