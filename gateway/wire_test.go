package gateway

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logtest"
	"asset-registry/shared/testing/expect"
)

// The function `always` returns a service that does the same as the given one, except that its /readyz always succeeds.
func always(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			service.ServeHTTP(w, r)
		}
	})
}

// startOnWire starts a gateway that reaches its services over the network.
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

// serve serves s on a free port until the test ends, and returns the address.
func serve(t *testing.T, s *Server) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- httpserver.Serve(ctx, listener, s.Handler(), slog.New(slog.DiscardHandler), httpserver.ServeOptions{})
	}()
	t.Cleanup(func() {
		stop()
		expect.Try(t, <-served)
	})
	return listener.Addr().String()
}

func TestOneOrderOfRefusalsInProcessAndOnTheWire(t *testing.T) {
	many := strings.Repeat("x", 101)
	for _, at := range []struct {
		place string
		s     *Server
	}{
		{"in process", start(t, nil)},
		{"on the wire", startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known), nil)},
	} {
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
			{"the body's size before its content",
				try{"PATCH", "/api/2.5/assets/there", "key", jsonType, many, 413, "100 bytes"}},
			{"an id with a question mark", try{"PATCH", "/api/2.5/assets/missing%3Fx", "", jsonType, "", 404, "asset_id"}},
			{"an id with a malformed escape", try{"PATCH", "/api/2.5/assets/missing%25zz", "", jsonType, "", 404, "asset_id"}},
			{"an id with a line feed", try{"PATCH", "/api/2.5/assets/missing%0Ax", "", jsonType, "", 404, "asset_id"}},
			{"a token with a line feed",
				try{"PATCH", "/api/2.5/assets/there?acc_token=a%0Ab", "key", jsonType, "", 200, "PATCH"}},
			{"a token with a zero byte", try{"PATCH", "/api/2.5/assets/there?acc_token=%00", "key", jsonType, "", 200, "PATCH"}},
			{"a malformed query", try{"GET", "/api/2.5/assets?offset=%zz;a", "", "", "", 200, "GET"}},
			{"a read with a key", try{"GET", "/api/2.5/assets/there", "key", "", "", 200, "GET"}},
		} {
			t.Run(at.place+"/"+c.name, func(t *testing.T) { c.run(t, at.s) })
		}
	}
}

// TestSecretsStayWithTheRequest sends an API key and tokens in every place where a client can send them, well
// formed and malformed. No log, no answer and no forwarded URL or Authorization header may show them.
func TestSecretsStayWithTheRequest(t *testing.T) {
	const canary = "c4n4ry"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary + ":"))
	var seen logtest.Log // headers and URLs that the access logs of the services would show
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
		{"both services answer", [2]http.HandlerFunc{assets, known}},
		{"the asset service fails", [2]http.HandlerFunc{broken, known}},
		{"the auth service fails", [2]http.HandlerFunc{assets, broken}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log logtest.Log
			s := startOnWire(t, watch(c.services[0]), watch(c.services[1]), func(c *Config) { c.Log = log.Logger() })
			var answers strings.Builder
			for _, method := range []string{"GET", "POST", "PATCH"} {
				for _, authorization := range []string{
					"Basic " + encoded, "Bearer " + canary, "Basic " + canary + "?", canary, "Digest " + canary,
				} {
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
							t.Errorf("%s with %q and %q: got 500 %s, want another status",
								method, authorization, token, recorder.Body)
						}
						recorder.Header().Write(&answers)
						answers.WriteString(recorder.Body.String())
					}
				}
			}
			for _, c := range []struct{ where, text string }{
				{"the log", log.String()}, {"the services' requests", seen.String()}, {"the answers", answers.String()},
			} {
				if c.text == "" || strings.Contains(c.text, canary) || strings.Contains(c.text, encoded) {
					t.Errorf("%s: got %q, want some text without %s", c.where, c.text, canary)
				}
			}
		})
	}
}

func TestAClientThatLeavesIsNoFault(t *testing.T) {
	begun := make(chan struct{})
	var log logtest.Log
	s := startOnWire(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done() // the gateway must end its own request when the client leaves
	}), http.HandlerFunc(known), func(c *Config) { c.Log = log.Logger() })
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/api/2.5/assets/there", nil))
	if got := log.String(); strings.Contains(got, `"ERROR"`) || !strings.Contains(got, `"status":499`) {
		t.Errorf("got the log %s, want status 499 and no error", got)
	}
}

// TestAnAbsentAssetServiceIsLoggedOnce sends requests while the asset service does not run. The log must have
// one warning about this, with the cause.
func TestAnAbsentAssetServiceIsLoggedOnce(t *testing.T) {
	var log logtest.Log
	s := start(t, func(c *Config) {
		c.Assets, c.AssetsURLs = nil, []string{"http://127.0.0.1:1"}
		c.Log = log.Logger()
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
		{`"level":"INFO","msg":"request","method":"GET","path":"/api/2.5/assets","status":503`, 1},
		{`"level":"DEBUG","msg":"request","method":"GET","path":"/api/2.5/health","status":503`, 1},
		{`"INFO"`, 1},
	} {
		if got := strings.Count(log.String(), c.says); got != c.want {
			t.Errorf("%q: got it %d times, want %d; the log: %s", c.says, got, c.want, log.String())
		}
	}
	if !strings.Contains(log.String(), "connection refused") {
		t.Errorf("got the log %s, want the cause, connection refused, in it", log.String())
	}
}

func TestAnAssetServiceThatHangsIsUnavailable(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		http.HandlerFunc(known), func(c *Config) { c.Timeout = 50 * time.Millisecond })
	got := try{"GET", "/api/2.5/assets/there", "", "", "", 503, "repeat"}.run(t, s)
	expect.ErrorIf(t, got.Header().Get("Retry-After") == "", "got no Retry-After, want one")
	// The gateway cannot check whether the asset exists, but it still checks the Content-Type.
	try{"PATCH", "/api/2.5/assets/there", "", "text/plain", "", 415, "Content-Type"}.run(t, s)
}

