package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
)

const (
	attacks = 30 // requests a second of one address
	repeats = 5  // requests for one figure of cost
)

// dear measures the cost of the dearest requests of each route, and how long another address waits while one address
// sends the dearest of them 30 times a second (docs/contributing.md, "Costs of requests").
func (b *bench) dear(ctx context.Context, bin string) error {
	r, err := b.startDear(ctx, bin)
	if err != nil {
		return err
	}
	defer func() { _ = r.process.Kill() }() // the data are removed afterwards
	if err := r.costs(ctx); err != nil {
		return err
	}
	fmt.Printf("\none address, %d a second        answers  503   others: reads p50, p99, failed   searches\n", attacks)
	for _, path := range []string{
		"", r.rare(), r.wholePage() + "&opt_jsonp=x", "/uk/statistics?q=" + manyWords(), r.large + "/items",
	} {
		if err := r.attack(ctx, path, 5*b.during); err != nil {
			return err
		}
	}
	return nil
}

// costly is a registry with assets that differ, and with a large one.
type costly struct {
	process     *processes.Process
	url         string
	asset       string // path of an asset
	large, part string // paths of a large asset, and of one of its items
}

func (b *bench) startDear(ctx context.Context, bin string) (r costly, err error) {
	addr, err := porttest.FreeAddr()
	if err != nil {
		return r, err
	}
	r.url = "http://" + addr
	data, silent := filepath.Join(b.dir, "dear"), &processes.Output{Also: io.Discard}
	start := func() (err error) {
		r.process, err = processes.Standalone(ctx, bin, addr, data, silent, "--search", "--log-level", "error",
			"--max-body", "4194304")
		return err
	}
	if err := start(); err != nil {
		return r, err
	}
	made, err := fill(addr, 1)
	if err != nil {
		return r, err
	}
	r.asset = "/api/2.5/assets/" + made[0].id
	example, err := get(r.url + r.asset)
	if err != nil {
		return r, err
	}
	if err := r.process.Stop(); err != nil {
		return r, err
	}
	like := filepath.Join(b.dir, "example.json")
	if err := os.WriteFile(like, example, 0o600); err != nil {
		return r, err
	}
	fill := exec.CommandContext(ctx, filepath.Join(bin, "bench-fill"), "-file", filepath.Join(data, "assets.db"),
		"-like", like, "-assets", strconv.Itoa(b.assets))
	if out, err := fill.CombinedOutput(); err != nil {
		return r, fmt.Errorf("%w: %s", err, out)
	}
	if err := start(); err != nil {
		return r, err
	}
	if err := r.makeLarge(addr); err != nil {
		return r, err
	}
	return r, r.awaitSearch(ctx, b.assets)
}

// makeLarge creates an asset whose items take most of a body, and publishes it.
func (r *costly) makeLarge(addr string) error {
	made, err := fill(addr, 1)
	if err != nil {
		return err
	}
	r.large = "/api/2.5/assets/" + made[0].id
	text, err := get(r.url + r.large)
	if err != nil {
		return err
	}
	var asset struct {
		Data struct{ Items []map[string]any }
	}
	if err := json.Unmarshal(text, &asset); err != nil {
		return err
	}
	item := asset.Data.Items[0]
	delete(item, "id")
	item["description"] = strings.Repeat("опис ", 300)
	body, err := json.Marshal(map[string]any{"data": map[string]any{"items": slices.Repeat([]any{item}, 800)}})
	if err != nil {
		return err
	}
	change := request(http.MethodPatch, r.url+r.large, body)
	change.Header.Set("X-Access-Token", made[0].token)
	resp, err := http.DefaultClient.Do(change)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&asset); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("make a large asset: status %d: %w", resp.StatusCode, err)
	}
	r.part = fmt.Sprintf("%s/items/%s", r.large, asset.Data.Items[0]["id"])
	return nil
}

// awaitSearch waits until the search has all assets.
func (r *costly) awaitSearch(ctx context.Context, assets int) error {
	for ctx.Err() == nil {
		text, err := get(r.url + "/api/2.5/search?limit=1")
		var found struct{ Total int }
		if err == nil && json.Unmarshal(text, &found) == nil && found.Total >= assets {
			return nil
		}
		time.Sleep(time.Second)
	}
	return ctx.Err()
}

// manyWords returns a question of 14 words of 40 letters that no asset has, so that each second try is made.
func manyWords() string {
	var words []string
	for n := range 14 {
		words = append(words, strings.Repeat(string([]rune("щюєїґжшфхчцзйь")[n]), 20)+strings.Repeat("аовинтерсл", 2))
	}
	return url.QueryEscape(strings.Join(words, " "))
}

func (r *costly) rare() string      { return "/api/2.5/search?q=" + manyWords() }
func (r *costly) wholePage() string { return "/api/2.5/assets?opt_fields=*&limit=1000" }

