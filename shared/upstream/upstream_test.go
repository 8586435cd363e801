package upstream

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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
)

func newPool(t *testing.T, urls ...string) *Pool {
	t.Helper()
	p, err := New(Config{Name: "test", URLs: urls, Log: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter("")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// place is a server that counts what it is asked, but for its readiness.
type place struct {
	*httptest.Server
	asked, connections atomic.Int64
	unready            atomic.Bool
}

func newPlace(t *testing.T, handler http.HandlerFunc) *place {
	t.Helper()
	s := &place{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			if s.unready.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		s.asked.Add(1)
		handler(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, p *Pool, method, path, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://service"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		r.Body, r.GetBody = nil, nil
	}
	for _, name := range header {
		r.Header[name] = nil
	}
	resp, err := p.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// drop ends the connection without an answer.
func drop(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

func TestAnswersOfEveryKindArriveOnOneConnection(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	s := newPlace(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/plain":
			io.WriteString(w, "plain")
		case "/large":
			io.WriteString(w, large)
		case "/chunks":
			for range 3 {
				io.WriteString(w, "chunk")
				http.NewResponseController(w).Flush()
			}
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "body")
			w.Header().Set("X-Sum", "1")
		case "/early":
			w.Header().Set("Link", "</style>")
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "late")
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		case "/echo":
			io.Copy(w, r.Body)
		}
	})
	p := newPool(t, s.URL)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/plain", "", 200, "plain"},
		{"HEAD", "/plain", "", 200, ""},
		{"GET", "/large", "", 200, large},
		{"GET", "/chunks", "", 200, "chunkchunkchunk"},
		{"GET", "/trailer", "", 200, "body"},
		{"GET", "/early", "", 200, "late"},
		{"GET", "/nothing", "", 204, ""},
		{"GET", "/same", "", 304, ""},
		{"POST", "/echo", "question", 200, "question"},
		{"POST", "/echo", large, 200, large},
	} {
		resp, text, err := ask(t, p, c.method, c.path, c.body)
		if err != nil || resp.StatusCode != c.status || text != c.want {
			t.Fatalf("%s %s: got %+v, %d bytes, %v", c.method, c.path, resp, len(text), err)
		}
		if c.path == "/trailer" && resp.Trailer.Get("X-Sum") != "1" {
			t.Errorf("the trailer is %v", resp.Trailer)
		}
		if c.method == "HEAD" && resp.ContentLength != 5 {
			t.Errorf("HEAD tells a length of %d", resp.ContentLength)
		}
	}
	if n := s.connections.Load(); n > 2 { // one may be of a question for readiness at the same time
		t.Errorf("%d connections were made", n)
	}
	if busy := (*p.servers.Load())[0].busy.Load(); busy > 1 {
		t.Errorf("%d requests seem to be under way", busy)
	}
}

func TestAnAnswerThatIsNotReadCostsItsConnection(t *testing.T) {
	s := newPlace(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 1<<20)) })
	p := newPool(t, s.URL)
	for range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://service/", nil)
		resp, err := p.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if _, text, err := ask(t, p, "GET", "/", ""); err != nil || len(text) != 1<<20 {
		t.Errorf("got %d bytes, %v", len(text), err)
	}
}

func TestWhatMayBeRepeatedIs(t *testing.T) {
	for name, c := range map[string]struct {
		method, body string
		header       []string
		answered     bool
	}{
		"a reading":                   {method: "GET", answered: true},
		"a write":                     {method: "POST", body: "question"},
		"a write that may be":         {method: "POST", body: "question", header: []string{"Idempotency-Key"}, answered: true},
		"a write without a body":      {method: "DELETE"},
		"a reading that has a body":   {method: "GET", body: "question"},
		"an unknown method":           {method: "BREW"},
		"a write of the same, marked": {method: "PATCH", body: "question", header: []string{"Idempotency-Key"}, answered: true},
	} {
		t.Run(name, func(t *testing.T) {
			broken := newPlace(t, drop)
			whole := newPlace(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s %d", r.Method, text, len(r.Header["Idempotency-Key"]))
			})
			p := newPool(t, broken.URL, whole.URL)
			for range 2 { // each server is the first to be asked once
				_, text, err := ask(t, p, c.method, "/", c.body, c.header...)
				if err == nil && text != fmt.Sprintf("%s %s 0", c.method, c.body) {
					t.Errorf("got %q", text)
				}
				if c.answered && err != nil {
					t.Error(err)
				}
			}
			if n := broken.asked.Load() + whole.asked.Load(); !c.answered && n != 2 {
				t.Errorf("two requests arrived %d times", n)
			}
		})
	}
}

