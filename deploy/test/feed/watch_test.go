package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// watch checks each answer of the gateways. During faults a client may get a success, or a 503 that says when to try
// again. Besides these it may get a 4xx for a request that deserves it. A primary that was voted out and does not know
// it has no new assets (docs/architecture.md, "Failures"), so an asset may be a 404 until the faults end. The option
// --fresh-reads would prevent that, but the server 4.8 ends when it steps down during such a read (its error 4728700).
type watch struct {
	report   *report
	calm     atomic.Bool // true after the faults have ended
	statuses map[int]int // numbers of answers; guarded by report.mu
}

// watching is a transport whose answers a watch checks.
type watching struct {
	*watch
	http.RoundTripper
}

// watched returns the transport, watched if the services are.
func (s *services) watched(transport http.RoundTripper) http.RoundTripper {
	if s.watch == nil {
		return transport
	}
	return watching{s.watch, transport}
}

// RoundTrip sends a request, and checks the status of its answer. A request that the test ended itself is no failure.
func (w watching) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		if !errors.Is(r.Context().Err(), context.Canceled) {
			w.report.violation(&w.report.other, "%s %s: got no answer: %v, want one", r.Method, r.URL, err)
		}
		return nil, err
	}
	w.report.mu.Lock()
	w.statuses[resp.StatusCode]++
	w.report.mu.Unlock()
	deserved := resp.StatusCode == http.StatusNotFound && (strings.HasPrefix(r.URL.Path, "/log/") || !w.calm.Load()) ||
		resp.StatusCode == http.StatusConflict && r.Method == http.MethodPatch
	again := resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != ""
	if resp.StatusCode >= 300 && !again && !deserved {
		text, _ := io.ReadAll(resp.Body) // its beginning is enough
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(text))
		w.report.violation(&w.report.other, "%s %s: got %d with Retry-After %q and %.300q, want a success or 503 with it",
			r.Method, r.URL, resp.StatusCode, resp.Header.Get("Retry-After"), text)
	}
	return resp, nil
}

func (w *watch) String() string { return fmt.Sprint("answers by status: ", w.statuses) }
