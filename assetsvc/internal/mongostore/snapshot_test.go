package mongostore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// lateStore tells no horizon: it is read after the assets.
type lateStore struct{ *Store }

func (lateStore) Horizon(context.Context) (int64, error) { return 0, nil }

// TestASnapshotMissesNothing takes snapshots while assets are written
// (storetest.CheckSnapshot). A snapshot whose position is read last must fail.
func TestASnapshotMissesNothing(t *testing.T) {
	server := mongotest.Start(t)
	for _, c := range []struct {
		name string
		late bool
	}{{"the position is read first", false}, {"the position is read last", true}} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, server, "", time.Now)
			var from snapshot.Store = s
			if c.late {
				from = lateStore{s}
			}
			k := newKeeper(t, from)
			take := func(ctx context.Context) (storetest.Copy, error) {
				copied, err := copyOf(ctx, k)
				if err == nil && c.late {
					copied.Position, err = s.Horizon(ctx)
				}
				return copied, err
			}
			load := storetest.Load{Seed: uint64(time.Now().UnixNano()), Writers: 4, Changes: 20, Assets: 150}
			violations := storetest.CheckSnapshot(t, s, load, 4, take)
			if c.late != (len(violations) > 0) {
				t.Errorf("got %d violations, want some: %t; %s", len(violations), c.late, strings.Join(violations, "\n"))
			}
		})
	}
}

func newKeeper(t *testing.T, s snapshot.Store) *snapshot.Keeper {
	t.Helper()
	show := func(dst []byte, e registry.Entry) ([]byte, error) {
		return fmt.Appendf(dst, "%s %d", e.ID, e.Position), nil
	}
	k, err := snapshot.New(s, snapshot.Options{
		Dir: t.TempDir(), Show: show, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// copyOf makes a snapshot and reads it.
func copyOf(ctx context.Context, k *snapshot.Keeper) (storetest.Copy, error) {
	m, err := k.Make(ctx)
	if err != nil {
		return storetest.Copy{}, err
	}
	c := storetest.Copy{Position: m.Position, Assets: map[string]int64{}}
	for _, s := range m.Segments {
		if err := readInto(c, k, s.SHA256); err != nil {
			return c, err
		}
	}
	return c, nil
}

func readInto(c storetest.Copy, k *snapshot.Keeper, sha256 string) error {
	f, err := k.Segment(sha256)
	if err != nil {
		return err
	}
	decoder, err := zstd.NewReader(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer decoder.Close()
	lines := bufio.NewScanner(decoder)
	for lines.Scan() {
		var id string
		var position int64
		if _, err := fmt.Sscan(lines.Text(), &id, &position); err != nil {
			return errors.Join(err, f.Close())
		}
		c.Assets[id] = position
	}
	return errors.Join(lines.Err(), f.Close())
}
