package mux

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
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/httpwire"
)

// start serves handler by calls and by plain HTTP. It returns a connection and the address.
func start(t *testing.T, handler http.HandlerFunc) (*Conn, *Server, string) {
	t.Helper()
	s := NewServer(handler, slog.New(slog.NewTextHandler(t.Output(), nil)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return dial(t, listener.Addr().String()), s, listener.Addr().String()
}

func dial(t *testing.T, addr string) *Conn {
	t.Helper()
	plain, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), plain, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Retire)
	return c
}

func request(t testing.TB, ctx context.Context, method, path, body string) *http.Request {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://service"+path, from)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole is an answer with its body.
type whole struct {
	Status int
	Header http.Header
	Body   string
	Length int64
	Error  string
}

func read(resp *http.Response, err error) whole {
	if err != nil {
		return whole{Error: "no answer"}
	}
	defer resp.Body.Close()
	w := whole{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Error = "cut off"
	}
	w.Body = string(body)
	return w
}

// echo answers with all that it sees, in a way that the path tells.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/plain")
	w.Header()["X-Twice"] = []string{"a", "b"}
	w.Header().Set("X-Words", "слова")
	text := fmt.Sprintf("%s %s %s %v length %d: %d bytes, %v\n", r.Method, r.RequestURI, r.Host, r.Header["X-Test"],
		r.ContentLength, len(body), err)
	switch r.URL.Path {
	case "/large":
		text += strings.Repeat("0123456789", 100_000)
	case "/length":
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	case "/short":
		w.Header().Set("Content-Length", "1000")
	case "/304":
		w.WriteHeader(http.StatusNotModified)
		return
	case "/204":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/404":
		w.WriteHeader(http.StatusNotFound)
	case "/empty":
		return
	case "/flushed":
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	case "/abort":
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/early":
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, text)
}

// TestSameAsPlainHTTP compares the answers that come by calls with those of plain HTTP.
func TestSameAsPlainHTTP(t *testing.T) {
	c, _, addr := start(t, echo)
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	for _, path := range []string{
		"/", "/large", "/length", "/short", "/304", "/204", "/404", "/empty", "/flushed", "/abort", "/early", "/a%20b?c=d",
	} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			for _, size := range []int{0, 10, 100_000, 1_000_000} {
				body := strings.Repeat("x", size)
				ask := func(transport http.RoundTripper) whole {
					r := request(t, t.Context(), method, path, body)
					r.URL.Host, r.Host = addr, addr
					r.Header["X-Test"] = []string{"1", "2"}
					r.Header.Set("User-Agent", "test")
					w := read(transport.RoundTrip(r))
					w.Header.Del("Date")
					w.Header.Del("Connection")
					return w
				}
				want, got := ask(plain), ask(c)
				if path == "/abort" && want.Status == 0 {
					continue // the reset of the connection has overtaken the answer
				}
				if want.Length < 0 { // a length is told for more answers
					got.Header.Del("Content-Length")
					got.Length = want.Length
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s %s with %d bytes: plain (-), calls (+):\n%s", method, path, size, diff)
				}
			}
		}
	}
	if !c.IsOpen() {
		t.Error("got a connection that has ended, want one that is open")
	}
}

func TestManyAtOnce(t *testing.T) {
	c, _, _ := start(t, echo)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for j := range 2 {
				path := []string{"/", "/large", "/404", "/flushed"}[(i+j)%4]
				resp, err := c.RoundTrip(request(t, t.Context(), "POST", path, strings.Repeat("x", i*1000+1)))
				for errors.Is(err, ErrNotTaken) && c.IsOpen() { // too much is unsent
					time.Sleep(time.Millisecond)
					resp, err = c.RoundTrip(request(t, t.Context(), "POST", path, strings.Repeat("x", i*1000+1)))
				}
				got := read(resp, err)
				if want := fmt.Sprintf(" %d bytes, <nil>", i*1000+1); got.Error != "" || !strings.Contains(got.Body, want) {
					t.Errorf("%s: got %.100q, %s; want %q", path, got.Body, got.Error, want)
				}
			}
		})
	}
	all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) > 0 {
		t.Errorf("got %d streams at the end, want 0", len(c.streams))
	}
}

