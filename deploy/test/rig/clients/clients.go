// Package clients generates a mixed load of brokers and readers on a registry. It checks every answer. At the end,
// it checks that no acknowledged write is lost.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/randtest"
)

// Clients sends load to one registry. New creates it.
type Clients struct {
	Key string // API key of a broker; New sets the key of the sandbox's broker

	base     string
	registry http.RoundTripper
	troubled func(since time.Time) bool
	number   atomic.Int64

	mu         sync.Mutex
	assets     []*owned
	outcomes   map[string]int // numbers of requests; the keys are kind and status
	slowest    time.Duration
	violations []string
	missed     int // number of requests that were not sent, because all clients were busy
}

// owned is an asset that a client has created.
type owned struct {
	mu        sync.Mutex // held during a change
	id, token string
	kept      int64 // number of the last acknowledged change; 0 for none
	asked     int64 // number of the last change that was sent
}

// New returns clients of the registry at base ("http://host:port"). They send requests through registry, a load
// balancer that must not repeat requests. The function `troubled` reports whether there was a fault at the given
// time or later. If there was a fault after a request began, the request is allowed to fail.
func New(base string, registry http.RoundTripper, troubled func(since time.Time) bool) *Clients {
	return &Clients{Key: "broker", base: base, registry: registry, troubled: troubled, outcomes: map[string]int{}}
}

// Run sends requests from several clients for the given duration. The parameter `rate` is the number of requests per
// second of all clients together; 0 means as many as possible.
func (c *Clients) Run(ctx context.Context, clients int, rate float64, during time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	turns := make(chan struct{}, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range turns {
				c.one(context.WithoutCancel(ctx))
			}
		})
	}
	defer all.Wait()
	defer close(turns)
	began, sent := time.Now(), 0
	for ctx.Err() == nil {
		if rate == 0 {
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
			}
			continue
		}
		for due := int(time.Since(began).Seconds() * rate); sent < due; sent++ {
			select {
			case turns <- struct{}{}:
			default:
				c.missed++
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// Total returns how many requests were sent so far.
func (c *Clients) Total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, count := range c.outcomes {
		n += count
	}
	return n
}

// The method `one` sends a random request: 70 % read an asset, 12 % read a page of the feed, 10 % change an asset, and
// 8 % create one.
func (c *Clients) one(ctx context.Context) {
	var a *owned
	c.mu.Lock()
	if len(c.assets) > 0 {
		a = c.assets[randtest.IntN(len(c.assets))]
	}
	c.mu.Unlock()
	switch dice := randtest.IntN(100); {
	case a == nil || dice < 8:
		c.create(ctx)
	case dice < 18:
		c.change(ctx, a)
	case dice < 30:
		c.ask(ctx, "list", "GET", "/api/2.5/assets?mode=_all_&descending=1", "", "", http.StatusOK)
	default:
		c.ask(ctx, "read", "GET", "/api/2.5/assets/"+a.id, "", "", http.StatusOK)
	}
}

// Creation is the body of a request that creates an asset.
const Creation = `{"data":{"assetType":"bounce","title":"0","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},
		"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},
		"contactPoint":{"name":"x","telephone":"1"}}}}`

func (c *Clients) create(ctx context.Context) {
	text := c.ask(ctx, "create", "POST", "/api/2.5/assets", "", Creation, http.StatusCreated)
	if text == nil {
		return
	}
	var made struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := json.Unmarshal(text, &made); err != nil || made.Data.ID == "" {
		c.Violated(fmt.Sprintf("a creation: got %s, want an asset with an id", text))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.assets = append(c.assets, &owned{id: made.Data.ID, token: made.Access.Token})
}

func (c *Clients) change(ctx context.Context, a *owned) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := c.number.Add(1)
	a.asked = n
	if c.ask(ctx, "change", "PATCH", "/api/2.5/assets/"+a.id, a.token,
		fmt.Sprintf(`{"data":{"title":"%d","status":"pending"}}`, n), http.StatusOK) != nil {
		a.kept = n
	}
}

// ask sends a request and counts its outcome. If the status equals the parameter `want`, it returns the body.
// Otherwise it returns nil, and records a violation unless a fault explains the outcome.
func (c *Clients) ask(ctx context.Context, what, method, path, token, body string, want int) []byte {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	began := time.Now()
	status, retry, text, err := c.send(ctx, method, path, token, body)
	took := time.Since(began)
	outcome := fmt.Sprint(what, " ", status)
	if err != nil {
		outcome = what + " no answer"
	}
	allowed := c.troubled(began) && (err != nil || status == http.StatusBadGateway ||
		status == http.StatusServiceUnavailable && retry != "")
	c.mu.Lock()
	c.outcomes[outcome]++
	c.slowest = max(c.slowest, took)
	c.mu.Unlock()
	if err == nil && status == want {
		return text
	}
	if !allowed {
		c.Violated(fmt.Sprintf("%s %s: got %d %.200s, %v after %v, want %d", method, path, status, text, err, took,
			want))
	}
	return nil
}

// send sends a request. It sends the key only if the request has a body.
func (c *Clients) send(ctx context.Context, method, path, token, body string) (status int, retry string, text []byte,
	err error) {
	key := c.Key
	if body == "" { // a read needs no key
		key = ""
	}
	status, header, text, err := Send(ctx, c.registry, Call{method, c.base + path, key, token, body})
	return status, header.Get("Retry-After"), text, err
}

// Call is a request to send. If Key, Token or Body is empty, the request is sent without it.
type Call struct{ Method, URL, Key, Token, Body string }

// Send sends a request through registry, and returns the status, the headers and the whole body of the answer.
func Send(ctx context.Context, registry http.RoundTripper, c Call) (status int, header http.Header, text []byte,
	err error) {
	var body io.Reader
	if c.Body != "" {
		body = strings.NewReader(c.Body)
	}
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, body)
	if err != nil {
		return 0, nil, nil, err
	}
	if c.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		r.SetBasicAuth(c.Key, "")
	}
	if c.Token != "" {
		r.Header.Set("X-Access-Token", c.Token)
	}
	resp, err := registry.RoundTrip(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}