func TestWhatWasNotSentGoesToAnother(t *testing.T) {
	gone := newPlace(t, drop)
	gone.Close()
	there := newPlace(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	p := newPool(t, gone.URL, there.URL)
	for i := range 20 {
		if _, text, err := ask(t, p, "POST", "/", fmt.Sprint(i)); err != nil || text != fmt.Sprint(i) {
			t.Errorf("got %q, %v", text, err)
		}
	}
}

func TestRepeatsHaveABudget(t *testing.T) {
	s, other := newPlace(t, drop), newPlace(t, drop)
	p := newPool(t, s.URL, other.URL)
	const requests = 100
	for i := range requests {
		if _, _, err := ask(t, p, "GET", fmt.Sprint("/", i), ""); err == nil {
			t.Fatal("there was an answer")
		}
		for _, s := range *p.servers.Load() { // the breaker is another test's
			s.breaker.succeed()
		}
	}
	if n := s.asked.Load() + other.asked.Load(); n > requests+maxBudget/retryCost+requests/10+1 {
		t.Errorf("%d requests arrived as %d", requests, n)
	}
}

func TestAServerThatIsNotReadyIsTheLastToBeAsked(t *testing.T) {
	leaving, staying := newPlace(t, func(http.ResponseWriter, *http.Request) {}), newPlace(t, func(http.ResponseWriter, *http.Request) {})
	leaving.unready.Store(true)
	p := newPool(t, leaving.URL, staying.URL)
	for ready := 2; ready != 1; ready, _ = p.Ready() {
		time.Sleep(time.Millisecond)
	}
	for range 10 {
		if _, _, err := ask(t, p, "POST", "/", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if leaving.asked.Load() != 0 || staying.asked.Load() != 10 {
		t.Errorf("asked %d and %d times", leaving.asked.Load(), staying.asked.Load())
	}
	staying.unready.Store(true)
	for ready := 1; ready != 0; ready, _ = p.Ready() {
		time.Sleep(time.Millisecond)
	}
	if _, _, err := ask(t, p, "POST", "/", "x"); err != nil {
		t.Errorf("if none is ready, one is asked: %v", err)
	}
}

func TestAConnectionThatTheServerHasClosedFailsNoWrite(t *testing.T) {
	s := newPlace(t, func(http.ResponseWriter, *http.Request) {})
	p := newPool(t, s.URL)
	for range 20 {
		for _, header := range [][]string{nil, {"Idempotency-Key"}} {
			if _, _, err := ask(t, p, "POST", "/", "x", header...); err != nil {
				t.Fatal(err)
			}
			s.CloseClientConnections()
		}
	}
}

func TestTheEndOfAContextEndsTheRequest(t *testing.T) {
	gone := make(chan struct{}, 2)
	s := newPlace(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "begun")
			http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	p := newPool(t, s.URL)
	for _, path := range []string{"/", "/body"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://service"+path, nil)
		resp, err := p.RoundTrip(r)
		if path == "/body" {
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err == nil {
			t.Error("the request has ended well")
		}
		<-gone
	}
	if (*p.servers.Load())[0].breaker.failures.Load() != 0 {
		t.Error("that clients leave counts against the server")
	}
}

// TestBrokenAnswers speaks to a server that answers with given bytes.
func TestBrokenAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
		fails        bool
	}{
		"until the end":    {answer: "HTTP/1.1 200 OK\r\n\r\nall of it", want: "all of it"},
		"an old version":   {answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nokmore", want: "ok"},
		"too short":        {answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", fails: true},
		"half a chunk":     {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", fails: true},
		"no HTTP":          {answer: "hello\r\n\r\n", fails: true},
		"half a header":    {answer: "HTTP/1.1 200 OK\r\nConte", fails: true},
		"two lengths":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", fails: true},
		"another protocol": {answer: "HTTP/1.1 101 Switching Protocols\r\n\r\n", fails: true},
		"interim forever":  {answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20), fails: true},
		"nothing":          {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						io.WriteString(conn, c.answer)
					}
					conn.Close()
				}
			}()
			p := newPool(t, "http://"+listener.Addr().String())
			if _, text, err := ask(t, p, "POST", "/", "x"); (err != nil) != c.fails || !c.fails && text != c.want {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestTheBreakerLetsOneTry(t *testing.T) {
	var b breaker
	now := time.Unix(1000, 0)
	for i := range maxFailures {
		if !b.admit(now) || b.isOpen(now) {
			t.Fatalf("open after %d failures", i)
		}
		if opened := b.fail(now); opened != (i == maxFailures-1) {
			t.Errorf("failure %d: opened %v", i+1, opened)
		}
	}
	if b.admit(now) || !b.isOpen(now) {
		t.Error("it is not open")
	}
	now = now.Add(openFor)
	if b.isOpen(now) || !b.admit(now) {
		t.Error("nobody may try")
	}
	if b.admit(now) || !b.isOpen(now) {
		t.Error("two may try")
	}
	if b.fail(now); b.admit(now) {
		t.Error("it is closed though the trial failed")
	}
	if now = now.Add(openFor); !b.admit(now) {
		t.Error("nobody may try again")
	}
	if b.abandon(); !b.admit(now) {
		t.Error("a trial that was given up blocks others")
	}
	b.succeed()
	for range 2 {
		if !b.admit(now) || b.isOpen(now) {
			t.Error("it is not closed after a trial that went well")
		}
	}
}

func TestNoServerIsAskedForASecondAfterFailures(t *testing.T) {
	s := newPlace(t, drop)
	s.unready.Store(true) // else a check amid the failures forgives them
	p := newPool(t, s.URL)
	var err error
	for range 50 {
		if _, _, err = ask(t, p, "POST", "/", "x"); errors.Is(err, ErrNoServer) {
			break
		}
	}
	if !errors.Is(err, ErrNoServer) || s.asked.Load() != maxFailures {
		t.Errorf("asked %d times, then %v", s.asked.Load(), err)
	}
}

func TestANameStandsForItsAddresses(t *testing.T) {
	s := newPlace(t, func(http.ResponseWriter, *http.Request) {})
	p := newPool(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1))
	for (*p.servers.Load())[0].addr != s.Listener.Addr().String() {
		time.Sleep(time.Millisecond)
	}
	if _, _, err := ask(t, p, "POST", "/", "x"); err != nil || len(*p.servers.Load()) != 1 {
		t.Errorf("%d servers, %v", len(*p.servers.Load()), err)
	}
}

func TestCheckOfAddresses(t *testing.T) {
	for text, good := range map[string]bool{
		"http://a:1": true, "https://a": true, "http://[::1]:8": true, "http://a/": true,
		"": false, "a:1": false, "ftp://a": false, "http://": false, "http://a/path": false, "http://a?q": false, "http://u@a": false,
	} {
		if err := Check([]string{text}); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
	if Check(nil) == nil {
		t.Error("no address will do")
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 3000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }))
	defer s.Close()
	p, err := New(Config{Name: "test", URLs: []string{s.URL}, Log: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter("")})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for name, transport := range map[string]http.RoundTripper{"ours": p, "net/http": &http.Transport{MaxIdleConnsPerHost: 256}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, _ := http.NewRequestWithContext(b.Context(), "GET", s.URL, nil)
					resp, err := transport.RoundTrip(r)
					if err != nil {
						b.Fatal(err)
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		})
	}
}

func TestARequestThatKillsDoesNotTravel(t *testing.T) {
	var places []*place
	var urls []string
	for range 5 {
		places = append(places, newPlace(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("kill") {
				drop(w, r)
			}
		}))
		urls = append(urls, places[len(places)-1].URL)
	}
	p := newPool(t, urls...)
	asked := func() (n int64) {
		for _, s := range places {
			n += s.asked.Load()
		}
		return n
	}
	for range 20 { // old connections to all
		if _, _, err := ask(t, p, "GET", "/", ""); err != nil {
			t.Fatal(err)
		}
	}
	before := asked()
	for range 10 {
		if _, _, err := ask(t, p, "GET", "/?kill", ""); err == nil {
			t.Fatal("got an answer to a request that kills")
		}
	}
	if got := asked() - before; got != 11 {
		t.Errorf("10 equal requests that kill have arrived %d times, want 11: one of them is repeated, once", got)
	}
	if _, _, err := ask(t, p, "GET", "/?kill&other", ""); err == nil {
		t.Fatal("got an answer to a request that kills")
	}
	if got := asked() - before; got != 13 {
		t.Errorf("another one that kills made %d arrivals, want 2", got-11)
	}
}

func TestDeathsAreForgotten(t *testing.T) {
	d, now := newDeaths(), time.Now()
	r, _ := http.NewRequest("GET", "http://service/a?b", nil)
	for _, c := range []struct {
		name string
		at   time.Time
		want bool
	}{
		{"the first", now, true},
		{"the second", now.Add(time.Second), false},
		{"just before the end", now.Add(deathTime - 1), false},
		{"after it", now.Add(deathTime), true},
		{"again", now.Add(deathTime + 1), false},
	} {
		if got := d.mayRepeat(r, c.at); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
	for i := range 2 * maxDeaths {
		r, _ := http.NewRequest("GET", fmt.Sprintf("http://service/%d", i), nil)
		d.mayRepeat(r, now.Add(2*deathTime))
	}
	if got := len(d.last); got > maxDeaths {
		t.Errorf("got %d deaths remembered, want at most %d", got, maxDeaths)
	}
}
