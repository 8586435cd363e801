package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

func newEngine(log io.Writer, ready error) *gin.Engine {
	engine := NewEngine(Options{
		Log:     slog.New(slog.NewJSONHandler(log, nil)),
		Timeout: time.Minute,
		Ready:   func(context.Context) error { return ready },
	})
	engine.GET("/panic", func(*gin.Context) { panic("secret state") })
	engine.GET("/fault", Handle(func(*gin.Context) error { return fault.New(fault.Forbidden, fault.Body, "mode", "no") }))
	engine.GET("/broken", Handle(func(*gin.Context) error { return errors.New("secret state") }))
	engine.GET("/late", Handle(func(c *gin.Context) error {
		<-c.Request.Context().Done()
		return c.Request.Context().Err()
	}))
	return engine
}

func TestEngineAnswersInJSON(t *testing.T) {
	cases := []struct {
		name, method, path string
		ready              error
		status             int
		says               string
	}{
		{name: "liveness", method: "GET", path: "/livez", status: 200, says: `"ok"`},
		{name: "readiness", method: "GET", path: "/readyz", status: 200, says: `"ok"`},
		{
			name: "not ready", method: "GET", path: "/readyz", ready: errors.New("secret state"),
			status: 503, says: "unavailable",
		},
		{name: "an unknown path", method: "GET", path: "/nowhere", status: 404, says: "Not Found"},
		{name: "an unknown method", method: "DELETE", path: "/fault", status: 404, says: "Method Not Allowed"},
		{name: "a slash at the end", method: "GET", path: "/fault/", status: 404, says: "Not Found"},
		{name: "a fault", method: "GET", path: "/fault", status: 403, says: `"name":"mode"`},
		{name: "an internal error", method: "GET", path: "/broken", status: 500, says: `"status":"error"`},
		{name: "a panic", method: "GET", path: "/panic", status: 500, says: `"status":"error"`},
		{name: "a timeout", method: "GET", path: "/late", status: 503, says: "could not answer in time"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			req := httptest.NewRequest(c.method, c.path, nil)
			if c.path == "/late" {
				req.Header.Set(TimeoutHeader, "60")
			}
			newEngine(io.Discard, c.ready).ServeHTTP(recorder, req)
			body := recorder.Body.String()
			if recorder.Code != c.status || !strings.Contains(body, c.says) || strings.Contains(body, "secret") {
				t.Errorf("got %d %s; want %d with %q and no secret", recorder.Code, body, c.status, c.says)
			}
			header := recorder.Header()
			expect.Equal(t, header.Get("Content-Type"), "application/json", "Content-Type")
			expect.Equal(t, header.Get("X-Content-Type-Options"), "nosniff", "X-Content-Type-Options")
		})
	}
}

func TestReadinessTellsItsDangers(t *testing.T) {
	engine := NewEngine(Options{
		Log:      slog.New(slog.DiscardHandler),
		Timeout:  time.Minute,
		Ready:    func(context.Context) error { return nil },
		Warnings: func(context.Context) []string { return []string{"it may forget"} },
	})
	recorder := httptest.NewRecorder()
	engine.ServeHTTP(recorder, httptest.NewRequest("GET", "/readyz", nil))
	if recorder.Code != 200 || !strings.Contains(recorder.Body.String(), `"warnings":["it may forget"]`) {
		t.Errorf("got %d %s, want 200 with the warning", recorder.Code, recorder.Body)
	}
}

func TestUnknownMethodTellsTheKnownOnes(t *testing.T) {
	recorder := httptest.NewRecorder()
	newEngine(io.Discard, nil).ServeHTTP(recorder, httptest.NewRequest("DELETE", "/fault", nil))
	expect.Equal(t, recorder.Header().Get("Allow"), "GET", "Allow")
}

