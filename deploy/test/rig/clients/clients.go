// Package clients is brokers and readers who keep a registry busy, and hold it
// to what it has answered.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Clients are clients of one registry that has the sandbox keys. Make them with
// New.
type Clients struct {
	base     string
	registry http.RoundTripper
	troubled func(since time.Time) bool
	number   atomic.Int64

	mu         sync.Mutex
	assets     []*owned
	outcomes   map[string]int
	slowest    time.Duration
	violations []string
	missed     int // requests that nobody was free to send
}

// owned is an asset that a client has made.
type owned struct {
	mu        sync.Mutex // one change at a time
	id, token string
	kept      int64 // the last acknowledged change
	asked     int64 // the last that was asked for
}

// New returns clients of the registry at base ("http://host:port"), which is
// reached by way of a balancer that repeats nothing which was sent. While
// troubled tells that something has been broken since a request was sent, it
// need not be answered, or may be refused for a while.
func New(base string, registry http.RoundTripper, troubled func(since time.Time) bool) *Clients {
	return &Clients{base: base, registry: registry, troubled: troubled, outcomes: map[string]int{}}
}

// Run has so many of them work for a while, at a rate or, if that is 0, as fast as they can.
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

// Total is how many requests were sent.
func (c *Clients) Total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, count := range c.outcomes {
		n += count
	}
	return n
}

// one sends one request: 70 % read an asset, 12 % a page, 10 % change one, 8 % make one.
func (c *Clients) one(ctx context.Context) {
	var a *owned
	c.mu.Lock()
	if len(c.assets) > 0 {
		a = c.assets[rand.IntN(len(c.assets))]
	}
	c.mu.Unlock()
	switch dice := rand.IntN(100); {
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

// Creation is the body of a request that makes an asset.
const Creation = `{"data":{"assetType":"bounce","title":"0","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},"contactPoint":{"name":"x","telephone":"1"}}}}`

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
		c.Violated(fmt.Sprintf("a creation was answered with %s", text))
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

// ask sends a request and returns the answer if it was done.
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
		c.Violated(fmt.Sprintf("%s %s: %d %.200s, %v, after %v", method, path, status, text, err, took))
	}
	return nil
}

func (c *Clients) send(ctx context.Context, method, path, token, body string) (status int, retry string, text []byte,
	err error) {
	key := "broker"
	if body == "" { // anybody reads
		key = ""
	}
	status, header, text, err := Send(ctx, c.registry, Call{method, c.base + path, key, token, body})
	return status, header.Get("Retry-After"), text, err
}

// Call is a request in the making. Key, Token and Body may be empty: then it has
// none.
type Call struct{ Method, URL, Key, Token, Body string }

// Send sends a request by way of registry and returns all of the answer.
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

const maxViolations = 20 // that are told

// Violated notes something that must not be.
func (c *Clients) Violated(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.violations = append(c.violations, what); len(c.violations) <= maxViolations {
		fmt.Fprintln(os.Stderr, "VIOLATION:", what)
	}
}

// String is a table of what came of all requests.
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

// Err tells whether all requests were answered as they may be.
func (c *Clients) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.violations); n > 0 {
		return fmt.Errorf("%d requests were answered as they must not be, the first: %s", n, c.violations[0])
	}
	return nil
}

// CheckKept reads every asset when all is well and nothing changes any more:
// the last acknowledged change, or one that was asked for later, is there, and
// the feed has every changed asset once, as it is. It returns how many there are.
func (c *Clients) CheckKept(ctx context.Context) (int, error) {
	fed, err := c.follow(ctx)
	lost := []error{err}
	for _, a := range c.assets {
		status, _, text, err := c.send(ctx, http.MethodGet, "/api/2.5/assets/"+a.id, "", "")
		var read struct {
			Data struct {
				Title        int64 `json:",string"`
				Status       string
				DateModified string
			}
		}
		if err != nil || status != http.StatusOK || json.Unmarshal(text, &read) != nil || read.Data.Title < a.kept ||
			read.Data.Title > a.asked {
			lost = append(lost, fmt.Errorf("asset %s, last acknowledged change %d, is %d %.200s, %v", a.id, a.kept,
				status, text, err))
			continue
		}
		if a.kept == 0 && read.Data.Status == "draft" { // which the feed does not show
			continue
		}
		if seen := fed[a.id]; !slices.Equal(seen, []string{read.Data.DateModified}) {
			lost = append(lost, fmt.Errorf("asset %s of %s is in the feed as of %q", a.id, read.Data.DateModified,
				seen))
		}
	}
	return len(c.assets), errors.Join(lost...)
}

// follow returns what the feed says of each asset: when it was changed.
func (c *Clients) follow(ctx context.Context) (map[string][]string, error) {
	fed := map[string][]string{}
	for path := "/api/2.5/assets?mode=_all_&limit=1000"; ; {
		status, _, text, err := c.send(ctx, http.MethodGet, path, "", "")
		if err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("the feed at %s: %d %.200s, %v", path, status, text, err)
		}
		var page struct {
			Data     []struct{ ID, DateModified string }
			NextPage struct{ Path string } `json:"next_page"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, err
		}
		if len(page.Data) == 0 {
			return fed, nil
		}
		for _, entry := range page.Data {
			fed[entry.ID] = append(fed[entry.ID], entry.DateModified)
		}
		path = page.NextPage.Path
	}
}
