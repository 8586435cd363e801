package mongostore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// TestASnapshotMissesNothing takes snapshots while assets are being written. A snapshot and the feed after its
// position must have all assets (storetest.CheckSnapshot).
// Promises: snapshot-whole
func TestASnapshotMissesNothing(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	k := newKeeper(t, s)
	take := func(ctx context.Context) (storetest.Copy, error) { return copyOf(ctx, k) }
	for _, v := range storetest.CheckSnapshot(t, s, someLoad(), 4, take) {
		t.Error(v)
	}
}

func someLoad() storetest.Load {
	return storetest.Load{Seed: randtest.Uint64(), Writers: 4, Changes: 20, Assets: 150}
}

func newKeeper(t *testing.T, s snapshot.Store) *snapshot.Keeper {
	t.Helper()
	show := func(dst []byte, e registry.Entry) ([]byte, error) {
		return fmt.Appendf(dst, "%s %d", e.ID, e.Position), nil
	}
	k := expect.Get(snapshot.New(s, snapshot.Options{
		Dir: t.TempDir(), Show: show, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}))(t)
	return k
}

// copyOf makes a snapshot and returns a copy of its content.
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
