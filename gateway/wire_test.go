package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
)

// journal is a log that a test can read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// always is a service that is ready.
func always(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			service.ServeHTTP(w, r)
		}
	})
}

// startOnWire starts a gateway whose services are at addresses.
func startOnWire(t *testing.T, assets, auth http.Handler, change func(*Config)) *Server {
	t.Helper()
	assetsServer, authServer := httptest.NewServer(always(assets)), httptest.NewServer(always(auth))
	t.Cleanup(assetsServer.Close)
	t.Cleanup(authServer.Close)
	return start(t, func(c *Config) {
		c.Assets, c.AssetsURLs = nil, []string{assetsServer.URL}
		c.Auth, c.AuthURLs = nil, []string{authServer.URL}
		if change != nil {
			change(c)
		}
	})
}

// serve answers at an address until the test ends.
func serve(t *testing.T, s *Server) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- httpserver.Serve(ctx, listener, s.Handler(), slog.New(slog.DiscardHandler), httpserver.ServeOptions{})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestOneOrderOfRefusalsInProcessAndOnTheWire(t *testing.T) {
	many := strings.Repeat("x", 101)
	for _, at := range []struct {
		place string
		s     *Server
	}{{"in process", start(t, nil)}, {"on the wire", startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known), nil)}} {
		for _, c := range []struct {
			name string
			try
		}{
			{"a read", try{"GET", "/api/0/assets/there", "", "", "", 200, "GET /api/2.5/assets/there"}},
			{"a write", try{"PUT", "/api/2.4/assets/there", "key", jsonType, "body", 200, "PUT /api/2.4/assets/there body"}},
			{"the path before the asset", try{"PATCH", "/api/2.6/assets/missing", "", "", many, 404, "not_found"}},
			{"the asset before the type", try{"PATCH", "/api/2.5/assets/missing", "", "", many, 404, "asset_id"}},
			{"the type before the key", try{"PATCH", "/api/2.5/assets/there", "", "", many, 415, "Content-Type"}},
			{"the key before the body", try{"PATCH", "/api/2.5/assets/there", "", jsonType, many, 401, "Authorization"}},
			{"the body before what it says", try{"PATCH", "/api/2.5/assets/there", "key", jsonType, many, 413, "100 bytes"}},
			{"an id with a question mark", try{"PATCH", "/api/2.5/assets/missing%3Fx", "", jsonType, "", 404, "asset_id"}},
			{"an id that reads like an escape", try{"PATCH", "/api/2.5/assets/missing%25zz", "", jsonType, "", 404, "asset_id"}},
			{"an id with a line's end", try{"PATCH", "/api/2.5/assets/missing%0Ax", "", jsonType, "", 404, "asset_id"}},
			{"a token that no header can carry", try{"PATCH", "/api/2.5/assets/there?acc_token=a%0Ab", "key", jsonType, "", 200, "PATCH"}},
			{"another one", try{"PATCH", "/api/2.5/assets/there?acc_token=%00", "key", jsonType, "", 200, "PATCH"}},
			{"a query that is none", try{"GET", "/api/2.5/assets?offset=%zz;a", "", "", "", 200, "GET"}},
			{"a key that is sent with a reading", try{"GET", "/api/2.5/assets/there", "key", "", "", 200, "GET"}},
		} {
			t.Run(at.place+"/"+c.name, func(t *testing.T) { c.run(t, at.s) })
		}
	}
}

