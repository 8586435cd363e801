package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

// work is what clients do, and what came of it.
type work struct {
	fleet    *fleet
	balancer *upstream.Pool
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

func newWork(f *fleet) (*work, error) {
	balancer, err := upstream.New(upstream.Config{Name: "gateway", URLs: f.gateways, Log: slog.New(slog.DiscardHandler), Meter: new(telemetry.Telemetry).Meter()})
	if err != nil {
		return nil, err
	}
	return &work{fleet: f, balancer: balancer, outcomes: map[string]int{}}, nil
}

// run has clients work for a while, at a rate or, if that is 0, as fast as they can.
func (w *work) run(ctx context.Context, clients int, rate float64, during time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	turns := make(chan struct{}, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range turns {
				w.one(context.WithoutCancel(ctx))
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
				w.missed++
			}
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *work) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, count := range w.outcomes {
		n += count
	}
	return n
}

// one sends one request: 70 % read an asset, 12 % a page, 10 % change one, 8 % make one.
func (w *work) one(ctx context.Context) {
	var a *owned
	w.mu.Lock()
	if len(w.assets) > 0 {
		a = w.assets[rand.IntN(len(w.assets))]
	}
	w.mu.Unlock()
	switch dice := rand.IntN(100); {
	case a == nil || dice < 8:
		w.create(ctx)
	case dice < 18:
		w.change(ctx, a)
	case dice < 30:
		w.ask(ctx, "list", "GET", "/api/2.5/assets?mode=_all_&descending=1", "", "", http.StatusOK)
	default:
		w.ask(ctx, "read", "GET", "/api/2.5/assets/"+a.id, "", "", http.StatusOK)
	}
}

const creation = `{"data":{"assetType":"bounce","title":"0","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},"contactPoint":{"name":"x","telephone":"1"}}}}`

func (w *work) create(ctx context.Context) {
	text := w.ask(ctx, "create", "POST", "/api/2.5/assets", "", creation, http.StatusCreated)
	if text == nil {
		return
	}
	var made struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := json.Unmarshal(text, &made); err != nil || made.Data.ID == "" {
		w.violated(fmt.Sprintf("a creation was answered with %s", text))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.assets = append(w.assets, &owned{id: made.Data.ID, token: made.Access.Token})
}

func (w *work) change(ctx context.Context, a *owned) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := w.number.Add(1)
	a.asked = n
	if w.ask(ctx, "change", "PATCH", "/api/2.5/assets/"+a.id, a.token, fmt.Sprintf(`{"data":{"title":"%d"}}`, n), http.StatusOK) != nil {
		a.kept = n
	}
}

// ask sends a request and returns the answer if it was done.
func (w *work) ask(ctx context.Context, what, method, path, token, body string, want int) []byte {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	began := time.Now()
	status, retry, text, err := w.send(ctx, method, path, token, body)
	took := time.Since(began)
	outcome := fmt.Sprint(what, " ", status)
	if err != nil {
		outcome = what + " no answer"
	}
	allowed := w.fleet.troubled(began) && (err != nil || status == http.StatusServiceUnavailable && retry != "")
	w.mu.Lock()
	w.outcomes[outcome]++
	w.slowest = max(w.slowest, took)
	w.mu.Unlock()
	if err == nil && status == want {
		return text
	}
	if !allowed {
		w.violated(fmt.Sprintf("%s %s: %d %.200s, %v, after %v", method, path, status, text, err, took))
	}
	return nil
}

func (w *work) send(ctx context.Context, method, path, token, body string) (status int, retry string, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	if body == "" {
		r.Body = nil
	} else {
		r.SetBasicAuth("broker", "")
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("X-Access-Token", token)
	}
	resp, err := w.balancer.RoundTrip(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), text, err
}

const maxViolations = 20 // that are told

func (w *work) violated(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violations = append(w.violations, what); len(w.violations) <= maxViolations {
		fmt.Println("VIOLATION:", what)
	}
}

func (w *work) print() {
	for _, outcome := range slices.Sorted(maps.Keys(w.outcomes)) {
		fmt.Printf("%-20s %9d\n", outcome, w.outcomes[outcome])
	}
	fmt.Printf("%-20s %9d\n%-20s %9v\n", "not sent in time", w.missed, "slowest", w.slowest.Round(time.Millisecond))
}

func (w *work) verdict() error {
	if n := len(w.violations); n > 0 {
		return fmt.Errorf("%d requests were answered as they must not be", n)
	}
	return nil
}

// checkKept reads every asset, and holds that the last acknowledged change, or
// one that was asked for later, is there.
func (w *work) checkKept(ctx context.Context) error {
	var lost []error
	for _, a := range w.assets {
		status, _, text, err := w.send(ctx, "GET", "/api/2.5/assets/"+a.id, "", "")
		var read struct {
			Data struct {
				Title int64 `json:",string"`
			}
		}
		if err != nil || status != http.StatusOK || json.Unmarshal(text, &read) != nil || read.Data.Title < a.kept || read.Data.Title > a.asked {
			lost = append(lost, fmt.Errorf("asset %s, last acknowledged change %d, is %d %.200s, %v", a.id, a.kept, status, text, err))
		}
	}
	fmt.Printf("%d assets read back, %d not as acknowledged\n", len(w.assets), len(lost))
	return errors.Join(lost...)
}
