// Package attack tests a registry under attack by hostile clients, which ask for as many bytes as possible or read
// them slowly. The registry must stay below a memory limit, and must continue to serve other clients.
package attack

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"asset-registry/shared/sleep"
)

// Registry is the registry under attack. It has the sandbox keys and no rate limits.
type Registry struct {
	addr   string // host:port
	client *http.Client

	small string   // id of a small asset
	large []*asset // each has nearly 4 MiB
}

type asset struct{ id, token string }

// At returns the registry at addr, "host:port".
func At(addr string) *Registry {
	return &Registry{addr: addr, client: &http.Client{
		Timeout:   2 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}}
}

const creation = `{"data":{"assetType":"bounce","title":"x","description":"%s",
"items":[{"description":"x","classification":{"scheme":"CAV-PS","id":"04121000-2","description":"x"},
"unit":{"code":"MTK"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{"status":"unknown"}}],
"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1"}],
"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"x"},
"contactPoint":{"name":"x","telephone":"1"}}}}`

// megabyte is a description of nearly the largest size that a request may have. A description may have at most
// 250,000 characters. To reach the size, megabyte consists of characters of four bytes.
var megabyte = strings.Repeat("𐍈", 980_000/4)

// largeItem is the body of a request that replaces an asset's item by an item with the text in the variable
// megabyte.
var largeItem = `{"data":{"items":[{"description":"` + megabyte + `",
"classification":{"scheme":"CAV-PS","id":"04121000-2","description":"x"},
"unit":{"code":"MTK"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{"status":"unknown"}}]}}`

// Fill publishes one small asset. It also publishes the given numbers of medium assets (nearly 1 MB each) and of
// large assets (nearly 4 MiB each).
func (r *Registry) Fill(ctx context.Context, medium, large int) error {
	a, err := r.publish(ctx, "small")
	if err != nil {
		return err
	}
	r.small = a.id
	for range medium {
		if _, err := r.publish(ctx, megabyte[:900_000]); err != nil {
			return err
		}
	}
	for range large {
		a, err := r.publish(ctx, megabyte)
		if err != nil {
			return err
		}
		for _, field := range []string{"description_en", "description_ru"} {
			if err := r.change(ctx, a, field, megabyte); err != nil {
				return err
			}
		}
		if err := r.patch(ctx, a, largeItem); err != nil {
			return err
		}
		r.large = append(r.large, a)
	}
	return nil
}

func (r *Registry) publish(ctx context.Context, description string) (*asset, error) {
	text, err := r.write(ctx, http.MethodPost, "/api/2.5/assets", "", fmt.Sprintf(creation, description))
	if err != nil {
		return nil, err
	}
	var created struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := json.Unmarshal(text, &created); err != nil {
		return nil, fmt.Errorf("decode the new asset: %w", err)
	}
	a := &asset{created.Data.ID, created.Access.Token}
	return a, r.change(ctx, a, "status", "pending")
}

func (r *Registry) change(ctx context.Context, a *asset, field, value string) error {
	return r.patch(ctx, a, fmt.Sprintf(`{"data":{%q:"%s"}}`, field, value))
}

func (r *Registry) patch(ctx context.Context, a *asset, body string) error {
	_, err := r.write(ctx, http.MethodPatch, "/api/2.5/assets/"+a.id, a.token, body)
	return err
}

// errRefused means an answer of 503 with Retry-After.
var errRefused = errors.New("got 503 with Retry-After")

func (r *Registry) write(ctx context.Context, method, path, token, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("broker", "")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Access-Token", token)
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return nil, errRefused
	case resp.StatusCode >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s %s: got %d %s", method, path, resp.StatusCode, text[:min(len(text), 200)])
	}
	return text, nil
}

// Outcome counts the results of an attack's requests.
type Outcome struct {
	answered, refused, cut, wrong atomic.Int64
	bytes                         atomic.Int64
	why                           atomic.Pointer[error] // error of the first wrong request, if it is known
}

// fail counts a wrong request, and keeps the error of the first one.
func (o *Outcome) fail(why error) {
	o.wrong.Add(1)
	o.why.CompareAndSwap(nil, &why)
}

func (o *Outcome) String() string {
	text := fmt.Sprintf("%d answered with %d MB, %d refused, %d cut off, %d wrong",
		o.answered.Load(), o.bytes.Load()/1_000_000, o.refused.Load(), o.cut.Load(), o.wrong.Load())
	if why := o.why.Load(); why != nil {
		text += fmt.Sprintf("; the first: %v", *why)
	}
	return text
}

// Wrong returns the number of wrong requests. A request is right if it got a complete answer or a 503 with
// Retry-After, or if the registry closed its connection because the client was slow.
func (o *Outcome) Wrong() int64 { return o.wrong.Load() }

// Cut returns the number of connections that were closed before the answer was complete.
func (o *Outcome) Cut() int64 { return o.cut.Load() }

// Answered returns the number of complete answers.
func (o *Outcome) Answered() int64 { return o.answered.Load() }

// Read lets clients read a path as fast as they can until ctx is done. The parameter `encoding` is the value of the
// header Accept-Encoding. If it is "", the header is not sent.
func (r *Registry) Read(ctx context.Context, clients int, encoding, path string) *Outcome {
	var o Outcome
	crowd(clients, func(int) {
		for ctx.Err() == nil {
			r.read(ctx, &o, encoding, path)
		}
	})
	return &o
}

