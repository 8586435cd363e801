package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/translog"
)

// LogStore is a registry.Store that also stores the public log.
type LogStore interface {
	registry.Store
	publiclog.Store
}

// RunLog checks that a store keeps the contract of publiclog.Store.
func RunLog(t *testing.T, open func(t *testing.T, name string, now func() time.Time) LogStore) {
	t.Run("a head replaces the one that it was made from", func(t *testing.T) { testHead(t, open) })
	t.Run("of several heads one is stored", func(t *testing.T) { testHeadRace(t, open) })
}

// leaves returns the given number of leaves of the log. Their positions are consecutive, and begin with the first
// argument.
func leaves(first, count int) [][]byte {
	all := make([][]byte, count)
	for i := range all {
		l := translog.Leaf{Position: int64(first + i), Asset: fmt.Sprintf("%032x", i), Revision: 1, Kind: translog.Withdraw}
		all[i] = l.Encode()
	}
	return all
}

// checkHead checks the stored head. It must equal the given head, except that its version is higher by one, because
// ExtendLog has raised it.
func checkHead(t *testing.T, s publiclog.Store, want publiclog.Head) publiclog.Head {
	t.Helper()
	got, err := s.LogHead(t.Context())
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	type plain struct {
		Version, Position, Size int64
		Root, Checkpoint        string
	}
	show := func(h publiclog.Head) plain {
		return plain{h.Version, h.Position, h.Tree.Size(), h.Tree.Root().String(), string(h.Checkpoint)}
	}
	want.Version++
	if diff := cmp.Diff(show(want), show(got)); diff != "" {
		t.Errorf("the head differs (-want +got):\n%s", diff)
	}
	if want.Checkpoint == nil && got.Checkpoint != nil {
		t.Errorf("got the checkpoint %q, want nil, because there is none", got.Checkpoint)
	}
	return got
}

func testHead(t *testing.T, open func(*testing.T, string, func() time.Time) LogStore) {
	s := open(t, "a", at(start))
	head, err := s.LogHead(t.Context())
	if err != nil || head.Version != 0 || head.Tree.Size() != 0 || head.Checkpoint != nil {
		t.Fatalf("head of an empty log: got %+v, %v; want the zero Head", head, err)
	}
	first := translog.Tile{Level: translog.Entries, Width: translog.TileWidth}
	if _, err := s.LogPart(t.Context(), first); !errors.Is(err, publiclog.ErrNoPart) {
		t.Errorf("part of an empty log: got %v, want ErrNoPart", err)
	}
	var parts []translog.Part
	for i := range 4 {
		stale := head
		tree, full, err := head.Tree.Append(leaves(1+300*i, 300))
		if err != nil {
			t.Fatal(err)
		}
		head.Tree, head.Position, head.Checkpoint = tree, int64(300*(i+1)), nil
		if i > 0 {
			head.Checkpoint = fmt.Appendf(nil, "checkpoint %d", i)
		}
		if stored, err := s.ExtendLog(t.Context(), head, full); err != nil || !stored {
			t.Fatalf("extend: got %v, %v; want true", stored, err)
		}
		parts = append(parts, full...)
		if stored, err := s.ExtendLog(t.Context(), stale, nil); err != nil || stored {
			t.Errorf("extend from an old head: got %v, %v; want false", stored, err)
		}
		head = checkHead(t, s, head)
	}
	check := func() {
		t.Helper()
		for _, part := range parts {
			got, err := s.LogPart(t.Context(), part.Tile)
			if err != nil || !cmp.Equal(part.Data, got) {
				t.Errorf("%s: got %d bytes, %v; want the %d stored bytes", part.Tile.Path(), len(got), err, len(part.Data))
			}
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	head.Version--
	checkHead(t, s, head)
	check()
}

// testHeadRace lets several goroutines extend the log from the same head, several times. Each time, exactly one of them
// must succeed.
func testHeadRace(t *testing.T, open func(*testing.T, string, func() time.Time) LogStore) {
	s := open(t, "a", at(start))
	for range 5 {
		head, err := s.LogHead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				mine := head
				mine.Position = int64(i)
				stored, err := s.ExtendLog(t.Context(), mine, nil)
				if err != nil {
					t.Error(err)
				}
				if stored {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("got %d of 6 heads stored, want 1", won.Load())
		}
	}
}
