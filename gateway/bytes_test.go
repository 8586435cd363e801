package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// hands is a clock that a test moves.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hands) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// retryAfter returns the Retry-After of an answer. It fails the test unless the answer is a 429.
func retryAfter(t *testing.T, got *httptest.ResponseRecorder) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(got.Header().Get("Retry-After"))
	if got.Code != http.StatusTooManyRequests || err != nil {
		t.Fatalf("got %d %v %s, want 429 with Retry-After", got.Code, got.Header(), got.Body)
	}
	return time.Duration(n) * time.Second
}

// twoKeys answers as an auth service that knows the keys "key" and "key2" of one broker, and the key "else" of
// another broker.
func twoKeys(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	for _, c := range []struct{ key, broker string }{{"key", "b"}, {"key2", "b"}, {"else", "c"}} {
		if strings.Contains(string(body), authapi.Hash(c.key)) {
			io.WriteString(w, `{"broker":"`+c.broker+`","key_id":"`+c.key+`","role":"broker","levels":"1234"}`)
			return
		}
	}
	known(w, r)
}

// post creates an asset. The argument `length` is the Content-Length, or -1 for a request without it.
func post(s *Server, key, kind string, length int64, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/api/2.5/assets", body)
	r.ContentLength = length
	r.Header.Set("Content-Type", kind)
	r.SetBasicAuth(key, "")
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	return recorder
}

// withBytes starts a gateway that lets a broker write 1000 bytes a minute. Each write counts as 10 bytes more
// than its body has.
func withBytes(t *testing.T, clock *hands) *Server {
	return start(t, func(c *Config) {
		c.Auth = httpserver.InProcess(http.HandlerFunc(twoKeys))
		c.Now, c.KeyTTL = clock.read, time.Hour
		c.Limits.Table = ratelimit.Table{{
			Name: "tenant-bytes", By: ratelimit.ByTenant,
			Costs: map[ratelimit.Class]int64{routes.Write: 10, ratelimit.Bytes: 1}, Windows: map[string]int64{"1m": 1000},
		}}
	})
}

// Promises: counted-by
func TestABrokerMayWriteSoManyBytesWithAllItsKeys(t *testing.T) {
	for _, c := range []struct {
		name   string
		length int64
	}{{"of known length", 90}, {"of no known length", -1}} {
		t.Run(c.name, func(t *testing.T) {
			clock := &hands{now: time.Now()}
			s := withBytes(t, clock)
			write := func(key string) *httptest.ResponseRecorder {
				return post(s, key, jsonType, c.length, strings.NewReader(strings.Repeat("x", 90)))
			}
			for i := range 10 {
				got := write([]string{"key", "key2"}[i%2])
				rateLimit, left := got.Header().Get("RateLimit"), `"tenant-bytes-1m";r=`+strconv.Itoa(900-100*i)+";"
				if got.Code != 200 || !strings.HasPrefix(rateLimit, left) {
					t.Fatalf("write %d: got %d, RateLimit %s; want 200 and %s", i, got.Code, rateLimit, left)
				}
			}
			wait := retryAfter(t, write("key2"))
			expect.Equal(t, write("else").Code, 200, "another broker")
			clock.pass(wait - time.Second)
			expect.Equal(t, write("key").Code, 429, "a second before the wait ends")
			clock.pass(time.Second)
			expect.Equal(t, write("key").Code, 200, "after the wait of %v", wait)
		})
	}
}

func TestABodyThatIsNotReadCostsNoBytes(t *testing.T) {
	s := withBytes(t, &hands{now: time.Now()})
	body := func() io.Reader { return strings.NewReader(strings.Repeat("x", 100)) }
	for _, c := range []struct {
		name   string
		got    func() *httptest.ResponseRecorder
		status int
	}{
		{"a Content-Type that is not JSON", func() *httptest.ResponseRecorder {
			return post(s, "key", "text/plain", 100, body())
		}, 415},
		{"a body over the limit", func() *httptest.ResponseRecorder {
			return post(s, "key", jsonType, 1<<40, body())
		}, 413},
		{"an unknown key", func() *httptest.ResponseRecorder { return post(s, "none", jsonType, 100, body()) }, 401},
		{"a DELETE with a body", func() *httptest.ResponseRecorder {
			return fetch(t, s, "DELETE", "/api/2.5/assets/there/related_processes/1",
				"Authorization", basic, "Content-Length", "100")
		}, 200},
		{"no concurrency left", func() *httptest.ResponseRecorder {
			for s.current.Enter(concurrency.Write) {
				defer s.current.Leave()
			}
			return post(s, "key", jsonType, 100, body())
		}, 503},
		{"no memory left for bodies", func() *httptest.ResponseRecorder {
			for _, n := range []int64{memory.Small, 1} {
				for s.bodies.Hold(n) {
					defer s.bodies.Release(n)
				}
			}
			return post(s, "key", jsonType, -1, body())
		}, 503},
	} {
		if got := c.got(); got.Code != c.status {
			t.Errorf("%s: got %d %s, want %d", c.name, got.Code, got.Body, c.status)
		}
	}
	got := post(s, "key", jsonType, 100, body()).Header().Get("RateLimit")
	// This write counts as 110 bytes, and three of the writes above count as 10 bytes each. So 860 bytes are left.
	if want := `"tenant-bytes-1m";r=860;`; !strings.HasPrefix(got, want) {
		t.Errorf("got RateLimit %s, want %s", got, want)
	}
}

