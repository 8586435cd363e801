package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
)

// TestACookieOfOtherData sends a cookie of different data with each kind of request that continues from a place in
// the feed. The gateway must refuse each of these requests, and set the cookie of its own data (docs/contract.md,
// "Server cookie").
func TestACookieOfOtherData(t *testing.T) {
	_, engine := open(t, http.HandlerFunc(ok), nil)
	const list, asset, lastID = "/api/2.5/assets", "/api/2.5/assets/x", "2026-11-22T00:32:46.881553+00:00"
	events, lines := []string{"Accept", "text/event-stream"}, []string{"Accept", "application/x-ndjson"}
	goesOn := []string{"Last-Event-ID", lastID}
	for i, c := range []struct {
		name         string
		method, path string
		cookie       string
		headers      []string
		want         int
		fresh        bool // the answer sets the cookie of the data that this gateway has
	}{
		{"an offset", "GET", list + "?offset=1", "gone", nil, 404, true},
		{"an offset of a stream", "GET", list + "?offset=1", "gone", events, 404, true},
		{"a stream of events that goes on", "GET", list, "gone", append(events, goesOn...), 404, true},
		{"a stream of lines that goes on", "GET", list, "gone", append(lines, goesOn...), 404, true},
		{"a stream's HEAD that goes on", "HEAD", list, "gone", append(events, goesOn...), 404, true},
		{"a long poll that goes on", "GET", list + "?offset=1", "gone", []string{"Prefer", "wait=1"}, 404, true},
		{"a listing from the start", "GET", list, "gone", nil, 200, true},
		{"an asset", "GET", asset, "gone", nil, 200, false},
		{"a change", "PATCH", asset, "gone", nil, 412, true},
		{"an offset in 2.4", "GET", "/api/2.4/assets?offset=1", "gone", nil, 404, true},
		{"an offset in the current version", "GET", "/api/0/assets?limit=1&offset=1", "gone", nil, 404, true},
		{"an empty offset", "GET", list + "?offset=", "gone", nil, 200, true},
		{"HEAD spore", "HEAD", "/api/0/spore", "gone", nil, 200, false},
		{"HEAD spore without a cookie", "HEAD", "/api/0/spore", "", nil, 200, true},
		{"a creation", "POST", list, "gone", nil, 412, true},
		{"a replacement", "PUT", asset, "gone", nil, 412, true},
		{"a removal", "DELETE", asset + "/related_processes/1", "gone", nil, 412, true},
		{"a creation with a cookie of 5000 bytes", "POST", list, strings.Repeat("x", 5000), nil, 412, true},
		{"a creation without a cookie", "POST", list, "", nil, 200, true},
		{"an offset without a cookie", "GET", list + "?offset=1", "", nil, 200, true},
		{"an offset of this data", "GET", list + "?offset=1", "id", nil, 200, false},
		{"a change of this data", "PATCH", asset, "id", nil, 200, false},
	} {
		headers := append([]string{httpserver.ClientHeader, fmt.Sprintf("10.0.0.%d", i)}, c.headers...)
		headers = append(headers, "Authorization", fmt.Sprintf("Bearer key-%d", i))
		if c.cookie != "" {
			headers = append(headers, "Cookie", "SERVER_ID="+c.cookie)
		}
		got := send(engine, c.method, c.path, headers...)
		says := map[int]string{404: `"location":"querystring","name":"offset"`, 412: `"location":"url","name":"precondition"`}[c.want]
		if got.Code != c.want || c.method != "HEAD" && !strings.Contains(got.Body.String(), says) {
			t.Errorf("%s: got %d %s, want %d with %s", c.name, got.Code, got.Body, c.want, says)
		}
		if cookie := got.Header().Get("Set-Cookie"); strings.HasPrefix(cookie, "SERVER_ID=id") != c.fresh {
			t.Errorf("%s: got Set-Cookie %q, want the cookie of this data: %t", c.name, cookie, c.fresh)
		}
	}
}