const maxViolations = 20 // how many violations are printed; further ones are only counted

// Violated records a violation. The first maxViolations are also printed.
func (c *Clients) Violated(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.violations = append(c.violations, what); len(c.violations) <= maxViolations {
		fmt.Fprintln(os.Stderr, "VIOLATION:", what)
	}
}

// String returns a table of the outcomes of all requests.
func (c *Clients) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var table strings.Builder
	for _, outcome := range slices.Sorted(maps.Keys(c.outcomes)) {
		fmt.Fprintf(&table, "%-20s %9d\n", outcome, c.outcomes[outcome])
	}
	fmt.Fprintf(&table, "%-20s %9d\n%-20s %9v\n", "not sent in time", c.missed, "slowest",
		c.slowest.Round(time.Millisecond))
	return table.String()
}

// Err returns an error if a violation was recorded.
func (c *Clients) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.violations); n > 0 {
		return fmt.Errorf("%d violations, the first: %s", n, c.violations[0])
	}
	return nil
}

// CheckKept reads every asset. Call it after Run has returned and all faults have ended. It returns the number of
// assets, and an error for each lost write. An asset must have its last acknowledged change or a later change, and
// the feed must list each changed asset once.
func (c *Clients) CheckKept(ctx context.Context) (int, error) {
	registry, err := client.New(client.Config{URL: c.base, Transport: c.registry, Retry: client.Retry{Tries: 1}})
	if err != nil {
		return 0, err
	}
	fed, err := follow(ctx, registry)
	lost := []error{err}
	for _, a := range c.assets {
		got, err := registry.Get(ctx, a.id)
		if err != nil {
			lost = append(lost, fmt.Errorf("asset %s: %w", a.id, err))
			continue
		}
		if n, err := strconv.ParseInt(got.Title, 10, 64); err != nil || n < a.kept || n > a.asked {
			lost = append(lost, fmt.Errorf("asset %s: got the title %q, want change %d to %d", a.id, got.Title, a.kept,
				a.asked))
			continue
		}
		if a.kept == 0 && got.Status == client.Draft { // the feed lists no drafts
			continue
		}
		if seen := fed[a.id]; !slices.Equal(seen, []client.Timestamp{got.DateModified}) {
			lost = append(lost, fmt.Errorf("asset %s in the feed: got %q, want %s once", a.id, seen, got.DateModified))
		}
	}
	return len(c.assets), errors.Join(lost...)
}

// follow reads the whole feed. It returns all values of DateModified that the feed has for each asset. The keys are
// ids of assets.
func follow(ctx context.Context, registry *client.Client) (map[string][]client.Timestamp, error) {
	fed := map[string][]client.Timestamp{}
	for page, err := range registry.Pages(ctx, client.Feed{Mode: client.AllModes, Limit: 1000}) {
		if err != nil {
			return nil, fmt.Errorf("feed: %w", err)
		}
		for _, entry := range page.Assets {
			fed[entry.ID] = append(fed[entry.ID], entry.DateModified)
		}
	}
	return fed, nil
}
