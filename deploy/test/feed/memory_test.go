package feed

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/randtest"
)

var readsWanted = flag.Int64("reads", 30_000, "number of readings of a registry that answers from memory")

// fresh checks that no answer from memory is stale (docs/architecture.md, "Answers from memory"). Writers change a
// few assets, and readers read them through any gateway. Each answer must have every change that was acknowledged,
// or shown to any reader, before the read began.
type fresh struct {
	services *services
	assets   []freshAsset

	reads, failed, changes atomic.Int64
	mu                     sync.Mutex
	stale                  []string
}

type freshAsset struct {
	id, token string
	newest    atomic.Int64 // the newest position that was acknowledged or shown
}

// newFresh creates the assets.
func newFresh(t *testing.T, s *services, count int) *fresh {
	f := &fresh{services: s, assets: make([]freshAsset, count)}
	for i := range f.assets {
		var got struct {
			Data   struct{ ID string }
			Access struct{ Token string }
		}
		for end := time.Now().Add(time.Minute); got.Data.ID == ""; {
			s.call(t.Context(), "POST", "/api/2.5/assets", "", map[string]any{"data": asset("new", "")}, &got)
			if time.Now().After(end) {
				t.Fatal("got no new asset within a minute, want one")
			}
		}
		f.assets[i].id, f.assets[i].token = got.Data.ID, got.Access.Token
	}
	return f
}

// run makes at least as many reads as the argument `reads` says. Meanwhile, there must be at least one change for
// every thousand reads.
func (f *fresh) run(ctx context.Context, readers, writers int, reads int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f.change(ctx, n)
				time.Sleep(randtest.N(200 * time.Millisecond))
			}
		})
	}
	for range readers {
		all.Go(func() {
			for (f.reads.Load() < reads || f.changes.Load() < reads/1000) && ctx.Err() == nil {
				f.read(ctx)
			}
			cancel()
		})
	}
	all.Wait()
}

// change changes an asset.
func (f *fresh) change(ctx context.Context, n int) {
	a := &f.assets[randtest.IntN(len(f.assets))]
	var got struct {
		Data struct{ DateModified time.Time }
	}
	status := f.services.call(ctx, "PATCH", "/api/2.5/assets/"+a.id, a.token,
		map[string]any{"data": map[string]any{"description": strconv.Itoa(n)}}, &got)
	if status == http.StatusOK {
		raise(&a.newest, got.Data.DateModified.UnixMicro())
		f.changes.Add(1)
	}
}

// read reads an asset through a gateway.
func (f *fresh) read(ctx context.Context) {
	a := &f.assets[randtest.IntN(len(f.assets))]
	want := a.newest.Load()
	edge := f.services.edges[randtest.IntN(len(f.services.edges))]
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, edge+"/api/2.5/assets/"+a.id, nil)
	if err != nil {
		panic(err) // the test itself is wrong
	}
	resp, err := f.services.client.Do(req)
	if err != nil {
		f.failed.Add(1)
		time.Sleep(leastPause)
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		f.failed.Add(1)
		time.Sleep(leastPause)
		return
	}
	f.reads.Add(1)
	digits, _, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("ETag"), `"`), "-")
	got, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || got < want {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stale = append(f.stale, fmt.Sprintf("%s of %s: got position %d, %v, want at least %d", a.id, edge, got, err, want))
		return
	}
	raise(&a.newest, got)
}

// raise stores the given value in *a, unless *a is larger already.
func raise(a *atomic.Int64, value int64) {
	for old := a.Load(); old < value && !a.CompareAndSwap(old, value); old = a.Load() {
	}
}

// startOne starts a registry that runs in one process and answers from memory. It returns the address of its
// metrics.
func (f *fleet) startOne(t *testing.T) (metrics string) {
	t.Helper()
	addr, metrics := freeAddr(t), freeAddr(t)
	f.services = append(f.services, f.begin(t, &service{name: "registry", addr: addr, args: []string{"serve", "--sandbox",
		"--no-limits", "--addr", addr, "--metrics-addr", metrics, "--data", filepath.Join(f.dir, "data"),
		"--log-level", "warn"}}))
	return metrics
}

// hits returns how many reads were answered from memory since the registry started.
func hits(t *testing.T, metrics string) int64 {
	t.Helper()
	resp, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "registry_answers_lookups") && strings.Contains(line, `result="hit"`) {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:len(line)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(value)
		}
	}
	return 0
}

// TestReadingsFromMemoryAreFresh reads from a registry in one process, which answers from memory. Meanwhile, the
// registry is killed, stopped and frozen. No answer may be stale.
func TestReadingsFromMemoryAreFresh(t *testing.T) {
	fleet := &fleet{bin: build(t), dir: t.TempDir()}
	metrics := fleet.startOne(t)
	all := urls(fleet.services)
	f := newFresh(t, &services{bases: all, edges: all, key: "broker", client: client()}, 8)
	for end := time.Now().Add(time.Minute); hits(t, metrics) < 1000; {
		f.run(t.Context(), 16, 4, f.reads.Load()+1000)
		if time.Now().After(end) {
			t.Fatalf("got %d of %d answers from memory within a minute without faults, want 1,000",
				hits(t, metrics), f.reads.Load())
		}
	}
	faulty, endFaults := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	chaos := chaos{}
	go func() { ended <- fleet.breakServices(faulty, &chaos) }()
	f.run(t.Context(), 16, 4, *readsWanted)
	endFaults()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Logf("%d readings, %d from memory since the last restart, %d failed, %d changes, %+v",
		f.reads.Load(), hits(t, metrics), f.failed.Load(), f.changes.Load(), chaos)
	for _, text := range f.stale[:min(10, len(f.stale))] {
		t.Error(text)
	}
}

// TestStaleReadingsAreFound reads through a naive cache that keeps answers for a second. The checker must find
// stale answers.
func TestStaleReadingsAreFound(t *testing.T) {
	fleet := &fleet{bin: build(t), store: "file:" + filepath.Join(t.TempDir(), "assets.db"), dir: t.TempDir()}
	fleet.start(t, 1)
	s := &services{bases: urls(fleet.services), signer: signer(t), client: client()}
	var mu sync.Mutex
	tags := map[string]string{}
	cache := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if tags[r.URL.Path] == "" {
			resp, err := http.Get("http://" + fleet.edges[0].addr + r.URL.Path)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			resp.Body.Close()
			tags[r.URL.Path] = resp.Header.Get("ETag")
			time.AfterFunc(time.Second, func() {
				mu.Lock()
				defer mu.Unlock()
				delete(tags, r.URL.Path)
			})
		}
		w.Header().Set("ETag", tags[r.URL.Path])
	}))
	defer cache.Close()
	s.edges = []string{cache.URL}
	f := newFresh(t, s, 2)
	for reads := int64(2000); len(f.stale) == 0 && reads <= 100_000; reads += 2000 {
		f.run(t.Context(), 4, 2, reads)
	}
	if len(f.stale) == 0 {
		t.Errorf("got no stale readings of %d through a naive cache, want some", f.reads.Load())
	}
}
