package e2e

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/rig/processes"
)

// TestASnapshotAndTheFeedAreEverything copies the registry from snapshots while writers work, before and after a
// kill -9. Each snapshot, together with the feed after its position, must equal the whole feed.
// Promises: snapshot-whole
func TestASnapshotAndTheFeedAreEverything(t *testing.T) {
	const writers, copies = 8, 5
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	ledger := &ledger{}
	var all []copied
	for range 2 {
		registry := standalone(t, addr, dir, &processes.Output{}, "--snapshot-interval", "1s")
		stop := make(chan struct{})
		var working sync.WaitGroup
		for range writers {
			working.Go(func() {
				for work := true; work; {
					select {
					case <-stop:
						return
					default:
						work = ledger.write(a)
					}
				}
			})
		}
		before := ""
		if len(all) > 0 {
			before = all[len(all)-1].date
		}
		for range copies {
			c := a.newCopy(t, before)
			before = c.date
			all = append(all, c)
		}
		if err := registry.Kill(); err != nil {
			t.Fatal(err)
		}
		close(stop)
		working.Wait()
	}
	standalone(t, addr, dir, &processes.Output{}, "--snapshot-interval", "0s")
	mustRun(t, "snapshot", "--data", dir)
	all = append(all, a.newCopy(t, all[len(all)-1].date))
	want := map[string]string{}
	a.follow(t, "", want)
	largest := 0
	for _, c := range all {
		largest = max(largest, len(c.assets))
		a.follow(t, c.position, c.assets)
		if diff := cmp.Diff(want, c.assets); diff != "" {
			t.Errorf("the snapshot of %s and the feed from %s differ from the whole feed (-feed +copy):\n%s", c.date, c.position, diff)
		}
	}
	t.Logf("%d snapshots, %d assets in the feed, %d in the largest snapshot", len(all), len(want), largest)
	if largest == 0 || len(want) == 0 {
		t.Errorf("got %d assets in the largest snapshot and %d in the feed, want some", largest, len(want))
	}
	got, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*.new*"))
	if err != nil || len(got) > 0 {
		t.Errorf("got the unfinished files %v, %v; want none", got, err)
	}
}
