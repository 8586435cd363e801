package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

// Promises: long-poll
func TestAsked(t *testing.T) {
	cases := []struct {
		name, query, accept, prefer string
		format                      stream.Format
		wait                        time.Duration
	}{
		{"a page", "limit=5", "application/json", "", stream.None, 0},
		{"a page that waits", "offset=x&wait=30", "", "", stream.None, 30 * time.Second},
		{"by a header", "", "", "respond-async, wait=7", stream.None, 7 * time.Second},
		{"by a header in quotes", "", "", `Wait="7"`, stream.None, 7 * time.Second},
		{"the parameter wins", "wait=5", "", "wait=7", stream.None, 5 * time.Second},
		{"at most a minute", "wait=61", "", "", stream.None, time.Minute},
		{"a very large number", "wait=99999999999999999999", "", "", stream.None, time.Minute},
		{"no time", "wait=0", "", "", stream.None, 0},
		{"a negative number", "wait=-5", "", "", stream.None, 0},
		{"a word", "wait=long", "", "", stream.None, 0},
		{"the newest first", "wait=30&descending=1", "", "", stream.None, 0},
		{"events", "mode=test", "text/event-stream", "", stream.Events, 0},
		{"lines", "wait=5", "application/x-ndjson", "", stream.Lines, 0},
		{"a malformed query", "wait=5&%zz", "text/event-stream", "", stream.None, 0},
		{"a query that is no text", "wait=5&mode=%ff", "text/event-stream", "", stream.None, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/api/2.5/assets?"+c.query, nil)
			r.Header.Set("Accept", c.accept)
			r.Header.Set("Prefer", c.prefer)
			if format, wait, _ := asked(r); format != c.format || wait != c.wait {
				t.Errorf("got format %q and a wait of %v, want %q and %v", format, wait, c.format, c.wait)
			}
		})
	}
}

func FuzzWaitOf(f *testing.F) {
	f.Add("30", "wait=5")
	f.Add("", "respond-async; wait=\"7\"")
	f.Fuzz(func(t *testing.T, parameter, prefer string) {
		if got := waitOf(parameter, prefer); got < 0 || got > maxWait {
			t.Errorf("%q, %q: got %v, want 0 to %v", parameter, prefer, got, maxWait)
		}
	})
}

func TestSelectionOf(t *testing.T) {
	cases := []struct {
		name, version, query string
		want                 stream.Selection
	}{
		{"no parameters", "2.4", "", stream.Selection{Version: "2.5"}},
		{"fields that each entry has", "2.4", "opt_fields=id,dateModified,,", stream.Selection{Version: "2.5"}},
		{"test mode", "2.5", "mode=test", stream.Selection{Version: "2.5", Mode: "test"}},
		{"all modes", "2.5", "mode=_all_", stream.Selection{Version: "2.5", Mode: "_all_"}},
		{"an unknown mode", "2.5", "mode=x", stream.Selection{Version: "2.5"}},
		{"fields in any order", "2.4", "opt_fields=title,status,title",
			stream.Selection{Version: "2.4", Fields: "status,title"}},
		{"all fields", "2.4", "opt_fields=title,*", stream.Selection{Version: "2.4", Fields: "*"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			query, err := url.ParseQuery(c.query)
			expect.OK(t, err)
			expect.Equal(t, selectionOf(c.version, query), c.want, "")
		})
	}
}

// TestFurtherPagesOfAStreamCount asks whether a stream may read further pages. The limits of the test admit one page a
// minute for each client.
func TestFurtherPagesOfAStreamCount(t *testing.T) {
	a, _ := open(t, http.HandlerFunc(ok), nil)
	for _, addr := range []string{"192.0.2.1", "192.0.2.2"} {
		more := a.morePages(ratelimit.Client{Addr: netip.MustParseAddr(addr)})
		if first, second := more(), more(); !first || second {
			t.Errorf("%s: got %t and %t, want one page admitted and the next one not", addr, first, second)
		}
	}
}

// TestTheAnswerAfterALongPollHasTime sends a long poll of a client that has already left. The write deadline of the
// connection must be after the end of the longest wait, so that the page can be sent in time.
func TestTheAnswerAfterALongPollHasTime(t *testing.T) {
	_, engine := open(t, http.HandlerFunc(ok), nil)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(ctx, "GET", "/api/2.5/assets?wait=60", nil)
	r.Header.Set(httpserver.ClientHeader, "192.0.2.1")
	end := time.Now().Add(maxWait + answerAfterAll)
	func() {
		defer func() { _ = recover() }() // the handler ends the connection of a client that has left
		engine.ServeHTTP(w, r)
	}()
	expect.ErrorIf(t, w.write.Before(end), "got the deadline %v, want one after %v", w.write, end)
}