// TestABrokerMayUploadSoManyBytes sets a limit of 128 MiB. Above the limit, an upload of known length must be
// refused before its body is read, and an upload of unknown length while its body is read (docs/files.md, D7).
// Promises: upload-bytes
func TestABrokerMayUploadSoManyBytes(t *testing.T) {
	var read atomic.Int64
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		read.Add(n)
		if err != nil { // this handler runs in the gateway's process, so a read returns the gateway's error
			faulthttp.Write(w, err)
			return
		}
		io.WriteString(w, "{}")
	})
	remote := httptest.NewServer(files)
	defer remote.Close()
	for _, isRemote := range []bool{false, true} {
		for _, isKnown := range []bool{true, false} {
			t.Run(fmt.Sprintf("remote %t, known length %t", isRemote, isKnown), func(t *testing.T) {
				read.Store(0)
				s := start(t, func(c *Config) {
					c.Auth = httpserver.InProcess(http.HandlerFunc(twoKeys))
					if c.Files = files; isRemote {
						c.Files, c.FilesURLs = nil, []string{remote.URL}
					}
					c.Limits.Table = ratelimit.Table{{Name: "file-bytes", By: ratelimit.ByTenant,
						Costs: map[ratelimit.Class]int64{ratelimit.FileBytes: 1}, Windows: map[string]int64{"1h": 128 << 20}}}
				})
				upload := func(key string, size int64) *httptest.ResponseRecorder {
					r := httptest.NewRequest("POST", "/upload", io.LimitReader(zeros{}, size))
					if r.ContentLength = -1; isKnown {
						r.ContentLength = size
					}
					r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
					r.SetBasicAuth(key, "")
					recorder := httptest.NewRecorder()
					s.Handler().ServeHTTP(recorder, r)
					return recorder
				}
				for i, key := range []string{"key", "key2"} {
					got := upload(key, 40<<20)
					left := fmt.Sprintf(`"file-bytes-1h";r=%d;`, (88-40*i)<<20)
					if rest := got.Header().Get("RateLimit"); got.Code != 200 || isKnown && !strings.HasPrefix(rest, left) {
						t.Fatalf("upload %d: got %d %s, RateLimit %s; want 200 and %s", i, got.Code, got.Body, rest, left)
					}
				}
				retryAfter(t, upload("key", 100<<20))
				if most := int64(80 << 20); isKnown && read.Load() != most || read.Load() > most+49<<20 {
					t.Errorf("got %d bytes read, want %d, and at most 49 MiB more of a body of unknown length", read.Load(), most)
				}
				if got := upload("else", 40<<20); got.Code != 200 {
					t.Errorf("another broker: got %d %s, want 200", got.Code, got.Body)
				}
			})
		}
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestALimitOfBytesFitsTheLargestBody(t *testing.T) {
	l := Limits{Table: ratelimit.Production()}
	expect.Err(t, l.Validate(80<<20), nil, "bodies of 80 MiB")
	if err := l.Validate(90 << 20); err == nil || !strings.Contains(err.Error(), "tenant-bytes") {
		// The limit is 100 MiB a minute. An eighth of it is kept in reserve.
		t.Errorf("bodies of 90 MiB: got %v, want tenant-bytes in it", err)
	}
}

// TestALockoutIsNotToldShorterThanItIs locks an address out for a minute. The address is also above a write
// limit, but only for a second. The answer must name the minute.
func TestALockoutIsNotToldShorterThanItIs(t *testing.T) {
	clock := &hands{now: time.Now()}
	s := start(t, func(c *Config) {
		c.Now = clock.read
		c.Limits.Table = ratelimit.Table{
			{Name: "address-failed", By: ratelimit.ByAddress,
				Costs: map[ratelimit.Class]int64{ratelimit.Failed: 1}, Windows: map[string]int64{"1m": 5}},
			{Name: "address-write", By: ratelimit.ByAddress,
				Costs: map[ratelimit.Class]int64{routes.Write: 1}, Windows: map[string]int64{"1s": 3}},
			{Name: "address-read", By: ratelimit.ByAddress,
				Costs: map[ratelimit.Class]int64{routes.Read: 1}, Windows: map[string]int64{"1s": 100}},
		}
	})
	for range 5 {
		post(s, "wrong", jsonType, -1, strings.NewReader("{}"))
	}
	clock.pass(500 * time.Millisecond)
	for _, c := range []struct{ method, path string }{
		{"POST", "/api/2.5/assets"}, {"DELETE", "/api/2.5/assets/there/related_processes/1"},
		{"GET", "/api/2.5/assets/there/revisions"}, {"HEAD", "/api/2.5/me"},
	} {
		got := fetch(t, s, c.method, c.path, "Authorization", basic, "Content-Type", jsonType)
		if wait := retryAfter(t, got); wait < time.Minute {
			t.Errorf("%s %s: got Retry-After %v, want at least the lockout's minute", c.method, c.path, wait)
		}
	}
	if got := fetch(t, s, "GET", "/api/2.5/assets/there", "Authorization", basic); got.Code != 200 {
		t.Errorf("a read that needs no key: got %d, want 200", got.Code)
	}
	wait := retryAfter(t, post(s, "key", jsonType, -1, strings.NewReader("{}")))
	clock.pass(wait - time.Second)
	expect.Equal(t, post(s, "key", jsonType, -1, strings.NewReader("{}")).Code, 429, "a second before the wait ends")
	clock.pass(time.Second)
	if got := post(s, "key", jsonType, -1, strings.NewReader("{}")); got.Code != 200 {
		t.Errorf("after the wait: got %d %s, want 200", got.Code, got.Body)
	}
}