// TestNoStreamDelaysAnother has answers that nobody reads, and bodies that no handler
// reads (M1). Their memory is bounded by the window (M2).
func TestNoStreamDelaysAnother(t *testing.T) {
	release := make(chan struct{})
	sent := make(chan int, 1000)
	c, _, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/unread":
			for n := 0; ; n += maxBody {
				if _, err := w.Write(make([]byte, maxBody)); err != nil {
					sent <- n
					return
				}
			}
		case "/reads-nothing":
			<-release
		default:
			echo(w, r)
		}
	})
	var unread []*http.Response
	for range 20 {
		resp, err := c.RoundTrip(request(t, t.Context(), "GET", "/unread", ""))
		if err != nil {
			t.Fatal(err)
		}
		unread = append(unread, resp)
	}
	var senders sync.WaitGroup
	for range 20 {
		senders.Go(func() {
			read(c.RoundTrip(request(t, t.Context(), "POST", "/reads-nothing", strings.Repeat("x", 1<<20))))
		})
	}
	for range 100 {
		if got := read(c.RoundTrip(request(t, t.Context(), "POST", "/large", "x"))); got.Status != 200 || got.Error != "" {
			t.Fatalf("got %d, %s; want a whole answer", got.Status, got.Error)
		}
	}
	for _, resp := range unread {
		resp.Body.Close()
		if n := <-sent; n > Window+maxBody {
			t.Errorf("got %d bytes that nobody has read, want at most %d", n, Window+maxBody)
		}
	}
	close(release)
	senders.Wait()
}

func TestCancelReachesTheHandler(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	c, _, _ := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		ended <- r.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := c.RoundTrip(request(t, ctx, "GET", "/", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("handler: got %v, want %v", err, context.Canceled)
	}
}

// TestALostConnection ends the handlers and the callers (M4).
func TestALostConnection(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	c, _, _ := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		ended <- r.Context().Err()
	})
	go func() {
		<-begun
		c.conn.Close()
	}()
	if _, err := c.RoundTrip(request(t, t.Context(), "GET", "/", "")); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want %v", err, ErrLost)
	}
	<-ended
	if _, err := c.RoundTrip(request(t, t.Context(), "GET", "/", "")); !errors.Is(err, ErrNotTaken) || c.IsOpen() {
		t.Errorf("afterwards: got %v, open %t; want %v, false", err, c.IsOpen(), ErrNotTaken)
	}
}

// TestASilentConnectionIsRetired has a server that takes requests and sends nothing.
func TestASilentConnectionIsRetired(t *testing.T) {
	c, _, _ := start(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.RoundTrip(request(t, ctx, "GET", "/", "")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if c.IsOpen() {
		t.Error("got an open connection, want one that takes no requests")
	}
}

// TestShutdown lets a request under way end, and says of later ones that they were not
// taken (M3).
func TestShutdown(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	c, s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-goOn
		}
		echo(w, r)
	})
	answered := make(chan whole, 1)
	go func() { answered <- read(c.RoundTrip(request(t, t.Context(), "GET", "/slow", ""))) }()
	<-begun
	shut := make(chan error, 1)
	go func() { shut <- s.Shutdown(t.Context()) }()
	for c.IsOpen() {
		time.Sleep(time.Millisecond)
	}
	if _, err := c.RoundTrip(request(t, t.Context(), "GET", "/", "")); !errors.Is(err, ErrNotTaken) {
		t.Errorf("a later request: got %v, want %v", err, ErrNotTaken)
	}
	close(goOn)
	if got := <-answered; got.Status != 200 || got.Error != "" {
		t.Errorf("the request under way: got %+v, want an answer", got)
	}
	if err := <-shut; err != nil {
		t.Errorf("shutdown: got %v, want nil", err)
	}
}

// TestARequestThatCrossesADrain is sent before the drain arrives.
func TestARequestThatCrossesADrain(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		r := bufio.NewReader(far)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(far, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n")
		f := frames{r: r}
		for range 2 { // two requests
			if _, err := f.next(); err != nil {
				return
			}
		}
		far.Write(appendFrame(nil, 1, drainFrame, "")) // only the first was taken
		far.Write(appendFrame(nil, 1, headFrame, "204\r\n"))
		far.Write(appendFrame(nil, 1, endFrame, ""))
	}()
	c, err := Dial(t.Context(), near, "a")
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.RoundTrip(request(t, t.Context(), "GET", "/", ""))
			results <- err
		}()
	}
	first, second := <-results, <-results
	if first == nil {
		first, second = second, first
	}
	if !errors.Is(first, ErrNotTaken) || second != nil {
		t.Errorf("got %v and %v, want %v and an answer", first, second, ErrNotTaken)
	}
}