func (r *Registry) read(ctx context.Context, o *Outcome, encoding, path string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr+path, nil)
	if err != nil {
		o.wrong.Add(1)
		return
	}
	if encoding != "" {
		req.Header.Set("Accept-Encoding", encoding)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			o.wrong.Add(1)
		}
		return
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	o.bytes.Add(n)
	switch {
	case ctx.Err() != nil:
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		o.refused.Add(1)
	case resp.StatusCode != http.StatusOK:
		o.wrong.Add(1)
	case err != nil:
		o.cut.Add(1)
	default:
		o.answered.Add(1)
	}
}

// ReadSlowly lets clients read a path at one KiB per second, until ctx is done or the registry closes their
// connections. The parameter `header` is an additional header line.
func (r *Registry) ReadSlowly(ctx context.Context, clients int, header, path string) *Outcome {
	var o Outcome
	crowd(clients, func(int) {
		if err := r.readSlowly(ctx, &o, header, path); err != nil && ctx.Err() == nil {
			o.cut.Add(1)
		}
	})
	return &o
}

func (r *Registry) readSlowly(ctx context.Context, o *Outcome, header, path string) error {
	// The receive buffer must be made small before the connection is set up, because the handshake announces its
	// size.
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
	}}
	conn, err := dialer.DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: registry\r\n%s\r\n", path, header); err != nil {
		return err
	}
	part := make([]byte, 1<<10)
	for first := true; ; first = false {
		n, err := conn.Read(part)
		if err != nil {
			return err
		}
		if first && bytes.HasPrefix(part[:n], []byte("HTTP/1.1 503 ")) {
			o.refused.Add(1)
			return nil
		}
		o.bytes.Add(int64(n))
		if !sleep.For(ctx, time.Second) {
			return nil
		}
	}
}

// Write lets clients change large assets until ctx is done.
func (r *Registry) Write(ctx context.Context, clients int) *Outcome {
	var o Outcome
	crowd(clients, func(i int) {
		for n := 0; ctx.Err() == nil; n++ {
			err := r.change(ctx, r.large[i%len(r.large)], "title_en", fmt.Sprint(i, n))
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, errRefused):
				o.refused.Add(1)
			case err != nil:
				o.wrong.Add(1)
			default:
				o.answered.Add(1)
			}
		}
	})
	return &o
}

// LargePath returns the path of a large asset in an API version. The parameter n chooses the asset.
func (r *Registry) LargePath(version string, n int) string {
	return "/api/" + version + "/assets/" + r.large[n%len(r.large)].id
}

// crowd calls a function n times at the same time, with the numbers from 0 to n-1, and waits until all calls have
// returned.
func crowd(n int, each func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { each(i) })
	}
	all.Wait()
}

// Witness is an honest client that reads a small asset during an attack.
type Witness struct {
	mu     sync.Mutex
	took   []time.Duration // how long each successful read took
	failed map[string]int  // numbers of failed reads; the keys are the reasons
}

// Watch starts a witness that reads perSecond times per second until ctx is done.
func (r *Registry) Watch(ctx context.Context, perSecond int) *Witness {
	w := &Witness{failed: map[string]int{}}
	auth := "Basic " + base64.StdEncoding.EncodeToString([]byte("broker:"))
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return w
		case <-tick.C:
			all.Go(func() { w.read(ctx, r, auth) })
		}
	}
}

func (w *Witness) read(ctx context.Context, r *Registry, auth string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr+"/api/2.5/assets/"+r.small, nil)
	if err != nil {
		w.note(0, err.Error())
		return
	}
	req.Header.Set("Authorization", auth)
	began := time.Now()
	resp, err := r.client.Do(req)
	if err != nil {
		w.note(0, err.Error())
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.note(0, fmt.Sprint(resp.StatusCode, " ", err, " ", errorText(text)))
		return
	}
	w.note(time.Since(began), "")
}

// errorText returns the description in an error answer, or "".
func errorText(answer []byte) string {
	var body struct{ Errors []struct{ Description any } }
	if json.Unmarshal(answer, &body) != nil || len(body.Errors) == 0 {
		return ""
	}
	return fmt.Sprint(body.Errors[0].Description)
}

func (w *Witness) note(took time.Duration, failed string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if failed != "" {
		w.failed[failed]++
		return
	}
	w.took = append(w.took, took)
}

// Share returns the share of reads, from 0 to 1, that got their answer within the given time.
func (w *Witness) Share(within time.Duration) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, good := len(w.took), 0
	for _, n := range w.failed {
		all += n
	}
	for _, took := range w.took {
		if took <= within {
			good++
		}
	}
	return float64(good) / float64(max(all, 1))
}

func (w *Witness) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) == 0 {
		return fmt.Sprintf("no read succeeded; failed: %v", w.failed)
	}
	slices.Sort(w.took)
	return fmt.Sprintf("%d small reads: median %v, 99th percentile %v, slowest %v; failed: %v",
		len(w.took), w.took[len(w.took)/2].Round(time.Microsecond), w.took[len(w.took)*99/100].Round(time.Microsecond),
		w.took[len(w.took)-1].Round(time.Microsecond), w.failed)
}
