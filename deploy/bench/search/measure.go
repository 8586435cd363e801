package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/sleep"
)

// build starts the search service without an index, and waits until the service has built one.
func (b *bench) build(ctx context.Context, index string, s client.Snapshot) (*processes.Process, error) {
	begun := time.Now()
	service, err := processes.StartAny(ctx, b.addr, &b.output, filepath.Join(b.bin, "searchsvc"),
		"--addr", b.addr, "--of", "http://"+b.of, "--data", index,
		"--memory", strconv.FormatInt(b.budget, 10))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.within)
	defer cancel()
	for !isReady(ctx, b.addr) {
		if !sleep.For(ctx, 100*time.Millisecond) {
			return nil, errors.Join(fmt.Errorf("%w: the index is not ready", ctx.Err()), service.Kill())
		}
	}
	took := time.Since(begun)
	if err := b.memory(service.ID(), "while the index was built"); err != nil {
		return nil, err
	}
	size, err := settle(ctx, index)
	settled := time.Since(begun) - took
	fmt.Printf("index: %d assets in %.1f s, %.0f assets/s; ", s.Assets, took.Seconds(), float64(s.Assets)/took.Seconds())
	fmt.Printf("%.0f MiB, %.2f of the %.0f MiB of NDJSON; settled after %.0f s\n",
		mib(size), float64(size)/float64(s.UncompressedBytes), mib(s.UncompressedBytes), settled.Seconds())
	return service, err
}

func isReady(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func sizeOf(dir string) (sum int64, err error) {
	files, err := os.ReadDir(dir)
	for _, file := range files {
		if info, err := file.Info(); err == nil { // Info fails if a merge has removed the file
			sum += info.Size()
		}
	}
	return sum, err
}

// settle waits until the service has stopped merging files of the index. It assumes this when the size of the files
// has not changed for 10 seconds. It returns the size.
func settle(ctx context.Context, dir string) (size int64, err error) {
	for unchanged := 0; unchanged < 10; unchanged++ {
		now, err := sizeOf(dir)
		if err != nil {
			return 0, err
		}
		if now != size {
			size, unchanged = now, 0
		}
		if !sleep.For(ctx, time.Second) {
			return 0, fmt.Errorf("%w: the index still changes", ctx.Err())
		}
	}
	return size, nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// memory prints the memory of a process, which it reads from /proc (proc(5)).
func (b *bench) memory(pid int, when string) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	of := func(name string) float64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		var kib float64
		fmt.Sscan(rest, &kib)
		return kib / 1024
	}
	fmt.Printf("memory %s: at most %.0f MiB; now %.0f MiB, of which %.0f MiB are pages of files\n", when, of("VmHWM"),
		of("VmRSS"), of("RssFile"))
	return nil
}

// words are words that occur in the assets (assetsvc/internal/fill).
var words = strings.Fields(`нежитлових будівлі гаражі складу корпусами частиною підвали вхід площею вулиці районі
	комплексу ділянок обладнання верстати трактори котельні підприємств відділення фонду ремонту мережі`)

const facets = "&facets=status,classification,region,locality,custodian"

// question returns a random search: with one to three words, with filters, or for all assets.
func question(r *rand.Rand) string {
	var q []string
	for range r.IntN(4) {
		q = append(q, words[r.IntN(len(words))])
	}
	query := "q=" + url.QueryEscape(strings.Join(q, " "))
	switch r.IntN(5) {
	case 0:
		query += "&status=pending&classification=04"
	case 1:
		query += "&quantity_from=100&quantity_to=500"
	case 2:
		query += "&sort=-published&limit=50"
	}
	return query
}

// beginning returns the path of suggestions for a random question whose last word is begun.
func beginning(r *rand.Rand) string {
	last := []rune(words[r.IntN(len(words))])
	query := question(r)
	text, filters, _ := strings.Cut(strings.TrimPrefix(query, "q="), "&")
	if strings.Contains(filters, "sort=") {
		filters = ""
	}
	text = strings.TrimPrefix(text+"+", "+") + url.QueryEscape(string(last[:2+r.IntN(len(last)-2)]))
	return "/api/2.5/search/suggest?q=" + text + "&" + filters
}