func TestTheLogHasTheErrorAndNoQueryOrHeader(t *testing.T) {
	var log bytes.Buffer
	req := httptest.NewRequest("GET", "/broken?acc_token=canary", nil)
	req.Header.Set("Authorization", "canary")
	req.Header.Set(RequestIDHeader, "r1")
	newEngine(&log, nil).ServeHTTP(httptest.NewRecorder(), req)
	for _, want := range []string{"secret state", `"request_id":"r1"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got %s, want %s in it", log.String(), want)
		}
	}
	if strings.Contains(log.String(), "canary") {
		t.Errorf("got %s, want no query and no header in it", log.String())
	}
}

// TestAnOutageIsNotLoggedRequestByRequest sends many requests and health checks before, during and after an outage.
// Then it counts the log's lines. The outage must have one line at its beginning and one at its end.
func TestAnOutageIsNotLoggedRequestByRequest(t *testing.T) {
	var log bytes.Buffer
	var away error
	engine := NewEngine(Options{
		Log:      slog.New(slog.NewJSONHandler(&log, nil)),
		LogLevel: slog.LevelInfo,
		Timeout:  time.Minute,
		Ready:    func(context.Context) error { return away },
	})
	engine.GET("/work", Handle(func(*gin.Context) error {
		if away != nil {
			return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, fault.URL, "store", "wait"), away)
		}
		return nil
	}))
	ask := func() {
		for _, path := range []string{"/work", "/readyz", "/livez"} {
			engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		}
	}
	const each = 20
	for _, away = range []error{nil, errors.New("the store is gone"), nil} {
		for range each {
			ask()
		}
	}
	for _, c := range []struct {
		text string
		want int
	}{
		{`"level":"ERROR"`, 0},
		{`"level":"WARN","msg":"not ready","error":"the store is gone"`, 1},
		{`"level":"WARN","msg":"requests are refused","error":"GET /work: url/store: wait: the store is gone"`, 1},
		{`"level":"INFO","msg":"ready again","times":20,`, 1},
		{`"level":"INFO","msg":"request","method":"GET","path":"/work","status":503`, 1},
		{`"level":"INFO","msg":"request","method":"GET","path":"/work","status":200`, 2 * each},
		{"/readyz", 0},
		{"/livez", 0},
		{"\n", 2*each + 4},
	} {
		expect.Equal(t, strings.Count(log.String(), c.text), c.want, "%q: it times in the log", c.text)
	}
	if t.Failed() {
		t.Log(log.String())
	}
}

// TestARefusalLeavesABoundedTrace sends requests that are refused or fail, each many times, with other paths and ids,
// and as many that succeed. Of those that are alike, the log must have the first one and then their number, and the
// metric must have each.
func TestARefusalLeavesABoundedTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 100
		var log bytes.Buffer
		reader := sdkmetric.NewManualReader()
		engine := NewEngine(Options{
			Log: slog.New(slog.NewJSONHandler(&log, nil)), Timeout: time.Minute,
			Telemetry: telemetry.New(nil, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), 0),
		})
		answer := func(c *gin.Context) {
			status, err := strconv.Atoi(c.Param("status"))
			if err != nil {
				panic(err)
			}
			c.Status(status)
		}
		engine.GET("/one/:status/*rest", answer)
		engine.GET("/other/:status/*rest", answer)
		ask := func(path, client string) {
			for n := range each {
				req := httptest.NewRequest("GET", fmt.Sprintf("%s/%d?%d", path, n, n), nil)
				req.Header.Set(ClientHeader, client)
				req.Header.Set(RequestIDHeader, strconv.Itoa(n))
				engine.ServeHTTP(httptest.NewRecorder(), req)
			}
		}
		for _, c := range []struct {
			status      int
			first, told int // lines for 2 clients at 2 routes
		}{
			{200, 4 * each, 0}, {304, 4 * each, 0}, {400, 2, 2}, {401, 2, 2}, {403, 2, 2}, {404, 2, 2}, {413, 2, 2},
			{415, 2, 2}, {429, 2, 2}, {431, 2, 2}, {499, 2, 2}, {500, 2, 2}, {502, 2, 2}, {503, 1, 1}, {504, 2, 2},
		} {
			log.Reset()
			before, _ := counted(t, reader, "http.server.request.duration")
			for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
				ask(fmt.Sprintf("/one/%d", c.status), client)
				ask(fmt.Sprintf("/other/%d", c.status), client)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			first := strings.Count(log.String(), `"msg":"request",`)
			told := strings.Count(log.String(), `"msg":"request: as before, in the last minute","times":`)
			if first != c.first || told != c.told {
				t.Errorf("%d: got %d lines and %d numbers, want %d and %d", c.status, first, told, c.first, c.told)
			}
			if after, _ := counted(t, reader, "http.server.request.duration"); after-before != 4*each {
				t.Errorf("%d: got %d requests in the metric, want %d", c.status, after-before, 4*each)
			}
		}
	})
}

// TestTheLogNamesTheCaller sends refused requests with two keys of one broker from several addresses, and one without
// a key. Lines name the broker and the key, and refusals are told together by key.
func TestTheLogNamesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		engine := NewEngine(Options{Log: slog.New(slog.NewJSONHandler(&log, nil)), Timeout: time.Minute})
		engine.GET("/:key", func(c *gin.Context) {
			if key := c.Param("key"); key != "none" {
				SetCaller(c, identity.Identity{Broker: "north", KeyID: key, Role: identity.Broker})
			}
			c.Status(http.StatusForbidden)
		})
		for _, path := range []string{"/7f3a", "/7f3a", "/7f3a", "/91bc", "/none"} {
			req := httptest.NewRequest("GET", path, nil)
			req.Header.Set(ClientHeader, fmt.Sprintf("192.0.2.%d", log.Len()%250))
			engine.ServeHTTP(httptest.NewRecorder(), req)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for says, want := range map[string]int{
			`"broker":"north","key":"7f3a"`: 1, `"broker":"north","key":"91bc"`: 1, `"broker"`: 2, `"key"`: 2,
			`"msg":"request",`: 3, `"times":2,"status":403,"client":"7f3a"`: 1,
		} {
			expect.Equal(t, strings.Count(log.String(), says), want, "%s in %s", says, log.String())
		}
	})
}

func TestAClientThatHasGoneIsNoError(t *testing.T) {
	var log bytes.Buffer
	gone, leave := context.WithCancel(t.Context())
	leave()
	newEngine(&log, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/late", nil).WithContext(gone))
	if line := log.String(); !strings.Contains(line, `"status":499`) || !strings.Contains(line, `"level":"INFO"`) {
		t.Errorf("got %s, want status 499 at level INFO", line)
	}
}

// TestABodyThatEndsEarlyIsAnswered sends a part of a body, and then closes its side of the connection or leaves
// it open. The handler's refusal must arrive.
func TestABodyThatEndsEarlyIsAnswered(t *testing.T) {
	engine := newEngine(io.Discard, nil)
	engine.POST("/body", Handle(func(c *gin.Context) error {
		if _, err := io.ReadAll(c.Request.Body); err != nil {
			return fault.New(fault.Invalid, fault.Body, "data", "The body ended before it was complete.")
		}
		c.Status(http.StatusNoContent)
		return nil
	}))
	addr, _ := serveFor(t, engine, ServeOptions{}, defaultTimeouts)
	for _, c := range []struct {
		name, sent string
		status     int
	}{
		{"a short body", "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", 400},
		{"no body at all", "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", 400},
		{"half a chunk", "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 400},
		{"no last chunk", "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", 400},
		{"a whole body", "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 204},
	} {
		conn := connect(t, addr)
		io.WriteString(conn, c.sent)
		expect.OK(t, conn.(*net.TCPConn).CloseWrite())
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		expect.Must(t, err, "%s", c.name)
		expect.ErrorIf(t, resp.StatusCode != c.status, "%s: got %s, want %d", c.name, resp.Status, c.status)
	}
}

// TestALateRequestIsAnswered has a request whose deadline has passed. net/http has cancelled its context, as it does
// after a read that the deadline has ended. The client still waits, so it must get an answer.
func TestALateRequestIsAnswered(t *testing.T) {
	var log bytes.Buffer
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, end := context.WithDeadline(cancelled, time.Now().Add(-time.Second))
	defer end()
	got := httptest.NewRecorder()
	newEngine(&log, nil).ServeHTTP(got, httptest.NewRequest("GET", "/late", nil).WithContext(late))
	if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "could not answer in time") {
		t.Errorf("got %d %s, want 503 and its reason", got.Code, got.Body)
	}
}

func TestIdentifyLetsNobodyInUnsigned(t *testing.T) {
	signer, err := identity.NewSigner(keyring.Ring{make([]byte, identity.MinSecret)}, time.Now)
	expect.OK(t, err)
	want := identity.Identity{Broker: "broker", Role: identity.Broker}
	engine := newEngine(io.Discard, nil)
	engine.GET("/who", Identify(signer), Handle(func(c *gin.Context) error {
		expect.Equal(t, Caller(c), want, "")
		return nil
	}))
	signed, err := signer.Sign(want)
	expect.OK(t, err)
	for _, c := range []struct {
		name, header string
		want         int
	}{
		{"no identity", "", 401},
		{"a malformed identity", "x", 401},
		{"a signed identity", signed, 200},
	} {
		req := httptest.NewRequest("GET", "/who", nil)
		req.Header.Set(identity.Header, c.header)
		recorder := httptest.NewRecorder()
		engine.ServeHTTP(recorder, req)
		expect.Equal(t, recorder.Code, c.want, "%s", c.name)
	}
}

func TestInProcessCarriesRequestAndAnswer(t *testing.T) {
	client := http.Client{Transport: InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.Try(t, err)
		w.Header().Set("X-Path", r.URL.Path+"?"+r.URL.RawQuery)
		w.WriteHeader(http.StatusTeapot)
		w.Write(append(body, '!'))
	}))}
	resp, err := client.Post("http://inside/a?b=c", "text/plain", strings.NewReader("hello"))
	expect.OK(t, err)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusTeapot || string(body) != "hello!" {
		t.Errorf("got %d %q, %v; want %d %q", resp.StatusCode, body, err, http.StatusTeapot, "hello!")
	}
	expect.Equal(t, resp.Header.Get("X-Path"), "/a?b=c", "X-Path")
}

func TestServeFinishesWhatItHasBegun(t *testing.T) {
	begun, finish, answered := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	addr, stop := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		io.WriteString(w, "done")
	}), ServeOptions{}, defaultTimeouts)
	go func() {
		resp, err := http.Get("http://" + addr)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-begun
	stop()
	close(finish)
	expect.Equal(t, <-answered, "done", "a request under way")
}
