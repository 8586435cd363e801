package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"asset-registry/deploy/test/rig/processes"
)

// copied is what a client has read of a snapshot.
type copied struct {
	date, position string
	assets         map[string]string // by id, as text of JSON
}

// TestASnapshotAndTheFeedAreEverything copies the registry by snapshots while writers
// work, before and after a kill -9. Each snapshot with the feed after its position must
// equal a walk through the whole feed.
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

// newCopy waits for a snapshot with another date, and reads it.
func (a api) newCopy(t *testing.T, date string) copied {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got no snapshot after that of %q within a minute, want one", date)
		}
		got := a.do(t, call{method: "GET", path: "/api/2.5/snapshot"})
		if got.status == http.StatusNotFound || text(got.data()["date"]) == date {
			continue
		}
		d := got.must(t, 200).data()
		c := copied{date: text(d["date"]), position: text(d["position"]), assets: map[string]string{}}
		if a.readSegments(t, list(d["segments"]), c.assets) {
			return c
		}
	}
}

// readSegments reads the files of a snapshot, and returns false if one was removed.
func (a api) readSegments(t *testing.T, segments []any, into map[string]string) bool {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, s := range segments {
		resp, err := http.Get(a.base + text(object(s)["path"]))
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusNotFound {
			return false
		}
		sum := sha256.Sum256(file)
		if got, want := hex.EncodeToString(sum[:]), text(object(s)["sha256"]); got != want {
			t.Fatalf("got a file with the hash %s and status %d, want %s", got, resp.StatusCode, want)
		}
		lines, err := decoder.DecodeAll(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(lines)) {
			keep(t, []byte(line), into)
		}
	}
	return true
}

// follow reads all assets after an offset.
func (a api) follow(t *testing.T, offset string, into map[string]string) {
	t.Helper()
	for {
		resp, err := http.Get(a.base + "/api/2.5/assets?mode=_all_&opt_fields=*&limit=1000&offset=" + url.QueryEscape(offset))
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Data []json.RawMessage
			Next struct{ Offset string } `json:"next_page"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("follow the feed: got %d, %v; want 200", resp.StatusCode, err)
		}
		if len(page.Data) == 0 {
			return
		}
		for _, asset := range page.Data {
			keep(t, asset, into)
		}
		offset = page.Next.Offset
	}
}

// keep keeps an asset as text.
func keep(t *testing.T, asset []byte, into map[string]string) {
	t.Helper()
	var shown map[string]json.RawMessage
	if err := json.Unmarshal(asset, &shown); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		fields = append(fields, name+"="+string(shown[name]))
	}
	into[strings.Trim(string(shown["id"]), `"`)] = strings.Join(fields, "\n")
}