// load runs searches, and then opens pages of the site. Meanwhile it publishes assets and measures when
// searches find them.
func (b *bench) load(ctx context.Context) error {
	found := make(chan []time.Duration, 1)
	go func() { found <- b.freshness(ctx) }()
	b.ask(ctx, "searches with five facets", func(r *rand.Rand) string { return "/api/2.5/search?" + question(r) + facets })
	b.ask(ctx, "suggestions", beginning)
	if err := b.open(ctx); err != nil {
		return err
	}
	fresh := <-found
	if len(fresh) == 0 {
		return fmt.Errorf("no new asset was found")
	}
	slices.Sort(fresh)
	fmt.Printf("changes: %d were found after their acknowledgement: p50 %.0f ms, most %.0f ms\n",
		len(fresh), at(fresh, 50), at(fresh, 100))
	return nil
}

// open opens one page of each kind on the site.
func (b *bench) open(ctx context.Context) error {
	search, err := client.New(client.Config{URL: "http://" + b.addr})
	if err != nil {
		return err
	}
	page, err := search.Search(ctx, url.Values{"limit": {"100"}})
	if err != nil {
		return err
	}
	if page.Total < int64(b.assets) {
		return fmt.Errorf("got %d assets in the index, want %d", page.Total, b.assets)
	}
	anyAsset := func(r *rand.Rand) string { return page.Assets[r.IntN(len(page.Assets))].ID }
	for _, kind := range []struct {
		name string
		path func(r *rand.Rand) string
	}{
		{"first pages of a search", func(r *rand.Rand) string { return "/uk/?" + question(r) }},
		{"second pages", func(*rand.Rand) string { return "/uk/?search_after=" + url.QueryEscape(page.Next) }},
		{"pages of assets", func(r *rand.Rand) string { return "/uk/assets/" + anyAsset(r) }},
		{"statistics of a search", func(r *rand.Rand) string { return "/uk/statistics?" + question(r) }},
		{"statistics of all assets", func(*rand.Rand) string { return "/uk/statistics" }},
	} {
		b.ask(ctx, kind.name, kind.path)
	}
	return nil
}

// ask requests random paths at a steady rate. A slow answer does not delay the next requests.
func (b *bench) ask(ctx context.Context, name string, path func(r *rand.Rand) string) {
	var mu sync.Mutex
	var times []time.Duration
	var failures []string
	var asking sync.WaitGroup
	r := rand.New(rand.NewPCG(1, 1))
	transport := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	tick := time.NewTicker(time.Second / time.Duration(b.rate))
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < b.lasts; {
		<-tick.C
		address := "http://" + b.addr + path(r)
		due := time.Now()
		asking.Go(func() {
			err := get(ctx, transport, address)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(due))
			if err != nil {
				failures = append(failures, err.Error())
			}
		})
	}
	asking.Wait()
	slices.Sort(times)
	fmt.Printf("%s: %d at %d a second; %d failed; p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, most %.1f ms\n",
		name, len(times), b.rate, len(failures), at(times, 50), at(times, 90), at(times, 99), at(times, 100))
	if len(failures) > 0 {
		fmt.Println("a failure:", failures[0])
	}
}

// The function `at` returns a percentile of a sorted list, in milliseconds.
func at(list []time.Duration, percent int) float64 {
	return float64(list[min(len(list)-1, len(list)*percent/100)].Microseconds()) / 1000
}

func get(ctx context.Context, c *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// freshness publishes an asset each second, and returns how long it took until a search found each asset.
func (b *bench) freshness(ctx context.Context) (times []time.Duration) {
	search, err := client.New(client.Config{URL: "http://" + b.addr})
	if err != nil {
		return nil
	}
	for begun := time.Now(); time.Since(begun) < b.lasts-2*time.Second; time.Sleep(time.Second) {
		id, err := b.publish(ctx, client.Fields{"title": "Новий об'єкт"})
		if err != nil {
			fmt.Println("publish:", err)
			return times
		}
		for done := time.Now(); time.Since(done) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
			if got, err := search.Search(ctx, url.Values{"q": {id}}); err == nil && got.Total == 1 {
				times = append(times, time.Since(done))
				break
			}
		}
	}
	return times
}