// costs prints what a request of each kind costs: processor time of the registry, and bytes before compression.
func (r *costly) costs(ctx context.Context) error {
	fmt.Printf("\ncosts of requests                                 processor, ms      KB\n")
	const facets = "&facets=region,classification,custodian,status,month&facet_limit=100"
	for _, c := range []struct{ name, path string }{
		{"an asset", r.asset},
		{"a large asset", r.large},
		{"a large asset, indented, as a script", r.large + "?opt_pretty=1&opt_jsonp=x"},
		{"its items", r.large + "/items"},
		{"one of its items", r.part},
		{"a page of 1,000 ids", "/api/2.5/assets?limit=1000"},
		{"a page of 1,000 assets", r.wholePage()},
		{"the same, as a script", r.wholePage() + "&opt_jsonp=x"},
		{"a proof", r.large + "/proof"},
		{"entries of the log", "/log/tile/entries/000"},
		{"the snapshot's manifest", "/api/2.5/snapshot"},
		{"a search without words", "/api/2.5/search?limit=100" + facets},
		{"a search for a usual word", "/api/2.5/search?limit=100&q=" + url.QueryEscape("будівлі") + facets},
		{"a search with all second tries", r.rare() + facets},
		{"suggestions", "/api/2.5/search/suggest?q=" + url.QueryEscape("к")},
		{"dictionaries", "/api/2.5/dictionaries"},
		{"an export of 10,000 rows", "/api/2.5/search.xlsx"},
		{"the search page", "/uk/?rows=100"},
		{"the search page, all second tries", "/uk/?q=" + manyWords()},
		{"statistics of a search", "/uk/statistics?q=" + manyWords()},
		{"Atom", "/uk/feed.atom"},
		{"the page of an asset", strings.Replace(r.asset, "/api/2.5", "/uk", 1)},
		{"the page of a large asset", strings.Replace(r.large, "/api/2.5", "/uk", 1)},
		{"a part of the sitemap", "/sitemap/0"},
		{"the documentation", "/docs"},
		{"the OpenAPI document", "/api/2.5/openapi.json"},
	} {
		times := repeats
		if strings.HasSuffix(c.path, "xlsx") {
			times = 1
		}
		before, err := processorTime(r.process.ID())
		if err != nil {
			return err
		}
		var bytes int64
		for range times {
			if _, bytes, err = ask(ctx, http.DefaultClient, r.url+c.path); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		after, err := processorTime(r.process.ID())
		if err != nil {
			return err
		}
		fmt.Printf("%-46s %14.0f %7.0f\n", c.name, float64((after-before).Milliseconds())/float64(times), float64(bytes)/1000)
	}
	return nil
}

// processorTime returns the processor time that a process has used.
func processorTime(pid int) (used time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, ticks := range fields[11:13] { // of the process, and of the kernel for it
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the processor time: %w", err)
		}
		used += time.Duration(n) * time.Second / 100
	}
	return used, nil
}

// ask sends a GET request, and reads the whole answer.
func ask(ctx context.Context, by *http.Client, at string) (status int, bytes int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, 0, err
	}
	resp, err := by.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	bytes, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, bytes, err
}

// asked is what became of requests of one kind.
type asked struct {
	mu     sync.Mutex
	times  []time.Duration // of requests with the status 200
	failed int
}

func (a *asked) send(ctx context.Context, by *http.Client, at string) {
	begun := time.Now()
	status, _, err := ask(ctx, by, at)
	if errors.Is(err, context.Canceled) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil || status != http.StatusOK {
		a.failed++
		return
	}
	a.times = append(a.times, time.Since(begun))
}

// String returns the percentiles 50 and 99, and the number of requests that failed.
func (a *asked) String() string {
	if len(a.times) == 0 {
		return fmt.Sprintf("no answer, %d", a.failed)
	}
	slices.Sort(a.times)
	at := func(percent int) time.Duration {
		return a.times[len(a.times)*percent/100].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%v, %v, %d", at(50), at(99), a.failed)
}

// packed asks for compressed answers. It leaves them compressed, so that the measurement takes no processor for them.
type packed struct{ *http.Transport }

func (p packed) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Accept-Encoding", "gzip")
	return p.Transport.RoundTrip(r)
}

// from returns a client whose requests come from an address of this machine.
func from(address string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: packed{&http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 100}}}
}

// attack sends requests for a path from one address, and reads and searches from another one. It prints the outcome.
func (r *costly) attack(ctx context.Context, path string, during time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attacker, others := from("127.0.0.1"), from("127.0.0.2")
	var running sync.WaitGroup
	repeat := func(to *asked, by *http.Client, at string, aSecond int) {
		running.Go(func() {
			ticker := time.NewTicker(time.Second / time.Duration(aSecond))
			defer ticker.Stop()
			for ctx.Err() == nil {
				running.Go(func() { to.send(ctx, by, at) })
				<-ticker.C
			}
		})
	}
	var attack, reads, searches asked
	if path != "" {
		repeat(&attack, attacker, r.url+path, attacks)
	}
	repeat(&reads, others, r.url+r.asset, 20)
	repeat(&searches, others, r.url+"/api/2.5/search?q="+url.QueryEscape("будівлі"), 10)
	select {
	case <-ctx.Done():
	case <-time.After(during):
	}
	cancel()
	running.Wait()
	name, _, _ := strings.Cut(path, "%")
	fmt.Printf("%-32.32s %6d %5d   %-30s %s\n", name, len(attack.times), attack.failed, &reads, &searches)
	return nil
}