func TestAnAnswerThatNobodyReadsEnds(t *testing.T) {
	failed := make(chan error, 1)
	c, _, _ := start(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := w.Write(make([]byte, 1<<20))
		failed <- err
	})
	resp, err := c.RoundTrip(request(t, t.Context(), "GET", "/", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("handler: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("body: got its end, want an error")
	}
}

func TestAServerThatDoesNotKnowTheProtocol(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(listener)
	defer server.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), conn, "a"); !errors.Is(err, httpwire.ErrUnsupported) {
		t.Errorf("got %v, want %v", err, httpwire.ErrUnsupported)
	}
}

func TestRequestsThatCallsDoNotCarry(t *testing.T) {
	c, _, _ := start(t, echo)
	for name, change := range map[string]func(*http.Request){
		"a value that is not ASCII": func(r *http.Request) { r.Header.Set("X", "слово") },
		"chunks":                    func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1 },
		"a head that is too large":  func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", maxHead)) },
	} {
		r := request(t, t.Context(), "POST", "/", "")
		change(r)
		if _, err := c.RoundTrip(r); !errors.Is(err, ErrNotPlain) {
			t.Errorf("%s: got %v, want %v", name, err, ErrNotPlain)
		}
	}
	if got := read(c.RoundTrip(request(t, t.Context(), "GET", "/", ""))); got.Status != 200 {
		t.Errorf("afterwards: got %+v, want an answer", got)
	}
}

// FuzzServer sends any bytes after the upgrade. The server must end the connection or wait
// for more, and still answer on another one.
func FuzzServer(f *testing.F) {
	head := appendFrame(nil, 1, headFrame, "GET / HTTP/1.1\r\nHost: a\r\n")
	f.Add(appendFrame(nil, 1, headFrame, "GET /\r\nHost: a\r\n"))
	f.Add(appendFrame(appendFrame(nil, 1, headFrame, "POST /\r\nHost: a\r\nContent-Length: 3\r\n"), 1, bodyFrame, "abc"))
	f.Add(appendFrame(appendWindow(head, 1, 100), 1, cancelFrame, ""))
	f.Add([]byte{0, 0, 0, 1, 1, 255, 255, 255})
	s := NewServer(http.HandlerFunc(echo), slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, data []byte) {
		near, far := net.Pipe()
		c := &serverConn{server: s, conn: far, remote: "a", streams: map[uint32]*serverStream{}}
		c.ctx, c.cancel = context.WithCancel(context.Background())
		if !c.upgrade() {
			t.Fatal("got a server that drains, want one that serves")
		}
		done := make(chan struct{})
		go func() { defer close(done); c.run(bufio.NewReader(far)) }()
		go io.Copy(io.Discard, near)
		_ = near.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, _ = near.Write(data) // the server may end before
		near.Close()
		<-done
	})
}

// FuzzClient answers a request with any bytes.
func FuzzClient(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, 1, headFrame, "200\r\nContent-Length: 2\r\n"), 1, bodyFrame, "ok"))
	f.Add(appendFrame(appendFrame(nil, 1, headFrame, "204\r\n"), 1, endFrame, ""))
	f.Add(appendFrame(nil, 0, drainFrame, ""))
	f.Add(appendFrame(nil, 1, endFrame, "")) // without a head
	f.Add(appendFrame(appendFrame(nil, 1, headFrame, "200\r\n"), 1, headFrame, "200\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		near, far := net.Pipe()
		go func() {
			r := bufio.NewReader(far)
			if _, err := http.ReadRequest(r); err == nil {
				io.WriteString(far, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: "+Protocol+"\r\n\r\n")
				f := frames{r: r}
				if _, err := f.next(); err == nil {
					go io.Copy(io.Discard, far)
					_, _ = far.Write(bytes.Clone(data)) // the client may end before
				}
			}
			far.Close()
		}()
		c, err := Dial(t.Context(), near, "a")
		if err != nil {
			t.Fatal(err)
		}
		read(c.RoundTrip(request(t, t.Context(), "GET", "/", "")))
		c.Retire()
	})
}
