package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// dear answers with the number of bytes that the query asks for, and counts the work that it asks for, through an engine
// as each service has.
func dear() http.Handler {
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "dear", Log: slog.New(slog.DiscardHandler), Timeout: time.Minute, Ready: func(context.Context) error { return nil },
	})
	engine.NoRoute(httpserver.Handle(func(c *gin.Context) error {
		work, _ := strconv.ParseInt(c.Query("work"), 10, 64)
		size, _ := strconv.Atoi(c.Query("size"))
		status, _ := strconv.Atoi(c.Query("status"))
		httpserver.CountWork(c.Request.Context(), work)
		c.Data(max(200, status), "application/json", []byte(strings.Repeat("x", size)))
		return nil
	}))
	return engine
}

// TestAnAnswerIsChargedForWhatItCost asks for answers with bytes and with work, over the network and in one process. It
// compares what is left of the limit before and after. No client must see the header that tells of the work.
// Promises: charged-after
func TestAnAnswerIsChargedForWhatItCost(t *testing.T) {
	const limit = 10_000
	all := map[ratelimit.Class]int64{routes.List: 1, routes.Own: 1, routes.Read: 1, routes.Write: 1}
	table := ratelimit.Table{
		{Name: "address", By: ratelimit.ByAddress, Costs: all, Windows: map[string]int64{"1m": limit}},
		{Name: "key", By: ratelimit.ByKey, Costs: all, Windows: map[string]int64{"1m": limit}},
	}
	remote := httptest.NewServer(dear())
	defer remote.Close()
	for shape, change := range map[string]func(*Config){
		"one process": func(c *Config) { c.Assets, c.Files = dear(), dear() },
		"services": func(c *Config) {
			c.Assets, c.AssetsURLs, c.FilesURLs = nil, []string{remote.URL}, []string{remote.URL}
		},
	} {
		s := start(t, func(c *Config) {
			change(c)
			c.Limits.Table, c.MaxBody = table, 1<<20
		})
		left := func(method, path string) int64 {
			r := httptest.NewRequest(method, path, nil)
			if method != http.MethodGet && method != http.MethodHead {
				r = httptest.NewRequest(method, path, strings.NewReader("{}"))
				r.SetBasicAuth("key", "")
				r.Header.Set("Content-Type", "application/json")
			}
			answer := httptest.NewRecorder()
			s.Handler().ServeHTTP(answer, r)
			if told := answer.Header()[httpserver.WorkHeader]; told != nil {
				t.Errorf("%s %s: got the header %s: %v, want none", method, path, httpserver.WorkHeader, told)
			}
			n, err := strconv.ParseInt(answer.Header().Get("X-RateLimit-Remaining"), 10, 64)
			if err != nil {
				t.Fatalf("%s %s: got %d without X-RateLimit-Remaining: %v", method, path, answer.Code, answer.Header())
			}
			return n
		}
		const kib = 1 << 10
		for _, c := range []struct {
			method, path       string
			size, work, status int
			want               int64 // requests that the answer costs beyond its own
		}{
			{"GET", "/api/2.5/assets/a", 16*kib - 1, 0, 200, 0},
			{"GET", "/api/2.5/assets/a", 16 * kib, 0, 200, 1},
			{"GET", "/api/2.5/assets/a", 262, 2700 * kib, 200, 168},
			{"HEAD", "/api/2.5/assets/a", 0, 2700 * kib, 200, 168},
			{"GET", "/api/2.5/assets/a/documents/d", 0, 160 * kib, 404, 10},
			{"GET", "/api/2.5/assets/a", 0, 160 * kib, 304, 10},
			{"GET", "/api/2.5/assets", 2*1024*kib - 1, 0, 200, 0},
			{"GET", "/api/2.5/assets", 9 * 1024 * kib, 6 * 1024 * kib, 200, 4},
			{"GET", "/api/2.5/assets", 0, 6 * 1024 * kib, 200, 3},
			{"GET", "/get/f", 1000 * kib, 0, 200, 0},
			{"GET", "/get/f", 3 * 1024 * kib, 0, 200, 3},
			{"GET", "/api/2.5/snapshot/segments/x", 3 * 1024 * kib, 0, 200, 3},
			{"GET", "/log/x", 32 * kib, 0, 200, 2},
			{"PATCH", "/api/2.5/assets/a", 512 * kib, 0, 200, 2},
		} {
			path := fmt.Sprintf("%s?size=%d&work=%d&status=%d", c.path, c.size, c.work, c.status)
			before := left(c.method, path) // the answer tells what was left before its cost is known
			expect.Equal(t, before-1-left(c.method, path), c.want, "%s: %s %s, a cost of, more requests", shape,
				c.method, path)
		}
	}
}