// TestSecretsStayWithTheRequest plants an API key and tokens wherever a client
// can put them, well formed and not, and looks for them where they must not be.
func TestSecretsStayWithTheRequest(t *testing.T) {
	const canary = "c4n4ry"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary + ":"))
	var seen journal // what the services' own access logs would show
	watch := func(next http.HandlerFunc) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(&seen, r.RequestURI+" "+r.Header.Get("Authorization")+"\n")
			next(w, r)
		})
	}
	broken := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name     string
		services [2]http.HandlerFunc
	}{
		{"all is well", [2]http.HandlerFunc{assets, known}},
		{"assets cannot do it", [2]http.HandlerFunc{broken, known}},
		{"keys cannot be told", [2]http.HandlerFunc{assets, broken}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log journal
			s := startOnWire(t, watch(c.services[0]), watch(c.services[1]), func(c *Config) { c.Log = log.logger() })
			var answers strings.Builder
			for _, method := range []string{"GET", "POST", "PATCH"} {
				for _, authorization := range []string{"Basic " + encoded, "Bearer " + canary, "Basic " + canary + "?", canary, "Digest " + canary} {
					for _, token := range []string{canary, canary + "%0A", canary + "%zz"} {
						path := "/api/2.5/assets/there"
						if method == "POST" {
							path = "/api/2.5/assets"
						}
						r := httptest.NewRequest(method, path+"?acc_token="+token, nil)
						r.Header.Set("Content-Type", jsonType)
						r.Header.Set("Authorization", authorization)
						r.Header.Set("X-Access-Token", canary)
						recorder := httptest.NewRecorder()
						s.Handler().ServeHTTP(recorder, r)
						if recorder.Code == http.StatusInternalServerError {
							t.Errorf("%s with %q and %q: %s", method, authorization, token, recorder.Body)
						}
						recorder.Header().Write(&answers)
						answers.WriteString(recorder.Body.String())
					}
				}
			}
			for _, c := range []struct {
				where string
				text  string
			}{{"the log", log.String()}, {"the services' requests", seen.String()}, {"the answers", answers.String()}} {
				if c.text == "" || strings.Contains(c.text, canary) || strings.Contains(c.text, encoded) {
					t.Errorf("%s: %s", c.where, c.text)
				}
			}
		})
	}
}

func TestAClientThatLeavesIsNoFault(t *testing.T) {
	begun := make(chan struct{})
	var log journal
	s := startOnWire(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done() // it is told, too
	}), http.HandlerFunc(known), func(c *Config) { c.Log = log.logger() })
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/api/2.5/assets/there", nil))
	if got := log.String(); strings.Contains(got, `"ERROR"`) || !strings.Contains(got, `"status":499`) {
		t.Errorf("got %s", got)
	}
}

// TestAnAbsentAssetServiceIsLoggedOnce sends requests while there is none.
func TestAnAbsentAssetServiceIsLoggedOnce(t *testing.T) {
	var log journal
	s := start(t, func(c *Config) {
		c.Assets, c.AssetsURLs = nil, []string{"http://127.0.0.1:1"}
		c.Log = log.logger()
	})
	const each = 20
	for range each {
		for _, path := range []string{"/api/2.5/assets", "/api/2.5/health"} {
			if got := fetch(t, s, "GET", path); got.Code != 503 || got.Header().Get("Retry-After") == "" {
				t.Fatalf("%s: got %d %v, want 503 and Retry-After", path, got.Code, got.Header())
			}
		}
	}
	for _, c := range []struct {
		says string
		want int
	}{
		{`"ERROR"`, 0},
		{`"level":"WARN","msg":"requests are refused"`, 1},
		{`"level":"INFO","msg":"request","method":"GET","path":"/api/2.5/assets","status":503`, each},
		{`"level":"DEBUG","msg":"request","method":"GET","path":"/api/2.5/health","status":503`, each},
		{`"INFO"`, each},
	} {
		if got := strings.Count(log.String(), c.says); got != c.want {
			t.Errorf("%q is logged %d times, want %d; the log: %s", c.says, got, c.want, log.String())
		}
	}
	if !strings.Contains(log.String(), "connection refused") {
		t.Errorf("the log has no cause: %s", log.String())
	}
}

func TestAnAssetServiceThatHangsIsUnavailable(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		http.HandlerFunc(known), func(c *Config) { c.Timeout = 50 * time.Millisecond })
	got := try{"GET", "/api/2.5/assets/there", "", "", "", 503, "repeat"}.run(t, s)
	if got.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	// Whether there is such an asset cannot be told: what can be told, is.
	try{"PATCH", "/api/2.5/assets/there", "", "text/plain", "", 415, "Content-Type"}.run(t, s)
}

// TestARequestThatTookTooLongEndsAlone: those that follow on its connection are
// not taken for cancelled.
func TestARequestThatTookTooLongEndsAlone(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			_, _ = io.Copy(io.Discard, r.Body) // or it is not told
			<-r.Context().Done()
			return
		}
		assets(w, r)
	}), http.HandlerFunc(known), func(c *Config) { c.Timeout = 100 * time.Millisecond })
	conn, err := net.Dial("tcp", serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	const post = "POST /api/2.5/assets HTTP/1.1\r\nHost: a\r\nAuthorization: " + basic + "\r\nContent-Type: application/json\r\n"
	const get = "GET /api/2.5/assets/there HTTP/1.1\r\nHost: a\r\n\r\n"
	for i, c := range []struct {
		sent   string
		status int
	}{
		{post + "Content-Length: 2\r\n\r\n{}", 503}, {get, 200},
		{post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 503}, {get, 200},
		{post + "Content-Length: 0\r\n\r\n", 503}, {get, 200},
	} {
		io.WriteString(conn, c.sent)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != c.status {
			t.Fatalf("request %d is answered %d, %v", i, resp.StatusCode, err)
		}
	}
}