// TestARequestThatTookTooLongEndsAlone checks that a timeout does not end later requests on the same
// connection.
func TestARequestThatTookTooLongEndsAlone(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			_, _ = io.Copy(io.Discard, r.Body) // net/http notices a lost client only after it has read the body
			<-r.Context().Done()
			return
		}
		assets(w, r)
	}), http.HandlerFunc(known), func(c *Config) { c.Timeout = 100 * time.Millisecond })
	conn, err := net.Dial("tcp", serve(t, s))
	expect.OK(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	const post = "POST /api/2.5/assets HTTP/1.1\r\nHost: a\r\n" +
		"Authorization: " + basic + "\r\nContent-Type: application/json\r\n"
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
		expect.FatalIf(t, err != nil, "request %d: got %v, want an answer", i, err)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != c.status {
			t.Fatalf("request %d: got %d, %v; want %d", i, resp.StatusCode, err, c.status)
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
	s := startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known),
		func(c *Config) { c.Auth, c.Timeout = hanging{}, time.Second })
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
		{"no Content-Length, over the limit", strings.NewReader(strings.Repeat("x", 101)), -1, 413, "100 bytes"},
		{"no Content-Length, at the limit", strings.NewReader(strings.Repeat("x", 100)), -1, 200, "xxx"},
		{"a Content-Length over the limit", iotest.ErrReader(io.ErrUnexpectedEOF), 101, 413, "100 bytes"},
		{"a body that ends early", iotest.ErrReader(io.ErrUnexpectedEOF), 50, 400, "ended before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/api/2.5/assets", c.body)
			r.ContentLength = c.length
			r.Header.Set("Content-Type", jsonType)
			r.SetBasicAuth("key", "")
			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, r)
			if recorder.Code != c.status || !strings.Contains(recorder.Body.String(), c.says) {
				t.Errorf("got %d %s; want %d and %q in it", recorder.Code, recorder.Body, c.status, c.says)
			}
		})
	}
}

// Promises: body-encoding
func TestACompressedBodyIsRefused(t *testing.T) {
	s := start(t, nil)
	for name, c := range map[string]struct {
		path, kind, coding string
		status             int
		says               []string
	}{
		"gzip":            {"/api/2.5/assets", jsonType, "gzip", 415, []string{`"name":"Content-Encoding"`}},
		"GZIP for a part": {"/api/2.5/assets/there/items", jsonType, "GZIP", 415, []string{`"name":"Content-Encoding"`}},
		"identity and br": {"/api/0/assets", jsonType, "identity, br", 415, []string{`"name":"Content-Encoding"`}},
		"gzip, not of JSON": {"/api/2.5/assets", "text/plain", "gzip", 415,
			[]string{`"name":"Content-Encoding"`, `"name":"Content-Type"`}},
		"gzip, no asset": {"/api/2.5/assets/missing/items", jsonType, "gzip", 404, []string{"asset_id"}},
		"identity":       {"/api/2.5/assets", jsonType, "identity", 200, []string{"{}"}},
		"no encoding":    {"/api/2.5/assets", jsonType, "", 200, []string{"{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fetch(t, s, "POST", c.path,
				"Authorization", basic, "Content-Type", c.kind, "Content-Encoding", c.coding)
			accepts := got.Header().Get("Accept-Encoding")
			if got.Code != c.status || c.status == 415 && accepts != "identity" || c.status == 200 && accepts != "" {
				t.Errorf("got %d, Accept-Encoding %q; want %d, and identity with 415 only", got.Code, accepts, c.status)
			}
			for _, says := range c.says {
				expect.ErrorIf(t, !strings.Contains(got.Body.String(), says), "got %s, want %s in it", got.Body, says)
			}
		})
	}
}

func TestAssetsAreInOnePlace(t *testing.T) {
	c := Config{
		AssetsURLs: []string{"http://assets"}, AuthURLs: []string{"http://auth"},
		Secrets: keyring.Ring{make([]byte, identity.MinSecret)}, Log: slog.New(slog.DiscardHandler),
	}
	expect.Err(t, c.Validate(), nil, "at an address")
	c.Assets = http.HandlerFunc(assets)
	expect.Says(t, c.Validate(), "not both", "at an address and in process")
	c.AssetsURLs = nil
	expect.Err(t, c.Validate(), nil, "in process")
}

// TestAGatewayWithAWrongClockIsNotReady has two servers whose clocks agree.
func TestAGatewayWithAWrongClockIsNotReady(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known),
		func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Hour) } })
	for {
		got := fetch(t, s, "GET", "/readyz")
		if got.Code == 503 && strings.Contains(got.Body.String(), "The clock of this machine is 1h0m0s ahead of") {
			return
		}
		expect.FatalIf(t, got.Code != 200, "got %d %s, want 200 or 503 that says why", got.Code, got.Body)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestReadinessTellsWhoIsAway(t *testing.T) {
	s := startOnWire(t, http.HandlerFunc(assets), http.HandlerFunc(known),
		func(c *Config) { c.AssetsURLs = append(c.AssetsURLs, "http://127.0.0.1:1") })
	for {
		got := fetch(t, s, "GET", "/readyz")
		expect.FatalIf(t, got.Code != 200, "got %d %s, want 200", got.Code, got.Body)
		if strings.Contains(got.Body.String(), `"of 2 servers of assetsvc, 1 are ready"`) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
