package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// heap returns the size of all objects on the heap, including unused ones that are not collected yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// makerVariable is an environment variable. If it names a directory, this test's binary makes snapshots there
// until it is killed.
const makerVariable = "SNAPSHOT_TEST_DIRECTORY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(makerVariable); dir != "" {
		if err := makeForEver(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// makeForEver changes assets and makes snapshots, until the process is killed.
func makeForEver(dir string) error {
	ctx := context.Background()
	s, err := boltstore.Open(filepath.Join(dir, "assets.db"), boltstore.Options{Now: time.Now})
	if err != nil {
		return err
	}
	k, err := New(s, Options{
		Dir: dir, Show: show, Copies: true, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	k.pause = func(context.Context, time.Duration) error { return nil }
	for {
		r := registry.Record{ID: storetest.NewID(), Listed: true, Body: body(randtest.IntN(3_000_000))}
		if _, err := s.Create(ctx, r); err != nil {
			return err
		}
		if _, err := k.Make(ctx); err != nil {
			return err
		}
	}
}

// Promises: snapshot-complete, whole-complete
func TestAKilledMakerLeavesTheOldSnapshot(t *testing.T) {
	dir := t.TempDir()
	made := 0
	for range 6 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), makerVariable+"="+dir)
		c.Stderr = os.Stderr
		expect.OK(t, c.Start())
		time.Sleep(time.Duration(200+randtest.IntN(400)) * time.Millisecond)
		expect.OK(t, c.Process.Kill())
		_ = c.Wait() // an error is expected, because the process was killed
		s := expect.Get(boltstore.Open(filepath.Join(dir, "assets.db"), boltstore.Options{Now: time.Now}))(t)
		k := keeper(t, s, dir)
		k.o.Copies = true
		if m, err := k.Newest(); err == nil {
			made++
			lines(t, k, m)
		}
		if _, err := k.NewestCopies(); err == nil {
			copiesOf(t, k)
		}
		m := mustMake(t, k)
		begun := expect.Get(list(k.manifests()))(t)
		kept := []Manifest{m}
		if len(begun) > 1 {
			before := expect.Get(read(k.manifests(), begun[0]))(t)
			kept = append(kept, before)
			lines(t, k, before)
		}
		lines(t, k, m)
		copiesOf(t, k)
		for _, name := range []string{"manifests", "segments"} {
			var want []string
			for _, file := range wantFiles(kept...) {
				if filepath.Dir(file) == name {
					want = append(want, filepath.Base(file))
				}
			}
			expect.NoDiff(t, cmp.Diff(want, names(t, filepath.Join(dir, name))), "the files in %s differ", name)
		}
		expect.OK(t, s.Close())
	}
	expect.ErrorIf(t, made == 0, "got no snapshot by a killed process, want some")
}