// hanging is an auth service that never answers.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAnAuthServiceThatHangsFailsNoReading(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known), func(c *Config) { c.Auth, c.Timeout = hanging{}, time.Second })
	try{"GET", "/api/2.5/assets/there", "key", "", "", 200, "GET"}.run(t, s)
	try{"POST", "/api/2.5/assets", "key", jsonType, "", 503, "repeat"}.run(t, s)
}

func TestBodiesAreMeasuredAsTheyCome(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		status int
		says   string
	}{
		{"of no known length, too long", strings.NewReader(strings.Repeat("x", 101)), -1, 413, "100 bytes"},
		{"of no known length, not too", strings.NewReader(strings.Repeat("x", 100)), -1, 200, "xxx"},
		{"said to be too long, never read", iotest.ErrReader(io.ErrUnexpectedEOF), 101, 413, "100 bytes"},
		{"cut off", iotest.ErrReader(io.ErrUnexpectedEOF), 50, 400, "ended before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/api/2.5/assets", c.body)
			r.ContentLength = c.length
			r.Header.Set("Content-Type", jsonType)
			r.SetBasicAuth("key", "")
			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, r)
			if recorder.Code != c.status || !strings.Contains(recorder.Body.String(), c.says) {
				t.Errorf("got %d %s", recorder.Code, recorder.Body)
			}
		})
	}
}

func TestACompressedBodyIsRefused(t *testing.T) {
	s := start(t, nil)
	for name, c := range map[string]struct {
		path, kind, coding string
		status             int
		says               []string
	}{
		"gzip":                 {"/api/2.5/assets", jsonType, "gzip", 415, []string{`"name":"Content-Encoding"`}},
		"gzip of a change":     {"/api/2.5/assets/there/items", jsonType, "GZIP", 415, []string{`"name":"Content-Encoding"`}},
		"two codings":          {"/api/0/assets", jsonType, "identity, br", 415, []string{`"name":"Content-Encoding"`}},
		"gzip of another type": {"/api/2.5/assets", "text/plain", "gzip", 415, []string{`"name":"Content-Encoding"`, `"name":"Content-Type"`}},
		"gzip for no asset":    {"/api/2.5/assets/missing/items", jsonType, "gzip", 404, []string{"asset_id"}},
		"identity":             {"/api/2.5/assets", jsonType, "identity", 200, []string{"{}"}},
		"nothing said":         {"/api/2.5/assets", jsonType, "", 200, []string{"{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, s, "POST", c.path, "Authorization", basic, "Content-Type", c.kind, "Content-Encoding", c.coding)
			if accepts := got.Header().Get("Accept-Encoding"); got.Code != c.status || c.status == 415 && accepts != "identity" || c.status == 200 && accepts != "" {
				t.Errorf("got %d, Accept-Encoding %q; want %d", got.Code, accepts, c.status)
			}
			for _, says := range c.says {
				if !strings.Contains(got.Body.String(), says) {
					t.Errorf("got %s, want %s", got.Body, says)
				}
			}
		})
	}
}

func TestAssetsAreInOnePlace(t *testing.T) {
	c := Config{AssetsURLs: []string{"http://assets"}, AuthURLs: []string{"http://auth"}, Secrets: keyring.Ring{make([]byte, identity.MinSecret)}, Log: slog.New(slog.DiscardHandler)}
	if err := c.Validate(); err != nil {
		t.Errorf("at an address: %v", err)
	}
	c.Assets = http.HandlerFunc(assets)
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "not both") {
		t.Errorf("at an address and in process: got %v", err)
	}
	c.AssetsURLs = nil
	if err := c.Validate(); err != nil {
		t.Errorf("in process: %v", err)
	}
}

func TestReadinessTellsWhoIsAway(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known), func(c *Config) { c.AssetsURLs = append(c.AssetsURLs, "http://127.0.0.1:1") })
	for {
		got := fetch(t, s, "GET", "/readyz")
		if got.Code != 200 {
			t.Fatalf("got %d %s", got.Code, got.Body)
		}
		if strings.Contains(got.Body.String(), `"of 2 servers of assetsvc, 1 are ready"`) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
